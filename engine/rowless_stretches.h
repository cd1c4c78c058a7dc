#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/entry_iterator.h"
#include "engine/base/ids.h"
#include "engine/snapshot_publisher.h"

namespace partita {

// Where a shard has no rows but tombstones and what they hide: scans leap over it. Who keeps a queue in a
// table deletes at the front and asks for the first row; without this each question walks over all that was
// deleted since compaction last came by.
//
// A stretch is an interval of keys and a version: no row of a key in it is visible at that version. What
// keeps that true for all later ones, too:
//
//  1. The shard's sweep (rowless_sweep.h), one at a time, begins on the strand by watching the keys around a
//     hint, and waits until all that was decided before is visible: what it walks then holds every row there
//     is, but for what is decided from there on.
//  2. A row that is decided is noted on the strand before its version becomes visible (NoteRow): it cuts the
//     stretch that it falls into, and of what is watched everything from it on.
//  3. Add, on the strand, refuses what was cut meanwhile. The version is the one that the walk read.
//  4. A reader takes its visible version first and looks at the stretches then: of those no older than its
//     version, each cut by a row that it may see is known to it, and so it walks there.
//
// Rows come into a shard past NoteRow only where a range does; whoever lets go of one or takes one forgets
// its stretches. A split or merge of ranges moves no row. All is gone with the process: replay finds nothing
// here.
//
// A stretch is cut whole, by a store to a flag: of long ones there are many beside each other, so that what a
// row costs is soon walked and found again. Limits: with more than some 250,000 deleted rows in a shard they
// are longer, and a row put back among them makes the next scans walk that much more until the sweep comes
// by; and a stretch that goes on from an emptied partition into the next is cut by a row at the end of the
// first.
//
// Atomics: the set is published on the strand and read by any thread, as is its size; a stretch's `cut` is
// set on the strand. `hint_` has a mutex, which a scan takes once it has walked far. Memory: at most
// kStretchesMax stretches and kKeyBytesMax of their keys.
class RowlessStretches {
 public:
  static constexpr size_t kStretchesMax = 256;
  static constexpr size_t kKeyBytesMax = 256u << 10;
  // Neighbours are joined up to twice so many entries; the sweep walks as many at a time, about a
  // millisecond.
  static constexpr uint64_t kEntriesMax = 1024;
  // A scan that passes so many keys without a row gives a hint: some 20 us.
  static constexpr uint64_t kHintKeys = 16;
  // Deletes until the sweep is to look at the last of them: a quarter of the entries it found the last time,
  // so that deletes pay for what is walked whether or not anybody scans, and who deletes on comes down to the
  // least; and ever more where it finds few. (A delete leaves one entry in its memtable, and one in a table.)
  static constexpr uint64_t kDeletesMin = 64, kDeletesFirst = 1024, kDeletesMax = 65'536;

  struct Interval {
    std::string lower;  // Inclusive.
    std::string upper;  // Exclusive; never empty here.
  };

  RowlessStretches();

  // ---- Any thread.
  // When *bound (forward, the inclusive lower end of what is left to scan; backward, the exclusive upper end)
  // lies in what is known to be rowless at `visible`: true, and it lies behind that. `visible` was loaded
  // before the call, under whose thread's hazard slot is free.
  bool Leap(Direction direction, Version visible, std::string* bound) const;
  // Worth a look of the sweep: no row was found at this key, and few around it.
  void Hint(std::string_view user_key);
  // Gives the last hint, once.
  bool TakeHint(std::string* user_key);
  bool has_hint() const;
  size_t size() const { return size_.load(std::memory_order_relaxed); }
  // Frees what readers have left behind; not on the strand, as it is a system call.
  void Reclaim() { published_.Reclaim(); }

  // ---- On the strand.
  // Whether rows must be noted at all: the one branch of a write where nothing was deleted.
  bool watches() const { return watches_; }
  // A row of this key was decided, and is not visible yet.
  void NoteRow(std::string_view user_key);
  // So many were deleted, this key last. True: it is worth a sweep, and the hint.
  bool NoteDeletes(uint64_t count, std::string_view last_key);
  // Rows may have come, or may come, by another way than NoteRow. An empty upper is no bound.
  void Forget(std::string_view lower, std::string_view upper);

  // ---- On the strand, for the sweep.
  // From here on rows of keys around `hint`, within the bounds, are noted. Returns what lies around the hint
  // between known stretches; what is below it when a stretch begins with the hint; nothing (and then nothing
  // is watched) when the hint is in one.
  std::optional<Interval> Watch(std::string_view hint, Interval bounds);
  // No row of these keys is visible at `since`; `entries` were walked to know it. They lie in what Watch
  // returned, on one side of the hint, and touch no stretch added since. False: a row has come.
  bool Add(Interval keys, Version since, uint64_t entries);
  // `entries`: of all that was added; none when the sweep could not walk.
  void EndWatch(std::optional<uint64_t> entries);

 private:
  struct Stretch {
    Interval keys;
    Version since;
    uint64_t entries = 0;
    // Which is dropped for want of room: the least. Entries, and what was dropped last when it was made; so
    // what is not found again goes some time, however long it was.
    uint64_t worth = 0;
    mutable std::atomic<bool> cut{false};

    Stretch(Interval k, Version s, uint64_t e, uint64_t w)
        : keys(std::move(k)), since(s), entries(e), worth(w) {}
    bool KnownAt(Version visible) const { return since <= visible && !cut.load(std::memory_order_acquire); }
  };
  using Set = std::vector<std::shared_ptr<const Stretch>>;  // Sorted, disjoint.

  static bool LeapForward(const Set& set, Version visible, std::string* bound);
  static bool LeapBackward(const Set& set, Version visible, std::string* bound);
  static std::shared_ptr<const Stretch> Joined(const Stretch& left, const Stretch& right);
  static void JoinSmall(Set* set);
  void Shrink(Set* set);
  void Publish(Set set);

  SnapshotPublisher<Set> published_;
  std::atomic<size_t> size_{0};
  mutable std::mutex mutex_;
  std::string hint_;  // Guarded by mutex_; empty: none.

  // Strand.
  const Set* set_ = nullptr;  // What is published.
  bool watches_ = false;
  bool watching_ = false;
  std::string hint_watched_;
  // The rows that came nearest to it: the sweep's finds end there.
  std::string row_below_, row_above_;
  bool forgot_ = false;  // Something of what is watched was.
  Interval watched_;
  uint64_t deletes_ = 0;
  uint64_t deletes_wanted_ = kDeletesFirst;
  uint64_t dropped_worth_ = 0;
};

}  // namespace partita
