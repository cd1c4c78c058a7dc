#include "engine/base/fork_watch.h"

#include <pthread.h>

#include "engine/base/assert.h"

namespace partita {

namespace fork_watch {
constinit std::atomic<uint32_t> generation{0};
}

uint32_t WatchForks() {
  // In the child, before fork returns there.
  const auto begin_child = [] { fork_watch::generation.fetch_add(1, std::memory_order_relaxed); };
  static const int error = pthread_atfork(nullptr, nullptr, begin_child);
  PARTITA_ASSERT(error == 0);  // Out of memory for a few words.
  return ForkGeneration();
}

}  // namespace partita
