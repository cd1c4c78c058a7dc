#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "engine/base/clock.h"
#include "engine/base/entry_iterator.h"
#include "engine/load_sampler.h"
#include "engine/memtable_deletes.h"
#include "engine/rowless_stretches.h"
#include "engine/shard.h"
#include "sstable/table_scan.h"

namespace partita {

// A page holds its view for at most so long, whatever ranges it spans (DESIGN 3).
inline constexpr uint64_t kPageNanosMax = 5'000'000'000;

// Whether a read of the key at `visible` meets an entry above it that may turn out either way while the
// shard is in doubt (F15). `doubt` was read before the visible version: doubt that ended in between counts.
bool MeetsDoubt(bool doubt, const CommitLog& log, const ReadView& view, std::string_view user_key,
                Version visible);

// One page of Shard::Scan: one point in time of one range.
//
// Steps: 1. Each interval is walked by a merging iterator, or, when it is one key, read as a point.
// 2. Of each key the newest visible version decides; versions below it are hidden. 3. Where the page ends
// early, `next_key` is a key that was not decided, and none before it is: so nothing is given twice or
// passed over. 4. What the request's predicate rules out is not read; milestones (table_scan.h) tell how far
// the cursors came meanwhile, and the page may end there too.
//
// Entries that lie beside each other in a block are decided as a run (entry_iterator.h): hidden versions
// drop out, the sink is asked of the rows that are left all together, and keys are built only for those
// that it wants. A key of a run occurs in no other source behind it, so a run need not look past its end.
//
// 5. A damaged part that a cursor meets ends the walk in front of it, once what the others have there is
// given. With skip_damage, damaged parts are stepped over (TableScan::skipped) and noted before any key in
// them is decided; of such keys an entry that the part may have held a newer one of is withheld, and with it
// all older ones.
//
// 6. Where the page begins, and where it meets tombstones, what is known to be rowless (rowless_stretches.h)
// is leapt over: the cursors are placed anew behind it. Many keys without a row that were not known are a
// hint. Amidst them blocks of tables that hold nothing but what the memtables delete are passed over unread
// (memtable_deletes.h).
//
// Lives through one call of Run, which is all it is for; the arguments outlive it.
class PageScan : private SkippedSpanSink {
 public:
  struct Source {
    const ReadView& view;  // Pinned.
    const RangeView& range;
    const CommitLog& log;
    Version visible;  // Read after the view.
    bool doubt;       // Read before `visible`.
    ReadAheadPool* read_ahead;
    LoadSampler* load;                // Null: nobody samples.
    const RowlessStretches* rowless;  // Null: what is known to be rowless is walked, too.
  };
  PageScan(const ScanRequest& request, RowSink* sink, Source source, Clock& clock);

  // Of level 0, as FileRef::seek_bytes counts them.
  uint64_t seek_bytes() const { return tables_.seek_bytes; }
  // Contract and errors: Shard::Scan. After ok, answer().
  Task<Status> Run();
  ScanAnswer answer();
  // After Run: the last key decided; where a row ended the page it may be one behind that.
  const std::string& last_key() const { return last_key_; }
  // After Run: a key among many, one after the other, that had no row; empty: there were none.
  const std::string& rowless_hint() const { return rowless_hint_; }

 private:
  // A run that is being decided, and how far it was. Entries come in iteration order.
  struct OpenRun : EntryRun {
    uint32_t at = 0;           // The next entry.
    uint32_t group_begin = 0;  // Where the key of it begins; backward only.
    bool is_decided = false;   // Its key is, by an entry before.
    bool is_over = false;      // No entry is left.
  };
  static constexpr uint32_t kEntriesAlone = 7;
  // After so many keys without a row it is worth asking whether whole blocks are deleted; and it is worth
  // placing cursors anew behind so many entries.
  static constexpr uint32_t kPassAfter = 4;
  static constexpr uint64_t kLeapEntries = 32;
  // After so many keys without a row, and each doubling, a look whether more is known to be rowless; at least
  // every so many, as a sweep may come to meet the scan.
  static constexpr uint32_t kLookAfter = 8, kLookAfterMax = 1024;
  // A row of the run that waits for the sink's answer.
  struct Gathered {
    uint32_t entry;
    uint32_t looked;  // Entries looked at since the gathering began, it included.
  };
  enum class Step : uint8_t {
    kStay,     // Entries of the run are left for the next slice.
    kPast,     // Done with the current entry or run.
    kEnded,    // The page has ended, and where it goes on is set.
    kInDoubt,  // The entry at hand may turn out either way (F15).
  };

