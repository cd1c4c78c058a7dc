#include "engine/world.h"

#include <algorithm>
#include <fstream>
#include <thread>

#include "engine/base/memory_budget.h"
#include "engine/io/device_probe.h"
#include "engine/io/real_runtime.h"

namespace partita {

static_assert(kShardCountMax == kShardsMax);

Result<std::unique_ptr<Runtime>> OpenWorld(const WorldOptions& options) {
  RealRuntimeOptions real;
  real.directory = options.directory;
  real.create_directory = options.create_directory;
  real.shards = options.shards;
  real.backend = options.backend;
  // Compactions run on idle-class helpers, or on ordinary ones when they are far behind: one a shard. As many
  // more of either class for what goes on beside them (EndedTable), which the merge would else have to do
  // itself, and of the ordinary for flushes (of which two may be one shard's: FlushLanes) and installs.
  real.idle_helpers = std::min(2 * options.shards, kHelpersMax);
  real.ordinary_helpers = std::min(3 * options.shards, kHelpersMax);
  PARTITA_ASSIGN(std::unique_ptr<RealRuntime> runtime, RealRuntime::Open(real));
  return std::unique_ptr<Runtime>(std::move(runtime));
}

uint32_t ShardsByCores(uint64_t memory_bytes) {
  const uint64_t fit = std::clamp<uint64_t>(memory_bytes / kMemoryBudgetPerShardMin, 1, kShardCountMax);
  uint64_t cores = AllowedCpus().size();
  if (cores == 0) cores = std::thread::hardware_concurrency();  // More than a cpu_set_t has places for.
  return static_cast<uint32_t>(std::clamp<uint64_t>(cores, 1, fit));
}

Result<std::string> WhyPowerIsNotGiven(const std::string& directory) { return WhyFlushesAreLost(directory); }

uint64_t ResidentSetBytes() {
  std::ifstream status("/proc/self/status");
  std::string field;
  while (status >> field) {
    uint64_t kib = 0;
    if (field == "VmRSS:" && status >> kib) return kib * 1024;
  }
  return 0;
}

}  // namespace partita
