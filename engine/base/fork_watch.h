#pragma once
#include <atomic>
#include <cstdint>

namespace partita {

// What a child of fork has of a store: a copy of its memory, and none of its threads. It must not go on with
// it, least of all write to the same log.

namespace fork_watch {
extern std::atomic<uint32_t> generation;
}

// Another number in a child than in its parent, once the parent has called WatchForks. Any thread.
inline uint32_t ForkGeneration() { return fork_watch::generation.load(std::memory_order_relaxed); }
uint32_t WatchForks();  // The same.

}  // namespace partita
