#include "compaction/level_shape.h"

#include <algorithm>

#include "compaction/compression_policy.h"
#include "engine/base/key_head.h"

namespace partita {
namespace {

// Where `key` lies between `first` and `last`, judged by the 8 bytes behind what those two share.
double PlaceBetween(std::string_view first, std::string_view last, std::string_view key) {
  const size_t shared = CommonPrefix(first, last);
  const auto number = [shared](std::string_view bytes) { return static_cast<double>(HeadOf(bytes, shared)); };
  if (key <= first) return 0;
  if (key >= last) return 1;
  double width = number(last) - number(first);
  return width > 0 ? std::clamp((number(key) - number(first)) / width, 0.0, 1.0) : 0.5;
}

}  // namespace

uint64_t GuessWithin(const FileRef& file, double share_min) {
  const TableInfo& info = *file.info;
  double begin = PlaceBetween(info.smallest, info.largest, file.lower);
  double end = file.upper.empty() ? 1 : PlaceBetween(info.smallest, info.largest, file.upper);
  double share = std::clamp(end - begin, share_min, 1.0);
  return static_cast<uint64_t>(share * static_cast<double>(info.file_size));
}

void KeySpan::Extend(const KeySpan& other) {
  if (other.lower < lower) lower = other.lower;
  if (other.upper.empty() || (!upper.empty() && other.upper > upper)) upper = other.upper;
}

uint64_t LevelShape::LevelBytes(size_t level) const {
  uint64_t bytes = 0;
  for (const FileShape& file : levels[level]) bytes += file.size;
  return bytes;
}

uint64_t LevelShape::TotalBytes() const {
  uint64_t bytes = 0;
  for (size_t level = 0; level < kLevels; ++level) bytes += LevelBytes(level);
  return bytes;
}

uint64_t LevelShape::foreign_bytes() const {
  uint64_t bytes = 0;
  for (const auto& level : levels) {
    for (const FileShape& file : level) bytes += file.foreign_bytes;
  }
  return bytes;
}

uint64_t BytesWithin(const FileRef& file) {
  if (file.IsWhole()) return file.info->file_size;
  if (file.table != nullptr) return file.table->BytesWithin(file.lower, file.upper);
  return GuessWithin(file, 1.0 / 16);  // Reading it costs something, whatever its keys.
}

KeySpan SpanOf(const FileRef& file) { return {.lower = std::string(file.first()), .upper = file.end()}; }

LevelShape ShapeOf(const LevelSet& set, Version droppable_before,
                   const std::function<FileCondition(uint32_t level, const FileRef&)>& condition_of) {
  LevelShape shape;
  shape.droppable_before = droppable_before;
  const Codec bottom = CodecForLevel(kLevels - 1);
  for (uint32_t level = 0; level < kLevels; ++level) {
    for (const FileRef& file : set.level(level)) {
      FileCondition condition = condition_of ? condition_of(level, file) : FileCondition{};
      FileShape made;
      made.id = file.info->id;
      made.reference_lower = file.lower;
      made.span = SpanOf(file);
      made.size = BytesWithin(file);
      made.entries = file.info->entry_count;
      made.tombstones = file.info->tombstone_count;
      made.version_max = file.info->version_max;
      made.seek_bytes = file.seek_bytes != nullptr ? file.seek_bytes->load(std::memory_order_relaxed) : 0;
      made.foreign_bytes = condition.foreign_bytes;
      made.busy = condition.busy || file.table == nullptr;
      made.bottom_compression = file.table != nullptr && IsOfClass(file.table->properties(), bottom);
      shape.levels[level].push_back(std::move(made));
    }
  }
  return shape;
}

std::vector<uint32_t> SublevelsOf(const std::vector<FileShape>& level0_newest_first) {
  const std::vector<FileShape>& files = level0_newest_first;
  // The files' ends cut the keys into intervals, each as deep as what was laid on it so far.
  std::vector<std::string_view> bounds;
  for (const FileShape& file : files) {
    bounds.push_back(file.span.lower);
    if (!file.span.upper.empty()) bounds.push_back(file.span.upper);
  }
  std::sort(bounds.begin(), bounds.end());
  bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
  const auto interval_of = [&](std::string_view bound) {
    return std::lower_bound(bounds.begin(), bounds.end(), bound) - bounds.begin();
  };
  std::vector<uint32_t> depths(bounds.size());
  std::vector<uint32_t> sublevels(files.size());
  for (size_t i = files.size(); i-- > 0;) {  // Oldest first.
    const KeySpan& span = files[i].span;
    const auto begin = depths.begin() + interval_of(span.lower);
    const auto end = span.upper.empty() ? depths.end() : depths.begin() + interval_of(span.upper);
    for (auto depth = begin; depth < end; ++depth) sublevels[i] = std::max(sublevels[i], *depth);
    ++sublevels[i];
    for (auto depth = begin; depth < end; ++depth) *depth = sublevels[i];
  }
  return sublevels;
}

}  // namespace partita
