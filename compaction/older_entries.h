#pragma once
#include <array>
#include <memory>
#include <string_view>
#include <vector>

#include "compaction/picker.h"
#include "engine/base/ids.h"
#include "sstable/level_set.h"

namespace partita {

// Answers, for one plan, whether a level set may hold an older entry of a key outside the plan's
// inputs: then a tombstone of that key still hides something (M47). Looks at every level from the
// input level down, and at files of level 0 that are not entirely newer than the tombstone. Filters
// help; a damaged one means "may" (F45).
class OlderEntries {
 public:
  // `inputs`: the plan's, as FindInputs gives them.
  OlderEntries(std::shared_ptr<const LevelSet> levels, const CompactionPlan& plan,
               const std::vector<const FileRef*>& inputs);

  bool MayExist(std::string_view user_key, Version tombstone) const;

 private:
  std::shared_ptr<const LevelSet> levels_;
  std::vector<const FileRef*> level0_;
  std::array<std::vector<const FileRef*>, kLevels> deeper_;  // By key.
};

// The references that a plan's inputs name, in their order; null where the set has none.
std::vector<const FileRef*> FindInputs(const LevelSet& levels, const CompactionPlan& plan);

}  // namespace partita
