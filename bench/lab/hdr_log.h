#pragma once
#include <cstdint>
#include <string>

#include "bench/lab/experiment.h"
#include "bench/lab/run.h"
#include "bench/load/histogram.h"

namespace partita::lab {

// A histogram as HdrHistogram's compressed V2 encoding in base64: nanoseconds, two significant digits. Two
// because those of bench::Histogram are 1.6 % wide; each of its buckets counts at its upper bound, or at the
// largest value where that is smaller.
std::string HdrBase64(const bench::Histogram& histogram);

// latency.hdr.log: HdrHistogram's log (format version 1.3), which its tools read. A line for each cell and
// operation that completed something, from when it was due; tagged layout/rate/repeat/operation, with _ for
// what cannot stand in a tag.
std::string HdrLog(const Experiment& experiment, const RunResult& result);

}  // namespace partita::lab
