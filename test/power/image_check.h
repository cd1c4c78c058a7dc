#pragma once
#include <cstdint>
#include <string>

#include "test/power/ledger.h"
#include "test/power/load.h"

namespace partita {

// What was found on a disk as a loss of power left it.
struct ImageFindings {
  std::string wrong;      // Empty: it is sound.
  uint64_t refused = 0;   // Calls that failed, which they may only while the disk does.
  uint64_t restored = 0;  // Backups that were there, restored and read.
};

// Both open the store as `plan` says, in a process that ends soon after: nothing they open is destroyed.

// The store holds what the ledger says after a loss of power at `cut`, is undamaged and takes writes.
// `close`: in the end it is closed.
ImageFindings LookAt(const LoadPlan& plan, const Ledger& ledger, uint64_t cut, bool close);

// The same while reads fail: whatever is asked is answered rightly or refused (F43, F46). What the store does
// meanwhile must not lose anything, which a later LookAt will show.
ImageFindings LookThroughFaults(const LoadPlan& plan, const Ledger& ledger, uint64_t cut);

}  // namespace partita
