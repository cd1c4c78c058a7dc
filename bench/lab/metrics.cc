#include "bench/lab/metrics.h"

namespace partita::lab {

std::vector<std::string> MetricNames() {
  return {"operations",     "throughput", "p50_ms",  "p90_ms",       "p99_ms",      "p999_ms", "max_ms",
          "service_p99_ms", "throttled",  "dropped", "failed",       "missing",     "scanned", "returned",
          "transactions",   "written",    "density", "stored_bytes", "hottest_rate"};
}

}  // namespace partita::lab
