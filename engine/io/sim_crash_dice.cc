#include "engine/io/sim_crash_dice.h"

#include "engine/io/sim_inode.h"

namespace partita {

namespace {
// One salt for each question asked of the dice, so that the answers are independent.
enum DiceSalt : uint64_t {
  kDataMood = 1,
  kSizeMood,
  kNameMood,
  kData,
  kDataSector,
  kSize,
  kName,
  kStale,
  kStaleOf
};
}  // namespace

SimCrashDice::SimCrashDice(uint64_t seed)
    : seed_(seed), data_(MoodOf(kDataMood)), sizes_(MoodOf(kSizeMood)), names_(MoodOf(kNameMood)) {}

uint64_t SimCrashDice::Word(uint64_t salt, uint64_t word) const {
  return SimRandom::Mix(SimRandom::Mix(seed_ + salt * 0x9e3779b97f4a7c15) ^ SimRandom::Mix(word + salt));
}

SimCrashDice::Mood SimCrashDice::MoodOf(uint64_t salt) const {
  switch (Word(salt, 0) % 8) {
    case 0:
      return Mood::kNothingSurvives;
    case 1:
      return Mood::kAllSurvives;
    default:
      return Mood::kMixed;
  }
}

bool SimCrashDice::SectorSurvives(uint64_t sequence, uint64_t sector) const {
  if (data_ != Mood::kMixed) return data_ == Mood::kAllSurvives;
  switch (Word(kData, sequence) % 8) {
    case 0:
    case 1:
    case 2:
      return true;
    case 3:
    case 4:
    case 5:
      return false;
    case 6:  // Torn into pages.
      return (Word(kDataSector + sequence, sector / kSimSectorsPerPage) & 1) != 0;
    default:  // Torn into sectors.
      return (Word(kDataSector + sequence, sector) & 1) != 0;
  }
}

bool SimCrashDice::SizeSurvives(uint64_t sequence) const {
  if (sizes_ != Mood::kMixed) return sizes_ == Mood::kAllSurvives;
  return (Word(kSize, sequence) & 1) != 0;
}

bool SimCrashDice::NameSurvives(uint64_t sequence) const {
  if (names_ != Mood::kMixed) return names_ == Mood::kAllSurvives;
  return (Word(kName, sequence) & 1) != 0;
}

bool SimCrashDice::FillsWithStaleBytes(uint64_t inode) const {
  return Word(kStale, 0) % 4 == 0 && Word(kStaleOf, inode) % 2 == 0;
}

}  // namespace partita
