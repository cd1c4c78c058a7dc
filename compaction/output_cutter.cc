#include "compaction/output_cutter.h"

#include <algorithm>

#include "engine/base/key_head.h"
#include "engine/base/user_key.h"

namespace partita {

OutputCutter::OutputCutter(std::vector<std::string> cut_points, std::vector<BelowFile> below,
                           uint64_t target_bytes, uint64_t bytes_max)
    : cut_points_(std::move(cut_points)),
      below_(std::move(below)),
      target_bytes_(target_bytes),
      bytes_max_(bytes_max != 0 ? bytes_max : target_bytes + target_bytes / 4) {}

bool OutputCutter::CutBefore(std::string_view key, std::string_view last_key, uint64_t file_bytes) {
  bool at_cut_point = false;
  while (next_cut_ < cut_points_.size() && cut_points_[next_cut_] <= key) {
    at_cut_point = true;
    ++next_cut_;
  }
  bool at_file_below = false;
  while (next_below_ < below_.size() && !below_[next_below_].span.upper.empty() &&
         below_[next_below_].span.upper <= key) {
    at_file_below = true;
    overlapped_bytes_ += below_[next_below_].size;
    ++next_below_;
  }

  bool cut = false;
  if (last_key.empty()) {
    cut = false;
  } else if (at_cut_point || file_bytes >= bytes_max_) {
    cut = true;
  } else if (at_file_below &&
             (overlapped_bytes_ > kOverlapTargets * target_bytes_ || file_bytes >= target_bytes_ / 2)) {
    cut = true;
  } else if (file_bytes >= target_bytes_ / 4 * 3) {
    cut = !SamePartition(last_key, key);
  }
  if (cut || last_key.empty()) overlapped_bytes_ = 0;
  return cut;
}

bool OutputCutter::CutPointWithin(std::string_view first, std::string_view last) const {
  auto above = std::upper_bound(cut_points_.begin(), cut_points_.end(), first);
  return above != cut_points_.end() && *above <= last;
}

bool SamePartition(std::string_view key_a, std::string_view key_b) {
  size_t separator = key_a.find('\0', kTableIdSize);
  return separator != key_a.npos && CommonPrefix(key_a, key_b) > separator;
}

}  // namespace partita
