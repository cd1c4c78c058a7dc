#pragma once
#include <cstddef>
#include <utility>
#include <vector>

#include "sstable/block_cache.h"

namespace partita {

// Keeps the cached blocks that rows of a scan lie in, so that a sink that shows them later need not copy
// them. Not thread-safe.
class BlockKeeper {
 public:
  // Blocks kept at once hold at most so many bytes, in case few rows of each are wanted.
  static constexpr size_t kBytesMax = size_t{512} << 10;

  // True: the block stays as it is until Clear. False: it is not in the cache, or enough is kept.
  bool Keep(const BlockPin& pin) {
    // The newest first: rows come from few blocks in turn.
    for (size_t i = kept_.size(); i-- > 0;) {
      if (kept_[i].content().data() == pin.content().data()) return true;
    }
    if (kept_bytes_ + pin.content().size() > kBytesMax) return false;
    BlockPin share = pin.Share();
    if (!share) return false;
    kept_bytes_ += share.content().size();
    kept_.push_back(std::move(share));
    return true;
  }

  void Clear() {
    kept_.clear();
    kept_bytes_ = 0;
  }

 private:
  std::vector<BlockPin> kept_;
  size_t kept_bytes_ = 0;
};

}  // namespace partita
