#pragma once
#include <cstdint>

namespace partita {

// The simulator's only source of chance: SplitMix64, the same everywhere for a seed. Not thread-safe.
class SimRandom {
 public:
  explicit SimRandom(uint64_t seed) : state_(Mix(seed ^ 0x5851f42d4c957f2d)) {}

  uint64_t Next() { return Mix(state_ += 0x9e3779b97f4a7c15); }

  // Evenly in [0, bound). REQUIRES: bound > 0.
  uint64_t Below(uint64_t bound) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(Next()) * bound) >> 64);
  }

  // Evenly in [low, high]. REQUIRES: low <= high.
  uint64_t Between(uint64_t low, uint64_t high) { return low + Below(high - low + 1); }

  bool Chance(double probability) { return static_cast<double>(Next() >> 11) * 0x1.0p-53 < probability; }

  // A well-mixed word from any word.
  static uint64_t Mix(uint64_t word) {
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9;
    word = (word ^ (word >> 27)) * 0x94d049bb133111eb;
    return word ^ (word >> 31);
  }

 private:
  uint64_t state_;
};

}  // namespace partita
