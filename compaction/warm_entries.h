#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sstable/block_cache.h"
#include "sstable/table_reader.h"

namespace partita {

// Which entries of a job's outputs come from blocks that the cache holds. It then gets the outputs' blocks in
// their place when they are read back: else a reader of what is hot would have to fetch from the disk
// whatever was merged.
//
// A block is wanted when at least half of its entries came from such blocks: one of a level above lies over
// many blocks of the level below, and says little about each of them.
//
// Not thread-safe; the cache outlives it.
class WarmEntries final : public BlockChooser {
 public:
  // Runs of entries, 16 bytes each; what comes beyond counts as cold.
  static constexpr size_t kRunsMax = 65'536;

  explicit WarmEntries(const BlockCache& cache) : cache_(cache) {}

  // An input block that the merge comes to: whether its entries are warm.
  bool Note(BlockKey block) {
    const bool warm = cache_.Contains(block);
    if (warm) blocks_.push_back(block);
    return warm;
  }

  // The next `count` entries of the outputs.
  void Out(bool warm, uint64_t count) {
    const uint64_t begin = out_;
    out_ += count;
    if (!warm) return;
    if (!runs_.empty() && runs_.back().end == begin) {
      runs_.back().end = out_;
    } else if (runs_.size() < kRunsMax) {
      runs_.push_back({begin, out_});
    }
  }

  bool Wants(uint64_t entries) override {
    const uint64_t end = read_back_ + entries;
    uint64_t warm = 0;
    for (; at_ < runs_.size() && runs_[at_].begin < end; ++at_) {
      const Run& run = runs_[at_];
      warm += std::min(run.end, end) - std::max(run.begin, read_back_);
      if (run.end >= end) break;  // It may go on in the next block, or grow.
    }
    read_back_ = end;
    return 2 * warm >= entries;
  }

  // The input blocks that were in the cache.
  const std::vector<BlockKey>& blocks() const { return blocks_; }

 private:
  struct Run {  // Of entries, counted from the first output's first one.
    uint64_t begin, end;
  };

  const BlockCache& cache_;
  std::vector<BlockKey> blocks_;
  std::vector<Run> runs_;
  uint64_t out_ = 0;
  uint64_t read_back_ = 0;
  size_t at_ = 0;  // The first run that does not end before read_back_.
};

}  // namespace partita
