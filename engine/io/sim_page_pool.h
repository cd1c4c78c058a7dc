#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/base/aligned_buffer.h"

namespace partita {

// The simulated device's memory, in 4 KiB pages, and the count of pages that files take up (a page
// of zeros takes space on the device, but no memory here). Freed pages keep their old bytes, which
// is where stale bytes come from.
class SimPagePool {
 public:
  uint8_t* Take();  // Contents undefined, but the same in each run of a seed.
  uint8_t* TakeZero();
  void Give(uint8_t* page);

  // Bytes that some file, living or dead, once held; null while there are none.
  const uint8_t* AnyPage(uint64_t chance) const;

  void CountAllocated(int64_t pages) { allocated_pages_ += static_cast<uint64_t>(pages); }
  uint64_t allocated_pages() const { return allocated_pages_; }

 private:
  static constexpr size_t kChunkPagesMax = 64;
  std::vector<std::unique_ptr<uint8_t[]>> chunks_;  // Growing: most simulated disks are tiny.
  std::vector<uint8_t*> pages_;                     // Of all chunks.
  std::vector<uint8_t*> free_;
  uint64_t allocated_pages_ = 0;
};

}  // namespace partita
