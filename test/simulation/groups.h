#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "test/support/simulation.h"

namespace partita {

// What the simulator is used for; each runs from seeds.
enum class Group : uint8_t {
  kSimulate,  // Rich states: RunSimulation.
  kCrash,     // Many crash points: RunCrashHistory, each crash followed four times.
  kFaults,    // One injected fault at a time, at a drawn operation, and a loss of power after it.
  kFlips,     // One flipped bit at a time: RunFlips.
  kRanges,    // As the first, but most of what is done is to split, merge and move ranges.
};
std::optional<Group> GroupOf(std::string_view name);
std::string_view GroupName(Group group);

// What runs came to, added up. A plain value, so that it can lie in memory shared between processes.
struct Totals {
  uint64_t seed = 0;  // Being run.
  uint64_t seeds = 0, lives = 0, crashes = 0;
  uint64_t single_faults = 0, damages = 0;
  uint64_t flips = 0, flips_refused = 0, flips_damaged = 0, flips_harmless = 0;
  uint32_t lives_of_failing = 0;
  WorkloadCounts counts;
  RareStates rare;
  char violation[4096] = {};
};

// Runs one seed of a group; false, with the violation in the totals, when it found one. Of `simulation` the
// groups but the first take only the seed and the planted defect.
bool RunSeed(Group group, const Simulation& simulation, Totals* totals);

}  // namespace partita
