#include "engine/base/chunk_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>

#include "engine/base/assert.h"

#if defined(__SANITIZE_ADDRESS__) || (defined(__has_feature) && __has_feature(address_sanitizer))
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // Linux 5.14; the oldest kernel we run on is 6.1.
#endif

namespace partita {

namespace {

constexpr size_t kHugePageSize = size_t{2} << 20;
// Between two looks at whether the kernel still agrees.
constexpr size_t kPrefaultStep = size_t{8} << 20;
constexpr size_t kWordBits = 64;

size_t RoundUp(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

static_assert(kHugePageSize % ChunkPool::kChunkSize == 0);
static_assert(kPrefaultStep % ChunkPool::kChunkSize == 0);

ChunkPool::ChunkPool(size_t limit_bytes) {
  const size_t chunks = limit_bytes / kChunkSize;
  if (chunks == 0) return;
  // One huge page more than needed, so that the range can begin at a boundary.
  mapping_size_ = RoundUp(chunks * kChunkSize, kHugePageSize) + kHugePageSize;
  void* mapping = mmap(nullptr, mapping_size_, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) return;
  mapping_ = mapping;
  base_ = reinterpret_cast<uint8_t*>(RoundUp(reinterpret_cast<uintptr_t>(mapping), kHugePageSize));
  // Only advice: kernels without huge pages refuse it, and small pages serve as well.
  (void)madvise(base_, RoundUp(chunks * kChunkSize, kHugePageSize), MADV_HUGEPAGE);
  chunk_count_ = chunks;
  free_.assign(RoundUp(chunks, kWordBits) / kWordBits, 0);
  Mark(0, chunks, /*free=*/true);
  ASAN_POISON_MEMORY_REGION(base_, chunk_count_ * kChunkSize);
}

ChunkPool::~ChunkPool() {
  // Whoever still holds a chunk would read unmapped memory.
  PARTITA_ASSERT(used_chunks_.load(std::memory_order_relaxed) == 0);
  if (mapping_ == nullptr) return;
  ASAN_UNPOISON_MEMORY_REGION(base_, chunk_count_ * kChunkSize);
  munmap(mapping_, mapping_size_);
}

uint8_t* ChunkPool::AcquireRun(size_t chunks) {
  PARTITA_ASSERT(chunks >= 1);
  std::lock_guard lock(mutex_);
  const size_t first = chunks == 1 ? FindFreeLow() : FindFreeRunHigh(chunks);
  if (first == chunk_count_) {
    refusals_.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  Mark(first, chunks, /*free=*/false);
  if (chunks == 1) low_hint_ = first / kWordBits;
  const size_t used = used_chunks_.load(std::memory_order_relaxed) + chunks;
  used_chunks_.store(used, std::memory_order_relaxed);
  used_chunks_max_.store(std::max(used, used_bytes_max() / kChunkSize), std::memory_order_relaxed);
  uint8_t* memory = base_ + first * kChunkSize;
  ASAN_UNPOISON_MEMORY_REGION(memory, chunks * kChunkSize);
  return memory;
}

void ChunkPool::Release(uint8_t* first, size_t chunks) {
  PARTITA_ASSERT(first >= base_);
  const size_t offset = static_cast<size_t>(first - base_);
  PARTITA_ASSERT(offset % kChunkSize == 0);
  const size_t index = offset / kChunkSize;
  PARTITA_ASSERT(index + chunks <= chunk_count_);
  // Under AddressSanitizer, who reads on after the memtable died is found.
  ASAN_POISON_MEMORY_REGION(first, chunks * kChunkSize);
  std::lock_guard lock(mutex_);
  for (size_t i = index; i < index + chunks; ++i) PARTITA_ASSERT(!IsFree(i));
  Mark(index, chunks, /*free=*/true);
  low_hint_ = std::min(low_hint_, index / kWordBits);
  used_chunks_.store(used_chunks_.load(std::memory_order_relaxed) - chunks, std::memory_order_relaxed);
}

size_t ChunkPool::FindFreeLow() const {
  for (size_t word = low_hint_; word < free_.size(); ++word) {
    if (free_[word] != 0) return word * kWordBits + static_cast<size_t>(std::countr_zero(free_[word]));
  }
  return chunk_count_;
}

size_t ChunkPool::FindFreeRunHigh(size_t chunks) const {
  size_t run = 0;
  for (size_t i = chunk_count_; i > 0; --i) {
    run = IsFree(i - 1) ? run + 1 : 0;
    if (run == chunks) return i - 1;
  }
  return chunk_count_;
}

void ChunkPool::Mark(size_t first, size_t chunks, bool free) {
  for (size_t i = first; i < first + chunks; ++i) {
    const uint64_t bit = uint64_t{1} << (i % kWordBits);
    uint64_t& word = free_[i / kWordBits];
    word = free ? word | bit : word & ~bit;
  }
}

size_t ChunkPool::Prefault(size_t bytes) {
  const size_t target = std::min(RoundUp(bytes, kChunkSize), capacity_bytes());
  std::lock_guard lock(prefault_mutex_);
  while (prefaulted_bytes_ < target) {
    const size_t step = std::min(kPrefaultStep, target - prefaulted_bytes_);
    // Touches pages without changing what they hold, so chunks in use may be among them.
    if (madvise(base_ + prefaulted_bytes_, step, MADV_POPULATE_WRITE) != 0) break;
    prefaulted_bytes_ += step;
  }
  return prefaulted_bytes_;
}

}  // namespace partita
