#pragma once
#include "api/partita.h"
#include "engine/report.h"

namespace partita {

// Sizes, amplification and memory of an open store, in all and per shard and level. Counters of work (bytes
// written, write amplification) count from the opening of the store.
Report DescribeStats(const DatabaseStats& stats, const std::string& directory);

}  // namespace partita
