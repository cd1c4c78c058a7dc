#include "engine/io/sim_page_pool.h"

#include <cstring>

namespace partita {

uint8_t* SimPagePool::Take() {
  if (free_.empty()) {
    // Zeroed: what is "undefined" must still be the same in each run of a seed.
    chunks_.push_back(std::make_unique<uint8_t[]>(kChunkPages * kPageSize));
    for (size_t i = kChunkPages; i-- > 0;) free_.push_back(chunks_.back().get() + i * kPageSize);
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
  if (chunks_.empty()) return nullptr;
  const uint64_t page = chance % (chunks_.size() * kChunkPages);
  return chunks_[page / kChunkPages].get() + page % kChunkPages * kPageSize;
}

}  // namespace partita
