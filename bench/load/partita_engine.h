#pragma once
#include <memory>

#include "bench/load/engine.h"

namespace partita::bench {

// Partita through its public header: one raw table, cut into as many ranges as there are shards.
Result<std::unique_ptr<Engine>> OpenPartita(const EngineConfig& config);

}  // namespace partita::bench
