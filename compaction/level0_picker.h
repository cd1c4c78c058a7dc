#pragma once
#include <optional>
#include <utility>
#include <vector>

#include "compaction/picker.h"

namespace partita {

// The part of picking that level 0 needs, and what it shares with picker.cc.

// Sublevels against PickerOptions::level0_depth, or bytes against what level 0 should hold, idle files
// only; 1 and above: due.
double Level0Score(const LevelShape& shape, const PickerOptions& options);

// What deletes free, they free once they are merged down.
bool Level0IsTombstoneDense(const LevelShape& shape);

// The best plan for level 0: down into the base level, or among itself.
std::optional<CompactionPlan> PickLevel0(const LevelShape& shape, const PickerOptions& options,
                                         const LevelTargets& targets);

// Level 0 merged because scans pay for its depth; none as long as they have not. (LevelDB's seek
// compactions.)
//
// Without writers it stays as deep as they left it, up to kLevel0DepthCalm, and a scan that the cache does
// not help reads a block of each sublevel. To merge earlier would cost every load; instead what scans have
// read to begin in each file (FileRef::seek_bytes) is rent: once as much of it as a merge would have saved
// comes to the bytes that the merge reads, that is bought. What it reads it writes as well, so that all this
// costs is a few times what the best would have, had one known. Rent that was paid for files that are merged
// is gone with them.
std::optional<CompactionPlan> PickLevel0ForSeeks(const LevelShape& shape, const PickerOptions& options,
                                                 const LevelTargets& targets);

// Many small files of level 0, whether they lie on each other or not, to one.
std::optional<CompactionPlan> PickManyOfLevel0(const LevelShape& shape, const PickerOptions& options,
                                               const LevelTargets& targets);

// The files of a level from 1 on with keys of `span`: from the first index up to the second, and themselves.
std::pair<size_t, size_t> OverlappingRange(const std::vector<FileShape>& sorted, const KeySpan& span);
std::vector<const FileShape*> OverlappingFiles(const std::vector<FileShape>& sorted, const KeySpan& span);

// A file, or files together, worth rewriting for the tombstones among their entries.
inline bool TombstonesAreDense(uint64_t tombstones, uint64_t entries) {
  return tombstones > 0 && tombstones * 4 >= entries;
}

void AddInput(CompactionPlan* plan, uint32_t level, const FileShape& file);

}  // namespace partita
