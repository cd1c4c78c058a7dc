#pragma once
#include "bench/load/load_loop.h"

namespace partita::bench {

// Atomic overwrites of the 100 rows of a random partition.
Status RunBatches(const LoadContext& context, Measurement* measurement);

// The same with conditions, durable against power loss: each of the 100 rows must exist. First puts the
// rows there, untimed, as many as 100,000, and lets them settle; neither counts.
Status RunConditionalBatches(const LoadContext& context, Measurement* measurement);

}  // namespace partita::bench
