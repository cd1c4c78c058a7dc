#pragma once
#include <string>
#include <string_view>

#include "engine/base/block_counts.h"
#include "engine/base/block_predicate.h"
#include "engine/base/deleted_keys.h"
#include "engine/base/entry.h"
#include "engine/base/status.h"

namespace partita {

// A part of a table that could not be read and was stepped over: keys in [lower, upper), which may have had
// entries of up to `version_max` there. An empty `upper` is no bound.
struct SkippedSpan {
  std::string lower;
  std::string upper;
  Version version_max;
  Status why;
};

// Is told of each of them, before the cursor shows anything that lies behind.
class SkippedSpanSink {
 public:
  virtual ~SkippedSpanSink() = default;
  virtual void Skipped(SkippedSpan span) = 0;
};

// What the cursors of one scan share: what they need not read, how far they are wanted, and what they took.
//
// Owned by the scan and outlives its cursors; used by one thread at a time.
struct TableScan {
  // Blocks and files that it rules out are passed over where nothing that they hide can match
  // (files_beneath.h). Null: everything is read.
  const BlockPredicate* predicate = nullptr;
  // Blocks of whose keys it knows all to be deleted are passed over, too. Null: it is not asked. It may come
  // and go between moves.
  DeletedKeys* deleted = nullptr;
  // What holds a version above it is not passed over: of that the reader decides.
  Version visible;
  // The far bound of the walk at hand: forward, keys from it on are not wanted, backward, keys below it.
  // Empty: no bound. A cursor that comes to it may say that it is at its end, so whoever moves it seeks anew.
  // It may come nearer meanwhile.
  std::string until;
  // Null: a damaged part is an error of Fetch, and the cursor stays in front of it. Else who asked for it is
  // told, and the cursor goes on behind (F44); not where that brings `until` to the part.
  SkippedSpanSink* skipped = nullptr;

  BlockCounts counts;
  uint64_t seek_bytes = 0;  // What it added to FileRef::seek_bytes.

  // ---- Of the cursors.

  // Notes `cost` comparisons of passing over; true when so many came together that the cursor must show a
  // milestone (EntryKind::kMilestone), so that whoever scans gets a turn to stop or to yield.
  bool Passed(size_t cost) {
    passed_cost_ += cost;
    if (passed_cost_ < kMilestoneCost) return false;
    passed_cost_ = 0;
    return true;
  }
  // A milestone at `key`: forward, what the cursor still has is at or above it, backward, below it. Sorts
  // before all entries of the key, and no two of one scan are alike.
  Entry Milestone(std::string_view key) {
    return {key, Version(kVersionMax.value - milestones_++), EntryKind::kMilestone, {}};
  }

 private:
  // About 50 us: a few hundred blocks.
  static constexpr size_t kMilestoneCost = 4096;

  size_t passed_cost_ = 0;
  uint64_t milestones_ = 0;
};

}  // namespace partita
