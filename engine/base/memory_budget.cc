#include "engine/base/memory_budget.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "engine/base/assert.h"
#include "engine/base/chunk_pool.h"

namespace partita {

namespace {

constexpr size_t kMiB = size_t{1} << 20;

// Text and static data, and what each worker brings with it (stacks, ring, counters).
constexpr size_t kFixedBytes = 24 * kMiB;
constexpr size_t kFixedBytesAShard = 10 * kMiB;  // 8 of them the mapped end of its log.

constexpr size_t kLogBufferMin = 2 * kMiB;
constexpr size_t kLogBufferMax = 8 * kMiB;

// What a shard can fill with memtables of the largest size.
constexpr size_t kMemtableBytesAShardMax = kMemtablesAShard * kMemtableFreezeMax;
// Jobs, as many as there are shards and threads that help, have buffers of fixed sizes, and tables end where
// their filters would take more (store_open.cc).
constexpr size_t kCompactionBytesAShardMax = 64 * kMiB;
// A hundred of the largest requests, or pages of answers, at once.
constexpr size_t kRequestBytesMax = 512 * kMiB;

// The host may have a quarter: a cache without the larger part of its share would not be worth its name.
constexpr size_t kHostShareMin = 4;

size_t RoundDown(size_t value, size_t unit) { return value / unit * unit; }

}  // namespace

Result<MemoryPlan> DeriveMemoryPlan(size_t budget_bytes, size_t shards, size_t host_bytes) {
  PARTITA_ASSERT(shards >= 1);
  const size_t shards_min =
      shards > SIZE_MAX / kMemoryBudgetPerShardMin ? SIZE_MAX : shards * kMemoryBudgetPerShardMin;
  const size_t needed = std::max(kMemoryBudgetMin, shards_min);
  if (budget_bytes < needed) {
    return Status::InvalidArgument("memory_bytes is " + std::to_string(budget_bytes) +
                                   "; it must be at least the " + std::to_string(needed) + " bytes (" +
                                   std::to_string(needed / kMiB) + " MiB) that " + std::to_string(shards) +
                                   (shards == 1 ? " shard needs" : " shards need"));
  }
  if (host_bytes > budget_bytes / kHostShareMin) {
    return Status::InvalidArgument("host_memory_bytes is " + std::to_string(host_bytes) +
                                   "; it must be at most a quarter of memory_bytes, which is " +
                                   std::to_string(budget_bytes));
  }
  MemoryPlan plan;
  plan.budget_bytes = budget_bytes;
  plan.memtable_bytes =
      RoundDown(std::min(budget_bytes / 16 * 5, shards * kMemtableBytesAShardMax), ChunkPool::kChunkSize);
  plan.memtable_freeze_bytes =
      std::min(plan.memtable_bytes / (shards * kMemtablesAShard), kMemtableFreezeMax);
  plan.compaction_bytes = std::min(budget_bytes / 8, shards * kCompactionBytesAShardMax);
  plan.log_buffer_bytes = std::clamp(budget_bytes / 32 / shards, kLogBufferMin, kLogBufferMax);
  plan.request_bytes = std::min(budget_bytes / 16, kRequestBytesMax);
  const size_t given = plan.memtable_bytes + plan.compaction_bytes + plan.log_buffer_bytes * shards +
                       plan.request_bytes + host_bytes;
  PARTITA_ASSERT(given < budget_bytes);
  plan.cache_bytes = budget_bytes - given;
  plan.fixed_bytes = kFixedBytes + kFixedBytesAShard * shards;
  return plan;
}

}  // namespace partita
