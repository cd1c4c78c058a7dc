#pragma once
#include <cstdint>
#include <memory>

#include "test/support/simulation.h"

namespace partita {

// What becomes of a store whose files are damaged while clients use it: bits that rot, writes that are lost
// or land elsewhere (F41). In this order, each judged by the model:
//
//   1. Clients work while faults deal the damage; what they are told is right, or an error.
//   2. It crashes or is closed; perhaps a bit of some file rots at rest.
//   3. What a repair lists (F53) is in files that were damaged. It must not be in a table file whose write
//   was lost:
//      these are read back before they are used (F47).
//   4. A copy is opened and read: each key answers what is right, or corruption, and that only where the list
//   has it
//      (F43, F44, F48). It does not open only where more than table files is damaged, and then it does
//      without the damaged shards (F39).
//   5. It is repaired, opened, and lives on: all that was not listed is there, and nothing is damaged any
//   more.
//
// One thing is lost without a list: the end of a damaged log, where nothing in front of it proves that there
// was more (F31, F32). The model then asks only that what is there has no holes.
struct DamageReport {
  uint32_t lives = 0;
  uint64_t hash = 0;
};
// `disk` has no process on it. Violations, counts and rare states are in `world`.
DamageReport RunDamage(const Simulation& simulation, uint32_t life, std::unique_ptr<SimDisk> disk,
                       StoreWorld* world);

}  // namespace partita
