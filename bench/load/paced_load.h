#pragma once
#include "bench/load/load_loop.h"

namespace partita::bench {

// Half reads, half overwrites of random rows. Takes a third of the time to find out how fast the engine
// can do that at most, lets it settle, then goes on at `fraction` of it and measures. An operation's latency
// counts from when it was due, so that a stall falls on all that it holds up, also on those that it does not
// come to (from when they were due to the end); CPU and bytes written are of the second part, with its
// settling.
Status RunPaced(double fraction, const LoadContext& context, Measurement* measurement);

// Reads random rows as fast as they are answered, beside overwrites at 20,000 a second (or as many as
// the engine takes). Rate and latency are of the reads; CPU and bytes of both.
Status RunReadsBesideWrites(const LoadContext& context, Measurement* measurement);

}  // namespace partita::bench
