#pragma once
#include <cstdint>
#include <optional>

#include "bench/lab/experiment.h"

namespace partita::lab {

// When a throughput target refuses something for the first time, told from the arrival alone: it lets through
// what its bucket holds, two seconds' worth, beyond what flows in (engine/token_bucket.h).
struct Refusal {
  double after_s = 0;  // From the start; behind the end of the run: one that goes on for so long is refused.
  // More is asked for than flows in, on average and for as long as the run may go on: a longer one is refused
  // more.
  bool lasts = false;
};

// `peak_rate`: units a second that are asked for when operations come at the highest rate (of a replay: on
// average, and it may have peaks above that). Nothing: the target gives that, or its bucket holds what a peak
// asks for beyond it.
// REQUIRES: peak_rate is 0 where the arrival has no highest rate.
std::optional<Refusal> FirstRefusal(const Arrival& arrival, double peak_rate, uint64_t target);

// Whether one operation asks for more than the target's bucket holds, so that a part of it is refused however
// seldom it comes. `units`: what it asks for until its last request, which one token lets through.
bool ExceedsBucket(double units, uint64_t target);

}  // namespace partita::lab
