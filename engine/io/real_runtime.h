#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/io_backend.h"
#include "engine/base/result.h"
#include "engine/io/io_worker.h"
#include "engine/io/posix_file_system.h"
#include "engine/io/runtime.h"
#include "engine/io/system_clock.h"
#include "engine/io/task_pool.h"

namespace partita {

inline constexpr uint32_t kShardsMax = 256;
inline constexpr uint32_t kHelpersMax = 256;

struct RealRuntimeOptions {
  std::string directory;          // The store's; absolute or relative to the working directory.
  bool create_directory = false;  // Makes it, mode 0700, when it is missing (its parent must exist).
  uint32_t shards = 1;            // 1 .. kShardsMax
  IoBackend backend = IoBackend::kUring;
  uint32_t idle_helpers = 1;      // Threads of BackgroundClass::kIdle, 1 .. kHelpersMax.
  uint32_t ordinary_helpers = 1;  // Threads of BackgroundClass::kOrdinary, 1 .. kHelpersMax.
  bool pin_workers = false;       // Shard n's worker runs only on the n-th core it is allowed (modulo).
};

// The real world: threads, clocks and a directory of this machine.
//
// Lifecycle: Open, use, Close. The engine above must be closed before it, and every call of Post
// must have returned. Thread-safe in between.
class RealRuntime final : public Runtime {
 public:
  // Starts all threads. Features are probed now, not at first use (F59): when io_uring is asked
  // for and cannot be set up, kUnsupported names the errno, its likely cause and what to do; the
  // backend is never changed silently (F80). kNotFound: the directory is missing; kInvalidArgument: it is
  // none.
  static Result<std::unique_ptr<RealRuntime>> Open(const RealRuntimeOptions& options);

  // Runs what is queued on the helpers, waits for all I/O in flight (F60) and for timers, and ends
  // all threads. Idempotent.
  Status Close();
  ~RealRuntime() override;

  FileSystem& files() override { return *files_; }
  Clock& clock() override { return clock_; }
  uint64_t RandomU64() override;
  Executor& shard_executor(ShardId shard) override;
  uint32_t shard_count() const override { return static_cast<uint32_t>(workers_.size()); }
  Executor& background(BackgroundClass background_class) override;
  void Run(Task<void> root) override;
  const char* name() const override;

 private:
  explicit RealRuntime(const RealRuntimeOptions& options) : options_(options) {}
  Status Start();
  Status StartWorkers();

  const RealRuntimeOptions options_;
  SystemClock clock_;
  // In the order of construction; ended in reverse but for the workers, which the helpers and the
  // I/O threads post to: helpers, workers' loops, I/O threads, then the workers themselves.
  std::vector<std::unique_ptr<IoWorker>> workers_;
  std::unique_ptr<TaskPool> io_threads_;
  std::unique_ptr<TaskPool> idle_helpers_;
  std::unique_ptr<TaskPool> memory_helper_;
  std::unique_ptr<TaskPool> ordinary_helpers_;
  std::unique_ptr<TaskPool> transfer_helpers_;
  std::unique_ptr<PosixFileSystem> files_;
  bool closed_ = false;
};

}  // namespace partita
