#include "engine/base/large_memory.h"

#include <sys/mman.h>

#include "engine/base/aligned_buffer.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // Linux 5.14; the oldest kernel we run on is 6.1.
#endif

namespace partita {

LargeMemory::LargeMemory(size_t bytes) : size_(bytes) {
  PARTITA_ASSERT(bytes > 0);
  // What is smaller than a huge page has none. For the rest one more than needed, so that it can begin at
  // one.
  const size_t alignment = bytes < kHugePageSize ? 1 : kHugePageSize;
  mapping_size_ = bytes + alignment - 1;
  void* mapping = mmap(nullptr, mapping_size_, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) return;
  mapping_ = mapping;
  data_ = reinterpret_cast<uint8_t*>((reinterpret_cast<uintptr_t>(mapping) + alignment - 1) / alignment *
                                     alignment);
  (void)madvise(data_, size_, MADV_HUGEPAGE);  // Only advice.
}

LargeMemory& LargeMemory::operator=(LargeMemory&& other) noexcept {
  if (this != &other) {
    Release();
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
    mapping_ = std::exchange(other.mapping_, nullptr);
    mapping_size_ = std::exchange(other.mapping_size_, 0);
  }
  return *this;
}

bool LargeMemory::Populate(size_t offset, size_t bytes) {
  PARTITA_ASSERT(offset + bytes <= size_);
  const size_t into_page = offset % kPageSize;
  return madvise(data_ + offset - into_page, bytes + into_page, MADV_POPULATE_WRITE) == 0;
}

void LargeMemory::Release() {
  if (mapping_ != nullptr) munmap(mapping_, mapping_size_);
  mapping_ = nullptr;
  data_ = nullptr;
}

}  // namespace partita
