#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace partita {

// What heat is told by. Reads, writes and throttled calls count in rows or operations, a throttled page as
// one; entries that a scan looked at in those; bytes are of keys and contents; CPU is time of threads in the
// engine, in nanoseconds.
enum class HeatMetric : uint8_t { kReads, kWrites, kScanned, kThrottled, kBytes, kCpu };
inline constexpr size_t kHeatMetrics = 6;
using HeatValues = std::array<double, kHeatMetrics>;  // By metric.

inline constexpr std::array<std::string_view, kHeatMetrics> kHeatMetricNames = {
    "reads", "writes", "scanned", "throttled", "bytes", "cpu"};

}  // namespace partita
