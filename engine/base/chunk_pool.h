#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "engine/base/large_memory.h"

namespace partita {

// Memory in chunks of one size, up to a limit: what memtable arenas live in.
//
// One range of addresses is reserved at construction, aligned to huge pages and advised to use
// them. A page is touched once, by its first user or by TouchOneAhead, and is then recycled: memory that a
// virtual machine gave back costs up to 8 us per 4 KiB to touch again (DESIGN 11), a huge page as one wait of
// 4 ms, so nothing is returned to the kernel but by GiveBackUnused(). The resident set therefore rises to
// what was in use at once since, and what was touched for more, at most capacity_bytes().
//
// Thread-safe without a lock: a chunk belongs to whoever cleared its bit in a map of free ones, so a
// background thread that is interrupted while it gives memory back holds up nobody. Past the limit
// Acquire answers nullptr, early and without harm (F58); it never throws. Every chunk must be back
// before the pool is destroyed.
class ChunkPool {
 public:
  // 1 MiB: half a huge page, so that the smallest memtable costs little, while a 64 MiB memtable
  // asks the pool only 64 times, and the unused end of its last chunk is under 2 %.
  static constexpr size_t kChunkSize = size_t{1} << 20;

  // The limit is rounded down to whole chunks. When the kernel refuses the address range the pool
  // is empty (capacity_bytes() == 0) and each Acquire fails. `on_above`: see TellAbove.
  explicit ChunkPool(size_t limit_bytes, std::function<void()> on_above = nullptr);
  ~ChunkPool();
  ChunkPool(const ChunkPool&) = delete;
  ChunkPool& operator=(const ChunkPool&) = delete;

  // One chunk; its content is undefined. nullptr at the limit.
  uint8_t* Acquire() { return AcquireRun(1); }

  // `chunks` chunks that lie side by side, nullptr when there is no such run. Single chunks are
  // taken from the low end of the range and longer runs from the high end, so that runs stay
  // possible; a run refused for fragmentation becomes possible again when memtables die. While a
  // long run is being gathered, others may be refused although it fails in the end.
  // REQUIRES: chunks >= 1.
  uint8_t* AcquireRun(size_t chunks);

  // Gives back what AcquireRun(chunks) returned.
  void Release(uint8_t* first, size_t chunks = 1);

  // Of what was touched gives the memory of free chunks back to the kernel, in huge pages and the last ones
  // first, until no more than `keep_bytes` are left or none is free; returns how many are. Safe beside every
  // other call.
  size_t GiveBackUnused(size_t keep_bytes);

  // Of the free chunks that Acquire will take first, `bytes` together, touches one if one is not touched and
  // no more than `bytes_max` of all will be; returns whether it did. Safe beside every other call.
  bool TouchOneAhead(size_t bytes, size_t bytes_max);

  // `on_above` is called once, by the Acquire after which more than `bytes` are in use.
  void TellAbove(size_t bytes) { tell_above_.store(bytes, std::memory_order_relaxed); }

  // The most that was in use at once since the last call.
  size_t TakeUsedMax();

  size_t capacity_bytes() const { return chunk_count_ * kChunkSize; }
  size_t used_bytes() const { return used_chunks_.load(std::memory_order_relaxed) * kChunkSize; }
  size_t free_bytes() const { return capacity_bytes() - used_bytes(); }
  // That the kernel has given.
  size_t touched_bytes() const { return CountTouched() * kChunkSize; }
  // How often Release was called. Whoever was refused, and had looked before, finds another number once what
  // somebody had is free.
  uint64_t releases() const { return releases_.load(std::memory_order_acquire); }
  // How often Acquire or AcquireRun answered nullptr.
  uint64_t refusals() const { return refusals_.load(std::memory_order_relaxed); }

 private:
  // Index of the chunk or first chunk taken; chunk_count_: there is none.
  size_t TakeLowest();
  size_t TakeHighestRun(size_t chunks);
  // False when somebody else has it.
  bool TakeChunk(size_t chunk);
  void GiveBack(size_t first, size_t chunks);
  void CountUse(size_t chunks);
  void NoteTouched(size_t first, size_t chunks);
  size_t ForgetTouched(size_t first, size_t chunks);
  bool IsTouched(size_t chunk) const;
  size_t CountTouched() const;

  LargeMemory memory_;
  uint8_t* base_ = nullptr;  // Of memory_.
  size_t chunk_count_ = 0;

  // One bit a chunk, set: free. Taking is an acquire and giving back a release operation, which
  // orders the last use of a chunk before the next one's first.
  std::unique_ptr<std::atomic<uint64_t>[]> free_;
  // One bit a chunk, set: it was touched since its memory was given back. Where both happen at once, it may
  // be set of one that is not.
  std::unique_ptr<std::atomic<uint64_t>[]> touched_;

  std::function<void()> on_above_;
  std::atomic<size_t> tell_above_{SIZE_MAX};

  std::atomic<uint64_t> releases_{0};  // Raised once the chunks are free.

  // Counters; they order nothing.
  std::atomic<size_t> used_chunks_{0};
  std::atomic<size_t> used_chunks_max_{0};  // Since TakeUsedMax.
  std::atomic<uint64_t> refusals_{0};
};

}  // namespace partita
