#include "engine/base/large_memory.h"

#include <sys/mman.h>

#include <algorithm>

#include "engine/base/aligned_buffer.h"

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

void LargeMemory::GiveBack(size_t offset, size_t bytes) {
  PARTITA_ASSERT(offset + bytes <= size_);
  PARTITA_ASSERT(offset % kPageSize == 0 && bytes % kPageSize == 0);
  (void)madvise(data_ + offset, bytes, MADV_DONTNEED);  // Refused for locked memory alone, which stays.
}

// A compare-and-swap of nothing for nothing: takes nothing from whoever writes there meanwhile, and is no
// read, for which the kernel would have a page of zeros. Sanitizers would see a race, and memory that is
// poisoned.
__attribute__((disable_sanitizer_instrumentation)) void LargeMemory::Touch(size_t offset,
                                                                           size_t bytes) const {
  for (size_t at = offset; at < offset + bytes; at += kPageSize) {
    uint8_t nothing = 0;
    __atomic_compare_exchange_n(static_cast<volatile uint8_t*>(data_ + at), &nothing, uint8_t{0},
                                /*weak=*/false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  }
}

void LargeMemory::Release() {
  if (mapping_ != nullptr) munmap(mapping_, mapping_size_);
  mapping_ = nullptr;
  data_ = nullptr;
}

bool MemoryToucher::TouchNext(const LargeMemory& memory, size_t end) {
  size_t begin = touched_.load(std::memory_order_relaxed);
  const size_t next = std::min(begin + LargeMemory::kHugePageSize, memory.size());
  if (begin >= next || next > end) return false;
  memory.Touch(begin, next - begin);
  // Forgotten meanwhile: what lies there now is touched again.
  touched_.compare_exchange_strong(begin, next, std::memory_order_relaxed);
  return true;
}

void MemoryToucher::Forget(size_t end) {
  size_t touched = touched_.load(std::memory_order_relaxed);
  while (touched > end && !touched_.compare_exchange_weak(touched, end, std::memory_order_relaxed)) {
  }
}

}  // namespace partita
