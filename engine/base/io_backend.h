#pragma once
#include <cstdint>

namespace partita {

// How the engine reaches the disk. Same promises on both.
enum class IoBackend : uint8_t {
  kUring,    // A ring per shard. Needs kernel 6.1 and a machine that allows io_uring.
  kThreads,  // Plain system calls on I/O threads, for machines and containers that forbid io_uring.
};

}  // namespace partita
