#pragma once
#include <cstdint>

namespace partita {

// What a write survives that returned ok. A table keeps the level it was made with.
enum class Durability : uint8_t {
  kTableDefault = 0,  // In a write: the table's. In TableOptions: Options::durability. Not for Options.
  kPower = 1,         // Loss of power (see Options::allow_volatile_storage).
  kProcess = 2,       // Any death of the process, not of the machine.
  kMemory = 3,        // Nothing; it is visible and atomic all the same.
};

}  // namespace partita
