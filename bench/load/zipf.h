#pragma once
#include <cstdint>
#include <random>

namespace partita::bench {

// Draws ranks from [0, size) such that rank r comes in proportion to 1 / (r + 1)^0.99, as YCSB does
// (after Gray and others, "Quickly generating billion-record synthetic databases", 1994). Making one
// takes time in proportion to `size`, drawing none.
//
// Immutable after construction, so any thread may use it.
class Zipf {
 public:
  // REQUIRES: size > 0.
  explicit Zipf(uint64_t size);
  uint64_t Draw(std::mt19937_64& random) const;

 private:
  static constexpr double kTheta = 0.99;

  double size_;
  double zeta_ = 0;  // Sum of 1 / r^theta over all ranks.
  double eta_ = 0;
};

}  // namespace partita::bench
