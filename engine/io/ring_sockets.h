#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/base/result.h"
#include "engine/io/uring_executor.h"
#include "engine/io/worker_sockets.h"

namespace partita {

// Memory that the kernel puts received bytes into, chosen at the moment they come: many idle connections
// share it. All of it is in the kernel's hands but for the buffer whose completion is being handled.
class RingBuffers {
 public:
  // 1 MiB a worker, and the most that comes in a turn, be it to one connection. A request and its neighbours
  // of a pipeline fit into one buffer; when a burst finds none left, its connections receive again once
  // these have come back.
  static constexpr uint32_t kCount = 256;
  static constexpr uint32_t kBytes = 4096;
  static constexpr uint16_t kGroup = 1;

  RingBuffers() = default;
  ~RingBuffers();  // REQUIRES: the ring is closed.

  Status Open(io_uring* ring);
  const char* At(uint32_t buffer) const { return memory_ + size_t{buffer} * kBytes; }
  void GiveBack(uint32_t buffer);

 private:
  char* memory_ = nullptr;
  io_uring_buf_ring* ring_ = nullptr;
};

// Sockets through the worker's own ring: one accept and one receive a connection stay armed and answer
// many times (multishot); sends are submitted with everything else of the turn.
class RingSockets final : public WorkerSockets {
 public:
  // kUnsupported when the kernel has no shared receive buffers (5.19).
  static Result<std::unique_ptr<RingSockets>> Open(UringExecutor& ring);

  ConnectionHandle Adopt(int descriptor) override;
  std::unique_ptr<Acceptor> Accept(int descriptor, Acceptor::Taker taker) override;
  // Blocking: the ring waits for readiness only where the descriptor itself would.
  int socket_flags() const override;

  UringExecutor& ring() { return ring_; }
  const RingBuffers& buffers() const { return buffers_; }
  // The kernel gets it back in the next turn, not while completions are reaped: it would fill it again at
  // once, and a reaping that goes on as long as peers send would take in all they have before anybody may
  // look.
  void GiveBackLater(uint32_t buffer);

 private:
  struct Returning : Runnable {
    RingSockets* owner;
  };
  explicit RingSockets(UringExecutor& ring);
  void GiveBackAll();

  UringExecutor& ring_;
  RingBuffers buffers_;
  Returning returning_;
  std::vector<uint32_t> returned_;  // Not empty: returning_ is posted.
};

}  // namespace partita
