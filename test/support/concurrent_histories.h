#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/io_backend.h"
#include "engine/shard.h"

namespace partita {

// Clients on real threads and on the shards' workers, calling one store at the same time, on few keys.
struct HistoryOptions {
  std::string directory;  // Empty; a store is made there.
  IoBackend backend = IoBackend::kUring;
  uint64_t seed = 1;
  uint64_t histories = 30;  // Partitions: each is one history.
  double seconds_max = 0;   // Stops after these; 0: never.
  bool faults = false;      // Log writes and flushes fail at times, which leaves writes in doubt.
  // To prove the checker: so many of the gets answer what their client saw of the row before. 0: none.
  uint32_t stale_one_of = 0;
  EngineDefect planted = EngineDefect::kNone;
};

struct HistoryReport {
  uint64_t histories = 0;  // Checked.
  uint64_t calls = 0, writes = 0, transactions = 0, refused = 0, in_doubt = 0, gets = 0, pages = 0;
  uint64_t overlapping = 0;  // Calls that began before the one before them had ended, on their partition.
  uint64_t flushes = 0, faults = 0, moves = 0;  // Of ranges, between shards.
  std::vector<std::string> violations;          // The first one; or why the store could not be opened.
};

// kUnsupported backends are told as a violation of that name. What threads do differs from run to run.
HistoryReport RunHistories(const HistoryOptions& options);

}  // namespace partita
