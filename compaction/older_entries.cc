#include "compaction/older_entries.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "sstable/key_hash.h"

namespace partita {
namespace {

bool FileMayHold(const FileRef& file, std::string_view user_key, const KeyHash& hash) {
  if (!file.MayHold(user_key)) return false;
  return file.table == nullptr || file.table->MayContainKey(hash);
}

}  // namespace

std::vector<const FileRef*> FindInputs(const LevelSet& levels, const CompactionPlan& plan) {
  using Name = std::tuple<uint32_t, ObjectId, std::string_view>;
  std::map<Name, const FileRef*> references;
  for (uint32_t level = 0; level < kLevels; ++level) {
    for (const FileRef& file : levels.level(level)) references[{level, file.info->id, file.lower}] = &file;
  }
  std::vector<const FileRef*> found;
  for (const PlanInput& input : plan.inputs) {
    const auto at = references.find({input.level, input.id, input.reference_lower});
    found.push_back(at == references.end() ? nullptr : at->second);
  }
  return found;
}

OlderEntries::OlderEntries(std::shared_ptr<const LevelSet> levels, const CompactionPlan& plan,
                           const std::vector<const FileRef*>& inputs)
    : levels_(std::move(levels)) {
  const std::set<const FileRef*> is_input(inputs.begin(), inputs.end());
  for (uint32_t level = plan.input_level; level < kLevels; ++level) {
    for (const FileRef& file : levels_->level(level)) {
      if (!SpanOf(file).Overlaps(plan.span) || is_input.contains(&file)) continue;
      (level == 0 ? level0_ : deeper_[level]).push_back(&file);
    }
  }
}

bool OlderEntries::MayExist(std::string_view user_key, Version tombstone) const {
  const KeyHash hash = HashKey(user_key);
  for (const FileRef* file : level0_) {
    if (file->info->version_min < tombstone && FileMayHold(*file, user_key, hash)) return true;
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
