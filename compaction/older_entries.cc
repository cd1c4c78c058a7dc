#include "compaction/older_entries.h"

#include <algorithm>

#include "sstable/key_hash.h"

namespace partita {
namespace {

bool FileMayHold(const FileRef& file, std::string_view user_key, const KeyHash& hash) {
  if (!file.MayHold(user_key)) return false;
  return file.table == nullptr || file.table->MayContainKey(hash);
}

bool IsInput(const CompactionPlan& plan, uint32_t level, const FileRef& file) {
  return std::any_of(plan.inputs.begin(), plan.inputs.end(), [&](const PlanInput& input) {
    return input.level == level && input.id == file.info.id && input.reference_lower == file.lower;
  });
}

}  // namespace

const FileRef* FindReference(const LevelSet& levels, const PlanInput& input) {
  for (const FileRef& file : levels.level(input.level)) {
    if (file.info.id == input.id && file.lower == input.reference_lower) return &file;
  }
  return nullptr;
}

OlderEntries::OlderEntries(std::shared_ptr<const LevelSet> levels, const CompactionPlan& plan)
    : levels_(std::move(levels)) {
  for (uint32_t level = plan.input_level; level < kLevels; ++level) {
    for (const FileRef& file : levels_->level(level)) {
      if (!SpanOf(file).Overlaps(plan.span) || IsInput(plan, level, file)) continue;
      (level == 0 ? level0_ : deeper_[level]).push_back(&file);
    }
  }
}

bool OlderEntries::MayExist(std::string_view user_key, Version tombstone) const {
  const KeyHash hash = HashKey(user_key);
  for (const FileRef* file : level0_) {
    if (file->info.version_min < tombstone && FileMayHold(*file, user_key, hash)) return true;
  }
  for (const auto& files : deeper_) {
    // The last file that does not begin above the key.
    auto above = std::partition_point(files.begin(), files.end(),
                                      [&](const FileRef* file) { return file->first() <= user_key; });
    if (above != files.begin() && FileMayHold(**std::prev(above), user_key, hash)) return true;
  }
  return false;
}

}  // namespace partita
