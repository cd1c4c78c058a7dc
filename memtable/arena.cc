#include "memtable/arena.h"

#include <algorithm>
#include <limits>
#include <new>

#include "engine/base/aligned_buffer.h"
#include "engine/base/assert.h"

namespace partita {

namespace {

constexpr size_t kAlignment = 8;

}  // namespace

Arena::Arena(ChunkPool& pool) : pool_(pool) {}

Arena::~Arena() {
  Run* run = newest_;
  while (run != nullptr) {
    Run* older = run->older;
    const size_t chunks = run->size / ChunkPool::kChunkSize;
    run->~Run();
    pool_.Release(reinterpret_cast<uint8_t*>(run), chunks);
    run = older;
  }
}

uint8_t* Arena::Allocate(size_t bytes) {
  // Beyond any pool; also keeps the sums below from wrapping.
  if (bytes > std::numeric_limits<size_t>::max() / 2) return nullptr;
  const size_t size = AlignUp(std::max<size_t>(bytes, 1), kAlignment);
  Run* run = current_.load(std::memory_order_acquire);
  if (uint8_t* memory = Cut(run, size)) return memory;
  return AllocateFromNewRun(size, run);
}

uint8_t* Arena::Cut(Run* run, size_t bytes) {
  // The look beforehand keeps a large piece that does not fit from using up the room of small ones.
  if (run->used.load(std::memory_order_relaxed) + bytes > run->size) return nullptr;
  const size_t start = run->used.fetch_add(bytes, std::memory_order_relaxed);
  if (start + bytes > run->size) return nullptr;
  return reinterpret_cast<uint8_t*>(run) + start;
}

uint8_t* Arena::AllocateFromNewRun(size_t bytes, Run* full) {
  std::lock_guard lock(mutex_);
  Run* current = current_.load(std::memory_order_relaxed);
  if (current != full) {
    if (uint8_t* memory = Cut(current, bytes)) return memory;
  }
  constexpr size_t kHeader = AlignUp(sizeof(Run), kAlignment);
  const size_t chunks = (kHeader + bytes + ChunkPool::kChunkSize - 1) / ChunkPool::kChunkSize;
  uint8_t* memory = chunks == 1 ? pool_.Acquire() : pool_.AcquireRun(chunks);
  if (memory == nullptr) return nullptr;

  Run* run = new (memory) Run();
  run->older = newest_;
  run->size = chunks * ChunkPool::kChunkSize;
  run->used.store(kHeader + bytes, std::memory_order_relaxed);
  newest_ = run;
  reserved_bytes_.fetch_add(run->size, std::memory_order_relaxed);

  // The run with more room left goes on as the current one, whatever the size of this piece.
  const size_t current_used = std::min(current->used.load(std::memory_order_relaxed), current->size);
  if (run->size - kHeader - bytes > current->size - current_used) {
    run->allocated_before = current->allocated_before + current->size;
    current_.store(run, std::memory_order_release);
  } else {
    set_aside_bytes_.fetch_add(run->size, std::memory_order_relaxed);
  }
  return memory + kHeader;
}

size_t Arena::allocated_bytes() const {
  const Run* run = current_.load(std::memory_order_acquire);
  const size_t used = std::min(run->used.load(std::memory_order_relaxed), run->size);
  return run->allocated_before + used + set_aside_bytes_.load(std::memory_order_relaxed);
}

}  // namespace partita
