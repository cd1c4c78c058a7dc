#pragma once
#include <string>

#include "bench/compare/memory_group.h"
#include "bench/load/measurement.h"
#include "bench/load/workload.h"
#include "engine/base/result.h"

namespace partita::bench {

// Runs one workload on one engine in a process of its own, in `group` when there is one, and answers what
// it measured, or why it could not. A process that takes longer than `seconds_max` is ended, as is one that a
// signal meets or that StopScope ends. REQUIRES: no other thread runs in this process, which forks.
Result<Measurement> RunInChild(const LoadConfig& load, const std::string& workload, const MemoryGroup* group,
                               uint32_t seconds_max);

}  // namespace partita::bench
