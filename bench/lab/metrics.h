#pragma once
#include <string>
#include <vector>

namespace partita::lab {

// The figures of an operation on a layout, as summary.csv, result.json and [[expect]] name them:
//
//   operations  throughput (completed a second)  p50_ms p90_ms p99_ms p999_ms max_ms (from the intended
//   start) service_p99_ms (from the actual start)  throttled (share of operations refused at the first try)
//   dropped (share never done)  failed  missing (records that were not there)
//   per operation: scanned returned transactions written;  density (returned of scanned)
//   stored_bytes (per record, by the service's formula)  hottest_rate (predicted entities/s of one partition)
std::vector<std::string> MetricNames();

}  // namespace partita::lab