  Task<Status> Walk(std::string lower, std::string upper);
  Task<Status> ReadPoint(const std::string& key);
  IterState Seek(const std::string& lower, const std::string& upper);
  // True: the bound that the scan goes on from was in what is known to be rowless, and now lies behind it.
  bool Leap(std::string* bound);
  // The same in the midst of a walk, where it is worth a look: the cursors are to be placed anew.
  bool LeapOn(std::string* lower, std::string* upper);
  void CountRowless(EntryKind kind);
  void PassDeleted();
  // True: from the current key on so much is deleted that the cursors are to be placed anew behind it.
  bool LeapDeleted(std::string* lower, std::string* upper);
  void StartRun();
  Step DecideRun();
  Step Gather();
  void StepInRun();
  Step DecideEntry(const Entry& entry);
  // The key of the current entry, of a run or not. Valid until the next call.
  std::string_view CurrentKey();
  bool IsUncertain(Version version) const;
  void Skipped(SkippedSpan span) override;
  void EndWalkBefore(SkippedSpan span);
  // Forward, at its far end or behind it; backward, below it.
  bool IsBeyondWalk(std::string_view key) const;
  bool IsWithheld(std::string_view user_key, Version version) const;
  // Each true: the page has ended, and where it goes on is set.
  // `pin`: of the block that the entry lies in; null: it lies in none.
  bool Decide(const Entry& entry, const BlockPin* pin);
  bool GiveGathered(uint64_t scanned_before);
  // Of rows_, the first `count`.
  void MeterGathered(uint32_t count);
  bool GiveRow(std::string_view user_key, const KeylessRow& row, const BlockPin* pin);
  bool EndBeforeRow(std::string_view user_key);
  bool GoesOn();
  bool SliceEndsPage(std::string_view user_key);
  bool MilestoneEndsPage(std::string_view milestone);
  bool IsFull() const {
    return answer_.rows >= request_.limit || (answer_.rows > 0 && answer_.bytes >= request_.bytes_limit);
  }
  // True: a slice is over, and the next one has begun.
  bool SliceIsUp();
  void SpendSlice(uint32_t entries) { slice_left_ -= std::min(slice_left_, entries); }
  // What was looked at since the last call is load.
  void NoteLoad();
  // Once another slice begins, and whatever was waited for is over.
  void StartWatch();
  // What was found stands, and the next page asks again at `next_key`; with nothing found, the reason.
  Status EndAt(std::string next_key, Status reason);
  std::string ResumeBefore(std::string_view user_key) const;
  std::string ResumeUndecided() const;
  bool IsDecided(std::string_view user_key) const { return have_last_ && user_key == last_key_; }

  const ScanRequest& request_;
  RowSink* sink_;
  const Source source_;
  Clock& clock_;
  const bool forward_;
  std::string upper_;  // Of the page, within the range.
  uint64_t deadline_ns_;
  TableScan tables_;                          // Of the cursors in merged_. Its `until` is the walk's far end.
  std::string_view walk_from_;                // Its near end: one of Walk's own.
  Status damage_;                             // Not ok: the far end is where this begins.
  std::unique_ptr<MemtableDeletes> deletes_;  // Null: it was not wanted yet.
  std::unique_ptr<EntryIterator> merged_;
  size_t table_cursors_ = 0;  // Of its sources.
  uint32_t slice_left_;       // Entries until others may get a turn.
  OpenRun run_;
  uint32_t alone_ = 0;  // So many entries are decided alone before a run is asked for again.
  uint32_t gathered_ = 0;
  std::array<KeylessRow, kRowsAtOnceMax> rows_;
  std::array<Gathered, kRowsAtOnceMax> gathered_from_;
  std::string key_;
  std::string metered_first_, metered_last_;
  std::string last_key_;  // The last key decided; entries of it that follow are older versions.
  bool have_last_ = false;
  bool ended_ = false;
  uint32_t rowless_keys_ = 0;  // Decided one after the other up to here, none a row.
  uint32_t look_at_ = 1;       // So many until stretches are looked at.
  std::string rowless_hint_;
  uint64_t noted_entries_ = 0, noted_bytes_ = 0;  // As load.
  LoadSampler::Watch watch_;
  ScanAnswer answer_;
};

}  // namespace partita
