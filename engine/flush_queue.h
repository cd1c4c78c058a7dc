#pragma once
#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "engine/base/ids.h"
#include "engine/read_view.h"
#include "sstable/level_set.h"

namespace partita {

// Which of a shard's frozen memtables are being written as tables, and which are written and wait for older
// ones. Several are written at once, and installed one at a time, the oldest first: the log is replayed from
// behind the last that was installed.
//
//   frozen, the newest first:   [e]    [d]     [c]       [b]       [a]
//                                |      |       |         |         being installed
//                                |      |       |         written: BeginInstall gives it next
//                                |      |       taken: somebody writes it
//                                |      Take gives it next
//                                and then this one
//
// Thread-safe; a mutex that is held for a look. A view is looked at under it: what is installed is forgotten
// here only once a view without it is published, so nothing is written twice. And `end` is asked behind that:
// what a move brings along says so before it can be in a view's frozen memtable, and must not be flushed.
class FlushQueue {
 public:
  struct Written {
    MemtableRef memtable;
    std::vector<FileRef> files;  // On level 0, without bounds.
  };

  // `end`: no memtable with positions from there on is given. Any thread calls it.
  FlushQueue(ReadViewPublisher& views, std::function<LogPosition()> end)
      : views_(views), end_(std::move(end)) {}

  // The oldest memtable that nobody has taken. Whoever takes it writes it, and then calls Add or GiveBack.
  std::optional<MemtableRef> Take();
  bool HasUntaken();
  void Add(Written written);
  void GiveBack(const Memtable& memtable);

  // The shard's oldest memtable, once it is written: the caller installs it, and calls EndInstall whether or
  // not it could; then it is out of the view, or nobody's. None while somebody else installs, who asks again
  // at the end of it.
  std::optional<Written> BeginInstall();
  void EndInstall();

  // What is written and waits: it is nobody's again, and the files are the caller's to remove. Where an older
  // one found no space these have it; and when the shard is closed they come to nothing.
  std::vector<Written> TakeWritten();

 private:
  struct Taken {
    std::shared_ptr<Memtable> table;
    std::optional<Written> written;
  };
  std::vector<Taken>::iterator Find(const Memtable* memtable);
  const MemtableRef* OldestUntaken(const ReadView& view);

  ReadViewPublisher& views_;
  const std::function<LogPosition()> end_;
  std::mutex mutex_;
  std::vector<Taken> taken_;
  const Memtable* installing_ = nullptr;
};

// How many threads flush, of all shards: one of each may always, and a second beside it as long as there are
// no more of them than shards. So where one table is loaded in key order, which is one shard's work, another
// shard's core does half of it, and where all shards have work the threads are no more than cores.
class FlushLanes {
 public:
  explicit FlushLanes(uint32_t shards) : shards_(shards) {}
  void Enter() { flushing_.fetch_add(1); }
  bool TryEnterBeside();
  // Another shard has begun meanwhile: whoever is beside ends.
  bool AreCrowded() const { return flushing_.load() > shards_; }
  void Leave() { flushing_.fetch_sub(1); }

 private:
  const uint32_t shards_;
  std::atomic<uint32_t> flushing_{0};
};

}  // namespace partita
