#pragma once
#include <cstdint>

namespace partita {

// What one power cut does to each volatile change: a pure function of its seed, the change's
// sequence number and its place, so that it does not matter in which order changes are asked about.
class SimCrashDice {
 public:
  explicit SimCrashDice(uint64_t seed);
  bool SectorSurvives(uint64_t sequence, uint64_t sector) const;
  bool SizeSurvives(uint64_t sequence) const;
  bool NameSurvives(uint64_t sequence) const;
  bool FillsWithStaleBytes(uint64_t inode) const;
  uint64_t Word(uint64_t salt, uint64_t word) const;

 private:
  enum class Mood : uint8_t { kNothingSurvives, kAllSurvives, kMixed };
  Mood MoodOf(uint64_t salt) const;
  uint64_t seed_;
  Mood data_;
  Mood sizes_;
  Mood names_;
};

}  // namespace partita
