#pragma once
#include "engine/io/io_worker.h"

namespace partita {

// A shard's worker without a ring: sleeps in poll(2), and has its file I/O done by the I/O threads
// with plain system calls. For machines that forbid io_uring.
class ThreadExecutor final : public IoWorker {
 public:
  using IoWorker::IoWorker;

 protected:
  Status SetUp() override { return Status(); }
  void TearDown() override {}
  void Poll() override {}
  void Sleep(uint64_t wait_ns) override;
  bool NothingInFlight() const override { return true; }  // All of it is counted as offloads.
};

}  // namespace partita
