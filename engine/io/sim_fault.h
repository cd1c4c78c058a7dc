#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/status.h"

namespace partita {

// What the simulator calls an operation: one call of File or FileSystem that may suspend (a
// WriteAndFlush is two of them, kWrite and kFlush; a ReadBatch is one).
enum class SimOp : uint8_t {
  kOpen,
  kRead,
  kWrite,
  kFlush,
  kSize,
  kTruncate,
  kDropCache,
  kRemove,
  kRename,
  kCreateDirectory,
  kFlushDirectory,
  kList,
  kExists,
  kLock,
  kFreeBytes,
  kAllocate,
  kLink,   // A second name for a file.
  kStore,  // Bytes stored through a SharedMapping: logged and counted, never suspends or fails.
};
inline constexpr size_t kSimOpCount = 18;
std::string_view SimOpName(SimOp op);

// A set of operation kinds, e.g. SimOps(SimOp::kRead, SimOp::kWrite).
using SimOpSet = uint32_t;
inline constexpr SimOpSet kSimOpsAll = (1u << kSimOpCount) - 1;
template <typename... Ops>
constexpr SimOpSet SimOps(Ops... ops) {
  return ((1u << static_cast<uint32_t>(ops)) | ...);
}

enum class SimEffect : uint8_t {
  // The call fails with `code`. A failing write has been applied wholly, partly or not at all; a
  // failing flush drops some of what it should have flushed for good although reads still show
  // it, marks the rest clean, and the next flush succeeds (F20, as on Linux). Other failing
  // operations had no effect.
  kError,
  kShort,      // Reads, writes: done in two to five pieces, each at a time of its own (F24).
  kSlow,       // Takes `delay_ns` more (F26).
  kLost,       // Writes: answers ok, but no byte is written. Flushes: answers ok, nothing is flushed.
  kMisplaced,  // Writes: answers ok, but the bytes land at another offset or in another file.
  kRot,        // Reads: a bit of the stored bytes, in the range read, flips first, for good.
  kRotOnce,    // Reads: a bit of the answer flips; a second read is good (F52).
};

// A fault plan's line: which operations it hits, and what it does to them. A fault hits when all of
// its conditions hold; of several that hit an operation the first added counts.
struct SimFault {
  SimEffect effect = SimEffect::kError;
  SimOpSet operations = kSimOpsAll;
  std::string path_prefix;       // Of the path (of a rename: either path); "" is any.
  double probability = 1.0;      // Per operation that matches.
  uint64_t first_operation = 0;  // Operation numbers (SimRuntime::operations_begun) at or after.
  uint64_t last_operation = UINT64_MAX;
  uint64_t skip = 0;                   // Lets so many matches pass first.
  uint64_t count = UINT64_MAX;         // Hits at most so often.
  Code code = Code::kIoError;          // For kError: also kNoSpace, kResourceExhausted, kUnsupported.
  uint64_t delay_ns = 60'000'000'000;  // For kSlow.
};

// Virtual time an operation takes: evenly in [min, max], and now and then twenty times as long.
struct SimDelay {
  uint64_t min_ns = 0;
  uint64_t max_ns = 0;
};

struct SimOptions {
  uint64_t seed = 1;
  uint32_t shards = 1;
  uint32_t clients = 4;      // Executors that Spawn() hands client tasks to, in turn.
  uint32_t backgrounds = 2;  // Executors of each BackgroundClass.

  SimDelay read{20'000, 200'000};
  SimDelay write{10'000, 100'000};
  SimDelay flush{50'000, 2'000'000};
  SimDelay other{2'000, 50'000};  // Names, sizes, locks.
  SimDelay step{50, 1'000};       // Each piece of work that an executor runs.

  double yield_chance = 0.125;  // That Executor::ShouldYield() says yes.
  // Aborts after so many steps: a retry loop that never ends would hang the test otherwise.
  uint64_t steps_max = 1'000'000'000;
  // Aborts a Run() after so much virtual time: with a timer that comes again for ever, a deadlock
  // never runs out of things to do.
  uint64_t run_ns_max = uint64_t{48} * 3600 * 1'000'000'000;
  uint64_t wall_ticks_start = 133'800'000'000'000'000;  // Of the wall clock; early 2025.
};

}  // namespace partita
