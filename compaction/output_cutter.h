#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compaction/level_shape.h"

namespace partita {

// A file of the level below an output, for deciding where outputs end.
struct BelowFile {
  KeySpan span;
  uint64_t size = 0;
};

// Decides between which keys one output file ends and the next begins. Never between versions of a
// key: it is asked once a key (M18).
//
//   the file would hold keys on both sides of a cut point       cut
//   it overlaps kOverlapTargets target sizes of the level below cut: merging it down must stay short
//   1/2 target size and a file boundary of the level below      cut: aligned files overlap less
//   3/4 target size and another partition                       cut: partitions stay whole
//   5/4 target size, or `bytes_max`                             cut
class OutputCutter {
 public:
  static constexpr uint64_t kOverlapTargets = 10;

  // `cut_points` sorted; `below` by key, disjoint. `bytes_max` 0: 5/4 of the target.
  OutputCutter(std::vector<std::string> cut_points, std::vector<BelowFile> below, uint64_t target_bytes,
               uint64_t bytes_max = 0);

  // True when the file that ends with `last_key` and has `file_bytes` must end before `key`.
  // An empty `last_key` means no file is open. REQUIRES: keys rise from call to call.
  bool CutBefore(std::string_view key, std::string_view last_key, uint64_t file_bytes);

  // True when a cut point lies in (first, last].
  bool CutPointWithin(std::string_view first, std::string_view last) const;

 private:
  std::vector<std::string> cut_points_;
  std::vector<BelowFile> below_;
  uint64_t target_bytes_, bytes_max_;
  size_t next_cut_ = 0;            // First cut point above the last key asked for.
  size_t next_below_ = 0;          // First file below that ends above it.
  uint64_t overlapped_bytes_ = 0;  // Of files below passed since the current output began.
};

// True when both keys belong to one (table, PartitionKey).
bool SamePartition(std::string_view key_a, std::string_view key_b);

}  // namespace partita
