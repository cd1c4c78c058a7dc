#include "engine/foreign_bytes.h"

#include "compaction/level_shape.h"

namespace partita {

ForeignBytes::ForeignBytes(const ReadView& view, const ObjectReferences& references,
                           const std::function<bool(const FileRef& slice)>& is_set_aside) {
  if (references.keeps_all()) return;
  for (const RangeView& range : view.ranges) {
    for (size_t level = 0; level < kLevels; ++level) {
      for (const FileRef& file : range.levels->level(level)) {
        Sliced& sliced = files_[file.info->id];
        sliced.bytes = file.info->file_size;
        sliced.used += BytesWithin(file);
        sliced.is_stuck = sliced.is_stuck || file.table == nullptr || is_set_aside(file);
      }
    }
  }
  std::erase_if(files_, [&references](const auto& file) {
    const auto& [id, sliced] = file;
    return sliced.is_stuck || sliced.used == 0 || sliced.used >= sliced.bytes || references.IsShared(id);
  });
}

uint64_t ForeignBytes::Of(const FileRef& slice) const {
  const auto file = files_.find(slice.info->id);
  if (file == files_.end()) return 0;
  const Sliced& sliced = file->second;
  const double share = static_cast<double>(BytesWithin(slice)) / static_cast<double>(sliced.used);
  return static_cast<uint64_t>(share * static_cast<double>(sliced.bytes - sliced.used));
}

}  // namespace partita
