#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "engine/base/chunk_pool.h"
#include "engine/base/memory_budget.h"
#include "sstable/block_cache.h"

namespace partita {

// Lends the cache what memtables leave idle of their part of the budget, so that a store that is mostly read
// has more than half as much cache again.
//
// Memtables are left what they used at most within the last quiet time or two of half a minute, and two steps
// more; the cache has the rest. When they come within a step of that, a step at a time is taken back in the
// background; should they pass it before that was done, whoever made them pass takes it back, so that both
// together pass the budget by no more than what is written meanwhile. What was taken back is lent again once
// memtables were quiet for so long; where that proves to be too soon again and again, as with a job each
// minute, for longer each time, up to eight minutes. So bursts do not empty the cache over and over, nor
// touch fresh memory each time. What open tables, ranges and names keep beside the cache is taken out of what
// is lent, and what is above that out of the cache's own part, down to an eighth; there it ends, and what is
// beyond is told.
//
// Of what memtables are left, two steps more than they use are touched in the background as well, and of the
// cache as much as data could fill: else whoever writes or reads would wait for the kernel to find and clear
// it (large_memory.h).
//
// Thread-safe.
class MemoryLender {
 public:
  // A sixteenth of the memtables' part: as much is written in a tenth of a second at the greatest rates.
  static constexpr size_t kStepShare = 16;
  static constexpr uint64_t kQuietNanos = 30'000'000'000;
  // The most that it becomes; it doubles when memory is taken back once more within so many times as long.
  static constexpr uint64_t kQuietNanosMax = 16 * kQuietNanos;
  static constexpr uint64_t kTooSoonTimes = 16;

  // What the cache may get at most.
  static size_t LentMax(const MemoryPlan& plan);

  // Nothing is lent at first. Both must outlive it.
  MemoryLender(const MemoryPlan& plan, ChunkPool* pool, BlockCache* cache);

  // To be called about once a second while the store is used.
  void Look(uint64_t now_ns);
  // To be called when the pool tells that more is in use than it asked to be told of. True: TakeBack is due,
  // in the background. False: nothing is, as it was too late for that, and done here.
  bool OnAbove();
  void TakeBack();

  // To be called after Look and TakeBack: each touches something of what will be used next; false: there is
  // nothing. No locks: the thread may be one that runs only when nobody else does.
  bool TouchForMemtables() { return pool_->TouchOneAhead(2 * step_, left_bytes()); }
  // `data_bytes`: what could fill it. One thread at a time.
  bool TouchForCache(uint64_t data_bytes) { return cache_->TouchNext(data_bytes); }
  // When there was nothing more for memtables; by any other thread.
  void NoteTouched();
  // Look or TakeBack were called, and NoteTouched was not since.
  bool IsTouchingDue() const { return touching_is_due_.load(); }

  // What is kept beside the cache (BlockCache::CountResident) and is more than can be taken out of its own
  // part: once memtables are full, and nothing is lent, the process is beyond its budget by as much. What
  // memtables use at present does not change it.
  size_t bytes_beyond() const;

  // What memtables are left.
  size_t left_bytes() const { return left_bytes_.load(std::memory_order_relaxed); }

 private:
  // All under mutex_.
  void TakeBackLocked();
  void Leave(size_t bytes);
  void LearnQuietTime(uint64_t now_ns);
  void TellAbove();

  const size_t memtable_bytes_, cache_bytes_, step_;
  ChunkPool* const pool_;
  BlockCache* const cache_;

  std::mutex mutex_;                // Guards what follows, for writing.
  std::atomic<size_t> left_bytes_;  // Read by anyone; orders nothing.
  std::atomic<bool> is_due_{false};
  size_t touched_bytes_ = 0;  // Of memtables' part; while touching is not due.
  std::atomic<bool> touching_is_due_{true};
  // The most that memtables used: in the present quiet time and in the one before.
  size_t used_max_ = 0, used_max_before_ = 0;
  uint64_t since_ns_ = 0;            // When the present one began; 0: not yet.
  uint64_t quiet_ns_ = kQuietNanos;  // How long one lasts.
  uint64_t taken_back_ns_ = 0;       // When what had been lent was last begun to be taken back; 0: never.
  size_t left_at_look_;
  bool has_lent_ = false;  // Since then.
};

}  // namespace partita
