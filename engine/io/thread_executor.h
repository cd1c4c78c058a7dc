#pragma once
#include <memory>

#include "engine/io/io_worker.h"

namespace partita {

class EpollSockets;

// What is told that a watched descriptor became ready.
class ReadinessTaker {
 public:
  // `events` as epoll(7) has them. May post work and use the descriptor; destroys nothing.
  virtual void Ready(uint32_t events) = 0;

 protected:
  ~ReadinessTaker() = default;
};

// A shard's worker without a ring: sleeps in epoll(7), uses sockets when they are ready, and has its
// file I/O done by the I/O threads with plain system calls. For machines that forbid io_uring.
class ThreadExecutor final : public IoWorker {
 public:
  explicit ThreadExecutor(TaskPool& io_threads);
  ~ThreadExecutor() override;

  Result<WorkerSockets*> Sockets() override;

  // 0 or an errno. On the worker's thread.
  int Watch(int descriptor, uint32_t events, ReadinessTaker* taker);
  void Unwatch(int descriptor);

 protected:
  Status SetUp() override;
  void TearDown() override;
  void Poll() override;
  void Sleep(uint64_t wait_ns) override;
  // File operations are all counted as offloads; what is watched is in nobody's hands.
  bool NothingInFlight() const override { return watched_ == 0; }

 private:
  void TakeEvents(int wait_ms);

  int epoll_ = -1;
  uint64_t watched_ = 0;  // Besides the mailbox.
  std::unique_ptr<EpollSockets> sockets_;
};

}  // namespace partita
