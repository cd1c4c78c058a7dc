#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compaction/level_shape.h"
#include "compaction/level_targets.h"

namespace partita {

// Why a compaction was picked.
enum class PickReason : uint8_t {
  kLevel0Depth,   // Level 0 is too deep or too large: merged into the base level.
  kLevel0Among,   // Level 0 is too deep, and going down would rewrite too much: its small files among
                  // themselves.
  kLevelSize,     // A level is larger than its target.
  kTombstones,    // Tombstones that can be dropped fill much of a file.
  kForeignBytes,  // A slice keeps more bytes on disk than it uses.
  kLevel0Seeks,   // Scans have read as much of level 0, for its depth alone, as merging it takes.
  kSmallFiles,    // Many small files, on level 0 or side by side on the last one: for their number alone.
};

struct PlanInput {
  uint32_t level = 0;
  ObjectId id;
  std::string reference_lower;
  friend bool operator==(const PlanInput&, const PlanInput&) = default;
};

// What one job shall do. `inputs`: the upper level first, level 0 newest first, deeper ones by key.
struct CompactionPlan {
  uint32_t input_level = 0;
  uint32_t output_level = 0;
  std::vector<PlanInput> inputs;
  // Nothing to merge and nothing to gain by rewriting: only the references move.
  bool trivial_move = false;
  double score = 0;  // 1: due; the greatest is picked first.
  PickReason reason = PickReason::kLevelSize;
  KeySpan span;  // Of all inputs.
  uint64_t input_bytes = 0;
  uint64_t overlap_bytes = 0;  // Of those, on the output level.

  // On the disk, until the inputs are removed: an output is at most as large as they are.
  uint64_t RoomNeeded() const { return trivial_move ? 0 : input_bytes; }
};

// The most urgent compaction, or none. A pure function: the same shape gives the same plan. Whoever carries
// out a plan shows the next pick what came of it: two jobs from one shape might share an input.
//
// Which inputs are right:
// - Level 0, downwards: each file brings every *older* file of level 0 it overlaps (else an older
//   entry would stay above a newer one: M22), then every file of the output level within the span
//   of all. Of the other files so many join as make what is rewritten there least for each byte,
//   each time the one that costs least.
// - Level 0, among itself: neighbours in age only, so that nothing is between them.
// - Level 0, because scans have paid for it: as downwards, or files among itself that overlap each other.
// - Deeper: one file and those it overlaps on the next level.
// - Level 0 and the last level among themselves: small files of about one size, neighbours in age or in key
//   order, so that each row is written again a few times at most however many there come to be.
// - A plan that has no room, or has a busy file, is no plan.
//
// Which is best: greatest level score first; then tombstone-dense files before all others, then
// the fewest bytes of the output level rewritten per byte moved, then the smallest key.
std::optional<CompactionPlan> PickCompaction(const LevelShape& shape, const PickerOptions& options);

// Keys at which a flush should cut its files so that level 0 stacks in columns, each of which can
// be merged down by itself: boundaries of the base levels' files, about `target_file_bytes` of
// flushed data apart, whichever ranges have them.
class FlushCuts {
 public:
  explicit FlushCuts(const PickerOptions& options) : options_(options) {}

  // REQUIRES: ranges come by key.
  void Add(const LevelShape& range);
  // Sorted; may be empty.
  std::vector<std::string> Points() const;

 private:
  struct BaseFile {
    std::string lower;
    uint64_t size = 0;
  };
  const PickerOptions options_;
  std::vector<BaseFile> base_;
  uint64_t base_bytes_ = 0;
};

}  // namespace partita
