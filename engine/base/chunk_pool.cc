#include "engine/base/chunk_pool.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "engine/base/assert.h"

#if defined(__SANITIZE_ADDRESS__) || (defined(__has_feature) && __has_feature(address_sanitizer))
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

namespace partita {

namespace {

constexpr size_t kWordBits = 64;

uint64_t BitOf(size_t chunk) { return uint64_t{1} << (chunk % kWordBits); }

size_t RoundUp(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

void RaiseTo(size_t value, std::atomic<size_t>* max) {
  size_t before = max->load(std::memory_order_relaxed);
  while (before < value && !max->compare_exchange_weak(before, value, std::memory_order_relaxed)) {
  }
}

}  // namespace

static_assert(LargeMemory::kHugePageSize % ChunkPool::kChunkSize == 0);

ChunkPool::ChunkPool(size_t limit_bytes, std::function<void()> on_above) : on_above_(std::move(on_above)) {
  const size_t chunks = limit_bytes / kChunkSize;
  if (chunks == 0) return;
  memory_ = LargeMemory(chunks * kChunkSize);
  base_ = memory_.data();
  if (base_ == nullptr) return;
  chunk_count_ = chunks;
  free_ = std::make_unique<std::atomic<uint64_t>[]>(RoundUp(chunks, kWordBits) / kWordBits);
  touched_ = std::make_unique<std::atomic<uint64_t>[]>(RoundUp(chunks, kWordBits) / kWordBits);
  for (size_t i = 0; i < chunks; ++i) free_[i / kWordBits].fetch_or(BitOf(i), std::memory_order_relaxed);
  ASAN_POISON_MEMORY_REGION(base_, chunk_count_ * kChunkSize);
}

ChunkPool::~ChunkPool() {
  // Whoever still holds a chunk would read unmapped memory.
  PARTITA_ASSERT(used_chunks_.load(std::memory_order_relaxed) == 0);
  if (base_ != nullptr) ASAN_UNPOISON_MEMORY_REGION(base_, chunk_count_ * kChunkSize);
}

uint8_t* ChunkPool::AcquireRun(size_t chunks) {
  PARTITA_ASSERT(chunks >= 1);
  const size_t first = chunks == 1 ? TakeLowest() : TakeHighestRun(chunks);
  if (first == chunk_count_) {
    refusals_.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  NoteTouched(first, chunks);
  CountUse(chunks);
  uint8_t* memory = base_ + first * kChunkSize;
  ASAN_UNPOISON_MEMORY_REGION(memory, chunks * kChunkSize);
  return memory;
}

void ChunkPool::CountUse(size_t chunks) {
  const size_t used = used_chunks_.fetch_add(chunks, std::memory_order_relaxed) + chunks;
  RaiseTo(used, &used_chunks_max_);
  size_t above = tell_above_.load(std::memory_order_relaxed);
  if (used * kChunkSize <= above) return;
  if (tell_above_.compare_exchange_strong(above, SIZE_MAX, std::memory_order_relaxed) && on_above_)
    on_above_();
}

size_t ChunkPool::TakeUsedMax() {
  const size_t used = used_chunks_.load(std::memory_order_relaxed);
  return std::max(used, used_chunks_max_.exchange(used, std::memory_order_relaxed)) * kChunkSize;
}

void ChunkPool::NoteTouched(size_t first, size_t chunks) {
  for (size_t i = first; i < first + chunks; ++i) {
    if (!IsTouched(i)) touched_[i / kWordBits].fetch_or(BitOf(i), std::memory_order_relaxed);
  }
}

bool ChunkPool::IsTouched(size_t chunk) const {
  return (touched_[chunk / kWordBits].load(std::memory_order_relaxed) & BitOf(chunk)) != 0;
}

size_t ChunkPool::CountTouched() const {
  size_t touched = 0;
  for (size_t first = 0; first < chunk_count_; first += kWordBits) {
    touched +=
        static_cast<size_t>(std::popcount(touched_[first / kWordBits].load(std::memory_order_relaxed)));
  }
  return touched;
}

void ChunkPool::Release(uint8_t* first, size_t chunks) {
  PARTITA_ASSERT(first >= base_);
  const size_t offset = static_cast<size_t>(first - base_);
  PARTITA_ASSERT(offset % kChunkSize == 0);
  PARTITA_ASSERT(offset / kChunkSize + chunks <= chunk_count_);
  // Under AddressSanitizer, who reads on after the memtable died is found.
  ASAN_POISON_MEMORY_REGION(first, chunks * kChunkSize);
  // First the count, so that it is never above the capacity.
  used_chunks_.fetch_sub(chunks, std::memory_order_relaxed);
  GiveBack(offset / kChunkSize, chunks);
  releases_.fetch_add(1, std::memory_order_release);
}

bool ChunkPool::TakeChunk(size_t chunk) {
  const uint64_t before = free_[chunk / kWordBits].fetch_and(~BitOf(chunk), std::memory_order_acquire);
  return (before & BitOf(chunk)) != 0;
}

void ChunkPool::GiveBack(size_t first, size_t chunks) {
  for (size_t i = first; i < first + chunks; ++i) {
    const uint64_t before = free_[i / kWordBits].fetch_or(BitOf(i), std::memory_order_release);
    PARTITA_ASSERT((before & BitOf(i)) == 0);  // It was in use.
  }
}

size_t ChunkPool::TakeLowest() {
  for (size_t first = 0; first < chunk_count_; first += kWordBits) {
    uint64_t word = free_[first / kWordBits].load(std::memory_order_relaxed);
    while (word != 0) {
      const size_t chunk = first + static_cast<size_t>(std::countr_zero(word));
      if (TakeChunk(chunk)) return chunk;
      word = free_[first / kWordBits].load(std::memory_order_relaxed);
    }
  }
  return chunk_count_;
}

size_t ChunkPool::TakeHighestRun(size_t chunks) {
  size_t run = 0;
  for (size_t i = chunk_count_; i > 0; --i) {
    if (TakeChunk(i - 1)) {
      if (++run == chunks) return i - 1;
    } else {
      GiveBack(i, run);
      run = 0;
    }
  }
  GiveBack(0, run);
  return chunk_count_;
}

size_t ChunkPool::GiveBackUnused(size_t keep_bytes) {
  size_t touched = CountTouched();
  // Whole huge pages: of one that is there in part the kernel may bring back the rest.
  constexpr size_t kChunks = LargeMemory::kHugePageSize / kChunkSize;
  for (size_t end = chunk_count_; end > 0 && touched * kChunkSize > keep_bytes;) {
    const size_t first = (end - 1) / kChunks * kChunks;
    size_t taken = 0, given_back = 0;
    while (taken < end - first && TakeChunk(end - taken - 1)) ++taken;
    if (taken == end - first) given_back = ForgetTouched(first, taken);
    if (given_back > 0) memory_.GiveBack(first * kChunkSize, taken * kChunkSize);
    touched -= std::min(touched, given_back);
    GiveBack(end - taken, taken);
    end = first;
  }
  return touched * kChunkSize;
}

bool ChunkPool::TouchOneAhead(size_t bytes, size_t bytes_max) {
  if ((CountTouched() + 1) * kChunkSize > bytes_max) return false;
  size_t ahead = bytes / kChunkSize;
  for (size_t chunk = 0; chunk < chunk_count_ && ahead > 0; ++chunk) {
    if ((free_[chunk / kWordBits].load(std::memory_order_relaxed) & BitOf(chunk)) == 0) continue;
    --ahead;
    if (IsTouched(chunk)) continue;
    memory_.Touch(chunk * kChunkSize, kChunkSize);  // Whoever takes it meanwhile loses nothing.
    NoteTouched(chunk, 1);
    return true;
  }
  return false;
}

size_t ChunkPool::ForgetTouched(size_t first, size_t chunks) {
  size_t forgotten = 0;
  for (size_t i = first; i < first + chunks; ++i) {
    const uint64_t before = touched_[i / kWordBits].fetch_and(~BitOf(i), std::memory_order_relaxed);
    forgotten += (before & BitOf(i)) != 0;
  }
  return forgotten;
}

}  // namespace partita
