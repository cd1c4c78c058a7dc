#include "engine/io/sim_page_pool.h"

#include <algorithm>
#include <cstring>

namespace partita {

uint8_t* SimPagePool::Take() {
  if (free_.empty()) {
    // Zeroed: what is "undefined" must still be the same in each run of a seed.
    const size_t count = std::clamp<size_t>(pages_.size(), 2, kChunkPagesMax);
    chunks_.push_back(std::make_unique<uint8_t[]>(count * kPageSize));
    for (size_t i = count; i-- > 0;) {
      pages_.push_back(chunks_.back().get() + i * kPageSize);
      free_.push_back(pages_.back());
    }
  }
  uint8_t* page = free_.back();
  free_.pop_back();
  return page;
}

uint8_t* SimPagePool::TakeZero() {
  uint8_t* page = Take();
  std::memset(page, 0, kPageSize);
  return page;
}

void SimPagePool::Give(uint8_t* page) { free_.push_back(page); }

const uint8_t* SimPagePool::AnyPage(uint64_t chance) const {
  return pages_.empty() ? nullptr : pages_[chance % pages_.size()];
}

}  // namespace partita
