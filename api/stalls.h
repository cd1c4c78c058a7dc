#pragma once
#include <cstdint>
#include <string>
#include <vector>

// What kept the workers long. A shard's worker serves its shard's asynchronous calls, its log and, in a
// server, its connections, in slices of a few microseconds; while one slice lasts all others wait. Each is
// timed. One that lasts 1 ms or more is a stall, and is named by the places in the source around it.
//
// "Ran" is how much of it the worker had its core; the rest of the time the machine gave the core to others,
// or had the worker wait for a page or a lock. It may be less by 0.5 ms. A stall is the program's *own* when
// it ran for 1 ms or more; others say that the machine has more to do than cores.

namespace partita {

struct StallCount {
  uint64_t stalls = 0;
  uint64_t own = 0;  // Of them.
  double lasted_ms = 0, ran_ms = 0;
  double longest_ms = 0;
};

// "engine/shard_write.cc:135 Shard::Write": where the slice went on from a wait, or was begun.
struct StallPlace {
  std::string place;
  StallCount count;
};

struct StallEvent {
  uint32_t shard = 0;
  uint64_t began_ticks = 0;  // 100 ns since 1601-01-01 UTC.
  std::string from;          // As StallPlace::place.
  std::string to;            // Where it waited next; empty: it was done.
  double lasted_ms = 0, ran_ms = 0;
};

// Since the store was opened.
struct StallSummary {
  std::vector<StallCount> shards;  // By number of the worker's shard.
  std::vector<StallPlace> places;  // Of all shards; the longest in all first. At most 256 of each shard.
  std::vector<StallEvent> last;    // The newest first. At most 64 of each shard.
};

}  // namespace partita
