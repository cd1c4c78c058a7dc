#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/base/task_group.h"
#include "engine/commit_log.h"
#include "engine/io/runtime.h"
#include "engine/read_view.h"
#include "engine/rowless_stretches.h"
#include "engine/strand.h"
#include "engine/write_request.h"
#include "sstable/read_ahead_pool.h"

namespace partita {

// A shard's rowless stretches (rowless_stretches.h), and the sweep that finds them: around a hint it walks in
// both directions to the first row. Hints come from scans that passed many deleted keys, and from deletes.
//
// The sweep runs on the shard's worker, in slices as any scan there, and pauses between; a long one ends for
// others in between, and goes on from where it was when there are none. What it walks, the next scan would
// walk. On the idle helper a compaction would be before it for seconds, in which a queue in a table deletes
// tens of thousands of rows.
//
// Threads: Leap and Hint any; what is said to be on the strand, there. Owned by the shard, which joins
// `tasks` before it goes.
class RowlessSweep {
 public:
  struct Surroundings {
    Runtime& runtime;
    ShardId shard;
    ReadViewPublisher& views;
    Strand& strand;
    const std::unique_ptr<CommitLog>& log;  // There before the first write or scan is.
    ReadAheadPool& read_ahead;
    TaskGroup& tasks;
    const std::atomic<bool>& closing;
    bool read_only;
  };
  explicit RowlessSweep(Surroundings around) : around_(around) {}

  const RowlessStretches& stretches() const { return stretches_; }
  // No row at this key, nor at many beside it.
  void Hint(std::string_view user_key);

  // On the strand: whether NoteWrite must be told of a write without deletes.
  bool watches() const { return stretches_.watches(); }
  // On the strand, of each accepted write, before its version can become visible.
  void NoteWrite(const WriteRequest& request);
  // On the strand: a range is let go of, or taken. An empty upper is no bound.
  void Forget(std::string_view lower, std::string_view upper) { stretches_.Forget(lower, upper); }

 private:
  using Interval = RowlessStretches::Interval;
  // What a page of the sweep came to.
  struct Page {
    std::string last_key;  // The last key without a row; or one behind the row that ended the page.
    std::string next_key;  // As ScanAnswer::next_key.
    Version visible;
    uint64_t entries = 0;
    uint64_t nanos = 0;   // That it took.
    bool at_end = false;  // At a row, or where the interval ends.
  };

  void Schedule();
  static Task<void> SweepHints(RowlessSweep* self);
  // False when there was little to find, or something came between.
  Task<bool> SweepAround(std::string hint);
  // Watches the keys around the hint: Interval() when they are known or not this shard's. *decided: what was.
  Interval Watch(std::string_view hint, Version* decided);
  Task<bool> AwaitVisible(Version decided);
  void GoOnLater(std::string place);
  std::string TakePlace();  // Empty: there is none.
  // Down from keys.upper, up from keys.lower, while *pages last; both return how many entries of stretches
  // were added.
  Task<uint64_t> SweepBelow(Interval keys, int* pages);
  Task<uint64_t> SweepAbove(Interval keys, int* pages);
  Task<Result<Page>> Walk(const Interval& keys, Direction direction);
  Task<bool> Add(Interval keys, const Page& page);

  Surroundings around_;
  RowlessStretches stretches_;
  std::atomic<bool> running_{false};
  // Of the sweep that runs.
  uint64_t pause_ = 0;  // Grows while sweeps find little.
  // Where long ones are to go on, after what others have asked for: the last first.
  std::vector<std::string> go_on_;
};

}  // namespace partita
