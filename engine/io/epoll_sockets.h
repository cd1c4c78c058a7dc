#pragma once
#include <cstdint>
#include <memory>

#include "engine/io/worker_sockets.h"

namespace partita {

class ThreadExecutor;

// Sockets for workers without a ring: non-blocking system calls, and the worker sleeps in epoll.
class EpollSockets final : public WorkerSockets {
 public:
  explicit EpollSockets(ThreadExecutor& worker);

  ConnectionHandle Adopt(int descriptor) override;
  std::unique_ptr<Acceptor> Accept(int descriptor, Acceptor::Taker taker) override;
  int socket_flags() const override;

  ThreadExecutor& executor() { return executor_; }
  // What a receive reads into before it is known how much came.
  static constexpr size_t kScratchBytes = 64 << 10;
  char* scratch() { return scratch_.get(); }

 private:
  ThreadExecutor& executor_;
  std::unique_ptr<char[]> scratch_;
};

}  // namespace partita
