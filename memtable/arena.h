#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "engine/base/chunk_pool.h"

namespace partita {

// Memory that is only ever added to, and given back all at once when the arena dies: the keys,
// values, records and nodes of one memtable.
//
// Any thread may allocate: space is cut off the current chunk by one atomic addition; a full chunk
// is replaced under a small lock. Chunks come from the pool, which must outlive the arena; when it
// has none left Allocate answers nullptr and the arena stays as it was (F58).
class Arena {
 public:
  explicit Arena(ChunkPool& pool);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // `bytes` bytes, aligned to 8, with undefined content; nullptr when the pool is exhausted. What
  // does not fit into a chunk gets a run of neighbouring chunks.
  uint8_t* Allocate(size_t bytes);

  // Everything handed out so far, with alignment and the abandoned ends of full chunks.
  size_t allocated_bytes() const;
  // What the arena holds of the pool.
  size_t reserved_bytes() const { return reserved_bytes_.load(std::memory_order_relaxed); }

 private:
  // Leads each chunk, or run of chunks.
  struct Run {
    Run* older = nullptr;         // Every run of the arena hangs on this chain.
    size_t size = 0;              // Of the run, this header included.
    size_t allocated_before = 0;  // By the runs that were current earlier.
    std::atomic<size_t> used{0};  // From the start of the run; may pass `size` when threads race for its end.
  };

  static uint8_t* Cut(Run* run, size_t bytes);
  uint8_t* AllocateFromNewRun(size_t bytes, Run* full);

  ChunkPool& pool_;
  Run empty_;  // Current before the first chunk: has no room, so nobody writes to it.
  std::atomic<Run*> current_{&empty_};
  std::atomic<size_t> set_aside_bytes_{0};  // In runs that never became current.
  std::atomic<size_t> reserved_bytes_{0};

  std::mutex mutex_;
  Run* newest_ = nullptr;  // Guarded by mutex_.
};

}  // namespace partita
