#pragma once
#include <cstddef>

#include "engine/base/result.h"

namespace partita {

// How the one memory option is divided (DESIGN 11). All figures are bytes; a plain value.
//
//   share of the budget              for
//   5/16, up to 256 MiB a shard      memtables: chunks of one pool, shared by all shards
//   1/8, up to 64 MiB a shard        compaction: read-ahead, output buffers
//   1/32, 2 to 8 MiB a shard         log buffers: one being filled while one is written
//   1/16, up to 512 MiB              connections, requests and pages under way, retired read views
//   as much as it asks, up to 1/4    the host: what a server holds in buffers of its connections
//   the rest, 15/32 of 128 MiB to 1 GiB with two shards and 15/16 of 16 GiB
//                                    block cache, index blocks included; top indexes and filters of open
//                                    tables, ranges with their references to files, and names are taken out
//                                    of what memtables lend it, and out of itself but for an eighth
//                                    (memory_lender.h)
//
// Memtables get much because each doubling saves a share of the merge into level 1; the cache gets
// most because a miss costs fifty microseconds, and what memtables leave idle as well (memory_lender.h).
//
// Beside the budget stands the fixed part, which no option changes: program text, thread stacks,
// rings, counters, the mapped ends of the logs. The resident set stays within 5 % of budget_bytes,
// plus fixed_bytes.
struct MemoryPlan {
  size_t budget_bytes = 0;
  size_t memtable_bytes = 0;  // Limit of the store's ChunkPool; whole chunks.
  // A shard freezes its active memtable at this memory_used(), or at up to kMemtableGrowthAlone times as much
  // while the other shards leave it more of the pool than its part.
  size_t memtable_freeze_bytes = 0;
  size_t cache_bytes = 0;       // Block cache of the store, without what is lent to it.
  size_t compaction_bytes = 0;  // All jobs together.
  size_t log_buffer_bytes = 0;  // Of one shard; set aside, not enforced.
  size_t request_bytes = 0;     // Of the store.
  size_t fixed_bytes = 0;       // On top of the budget.

  bool operator==(const MemoryPlan&) const = default;
};

// A shard's part of the pool holds its active memtable and those that wait for their flush, so that
// writers go on while the disk is busy.
inline constexpr size_t kMemtablesAShard = 4;
// More would leave too much in the log for the part of the pool that replay grants a shard, and flushes that
// the sizes of the levels know nothing of.
inline constexpr size_t kMemtableGrowthAlone = 2;
// Above this a larger memtable saves little merging, but lengthens recovery.
inline constexpr size_t kMemtableFreezeMax = size_t{64} << 20;

// Below this the shares would be too small to work with: a memtable must hold several of the
// largest transactions (4 MiB), a compaction one buffer for each input and output.
inline constexpr size_t kMemoryBudgetMin = size_t{64} << 20;
// What each shard needs at least.
inline constexpr size_t kMemoryBudgetPerShardMin = size_t{16} << 20;

// kInvalidArgument, saying the minimum, when the budget is too small for so many shards, or when the host
// wants more than a quarter of it.
// REQUIRES: shards >= 1.
Result<MemoryPlan> DeriveMemoryPlan(size_t budget_bytes, size_t shards, size_t host_bytes = 0);

}  // namespace partita
