#pragma once
#include <atomic>
#include <cmath>
#include <cstdint>

namespace partita {

// How many bytes a second a shard flushes, of late: a flush weighs the less the longer it is ago, a third
// after kMemorySeconds. Added to by one thread at a time, read by any.
//
//   `weighed_bytes_`, `at_ns_`: relaxed. A reader that sees one of the two newer is told a little too much or
//   too little, once.
class FlushRate {
 public:
  static constexpr double kMemorySeconds = 8;

  void Add(uint64_t now_ns, uint64_t bytes) {
    weighed_bytes_.store(WeighedAt(now_ns) + static_cast<double>(bytes), std::memory_order_relaxed);
    at_ns_.store(now_ns, std::memory_order_relaxed);
  }
  uint64_t PerSecond(uint64_t now_ns) const {
    return static_cast<uint64_t>(WeighedAt(now_ns) / kMemorySeconds);
  }

 private:
  double WeighedAt(uint64_t now_ns) const {
    const uint64_t at_ns = at_ns_.load(std::memory_order_relaxed);
    const double passed = now_ns > at_ns ? static_cast<double>(now_ns - at_ns) * 1e-9 : 0;
    return weighed_bytes_.load(std::memory_order_relaxed) * std::exp(-passed / kMemorySeconds);
  }

  std::atomic<double> weighed_bytes_{0};  // As of at_ns_.
  std::atomic<uint64_t> at_ns_{0};
};

}  // namespace partita
