#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "bench/lab/exact_math.h"

namespace partita::lab {

// Numbers drawn by counting: the k-th draw of a seed is a function of both, on every machine and in any
// order, so that a record can be made again at any time instead of being kept. The mixer is that of
// SplitMix64.
class Draw {
 public:
  constexpr Draw(uint64_t seed, uint64_t number) : state_(Mix(seed ^ Mix(number + kStep))) {}

  constexpr uint64_t Next() { return Mix(state_ += kStep); }
  // [0, 1)
  constexpr double Uniform() { return static_cast<double>(Next() >> 11) * 0x1p-53; }
  // [0, n). REQUIRES: n > 0.
  constexpr uint64_t Below(uint64_t n) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(Next()) * n) >> 64);
  }
  // Mean 0, standard deviation 1 (Box and Muller).
  double Normal() {
    const double radius = std::sqrt(-2 * ExactLog(1 - Uniform()));
    return radius * ExactCosTurns(Uniform());
  }

 private:
  static constexpr uint64_t kStep = 0x9E3779B97F4A7C15;
  static constexpr uint64_t Mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
    return x ^ (x >> 31);
  }
  uint64_t state_;
};

// One of the `step` numbers from `from` on that are below `count`. A sample of one from each such step is
// from all over, and sees what repeats with the number throughout, however often that is: each so-manyth
// number would miss what its step is a multiple of. REQUIRES: from < count, step > 0.
constexpr uint64_t DrawnFrom(uint64_t from, uint64_t step, uint64_t count) {
  return from + Draw(0, from).Below(std::min(step, count - from));
}

}  // namespace partita::lab
