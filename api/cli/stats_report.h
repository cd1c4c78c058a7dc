#pragma once
#include "api/partita.h"
#include "engine/report.h"

namespace partita {

// Sizes, amplification and memory of an open store, in all and per shard and level. Counters of work (bytes
// written, write amplification) count from the opening of the store.
Report DescribeStats(const DatabaseStats& stats, const std::string& directory);
// Of a degraded open, which counts them among its shards (OpenReport::damaged_shards).
void NoteDamagedShards(const std::vector<std::string>& damages, Report* report);

}  // namespace partita
