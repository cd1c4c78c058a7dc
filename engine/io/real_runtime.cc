#include "engine/io/real_runtime.h"

#include <sys/random.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "engine/base/site.h"
#include "engine/io/errno_status.h"
#include "engine/io/thread_executor.h"
#include "engine/io/thread_setup.h"
#include "engine/io/uring_executor.h"

namespace partita {

namespace {

// With rings, the I/O threads only do what touches names; without, all file I/O. A disk that is
// kept busy needs a depth of 32 or so.
constexpr uint32_t kIoThreadsPerRingShard = 2;
constexpr uint32_t kIoThreadsPerThreadShard = 8;
constexpr uint32_t kIoThreadsMax = 32;
// A merge reads and writes by turns.
constexpr uint32_t kTransfersAShard = 2;
constexpr uint32_t kTransferHelpersMax = 8;

uint32_t IoThreadCount(const RealRuntimeOptions& options) {
  const bool rings = options.backend == IoBackend::kUring;
  const uint32_t per_shard = rings ? kIoThreadsPerRingShard : kIoThreadsPerThreadShard;
  return std::min(kIoThreadsMax, options.shards * per_shard);
}

Status CheckCount(const char* option, uint32_t value, uint32_t max) {
  if (value >= 1 && value <= max) return Status();
  return Status::InvalidArgument(std::string("option ") + option + " is " + std::to_string(value) +
                                 "; it must be between 1 and " + std::to_string(max));
}

Status CheckOptions(const RealRuntimeOptions& options) {
  if (options.directory.empty()) return Status::InvalidArgument("option directory is empty");
  PARTITA_TRY(CheckCount("shards", options.shards, kShardsMax));
  PARTITA_TRY(CheckCount("idle_helpers", options.idle_helpers, kHelpersMax));
  PARTITA_TRY(CheckCount("ordinary_helpers", options.ordinary_helpers, kHelpersMax));
  return Status();
}

// Makes the store's directory, and its name durable: also that of one that is there, since who made it may
// have been killed before its name was flushed, or told that the flush failed (F29).
Status CreateRoot(const std::string& directory) {
  const bool made = mkdir(directory.c_str(), 0700) == 0;
  if (!made && errno != EEXIST) return ErrnoStatusOfDirectory("create directory", directory, errno);
  std::error_code error;
  const std::filesystem::path path =
      std::filesystem::canonical(directory, error);  // "store/" is named "store".
  if (error) return ErrnoStatus("find directory", directory, error.value());
  const std::filesystem::path parent = path.parent_path();
  struct stat own, above;
  const bool is_mount = stat(path.c_str(), &own) == 0 && stat(parent.c_str(), &above) == 0 &&
                        (own.st_dev != above.st_dev || own.st_ino == above.st_ino);
  if (is_mount) return Status();  // Nothing made it under that name.
  auto parent_files = PosixFileSystem::Open(parent.string(), BatchReads::kCallByCall);
  // Where a folder cannot be read, somebody else makes those in it. That it is a directory shows when it is
  // opened.
  if (!parent_files.ok()) return made ? parent_files.status() : Status();
  if (!SiteIsOn("root.dirflush")) return Status();
  return RunBlocking((*parent_files)->FlushDirectory(""));
}

// Before Linux 6.4 a page fault holds the lock of all of the process's memory, for the 4 ms that a huge page
// may take. An idle-class thread that has to leave its core meanwhile would hold up every other thread's
// faults.
bool FaultsLockTheProcess() {
  utsname name{};
  int major = 0, minor = 0;
  if (uname(&name) != 0 || std::sscanf(name.release, "%d.%d", &major, &minor) != 2) return true;
  return major < 6 || (major == 6 && minor < 4);
}

}  // namespace

Result<std::unique_ptr<RealRuntime>> RealRuntime::Open(const RealRuntimeOptions& options) {
  PARTITA_TRY(CheckOptions(options));
  if (options.create_directory) PARTITA_TRY(CreateRoot(options.directory));
  std::unique_ptr<RealRuntime> runtime(new RealRuntime(options));
  Status started = runtime->Start();
  if (!started.ok()) {
    (void)runtime->Close();
    return started;
  }
  return runtime;
}

Status RealRuntime::Start() {
  const BatchReads batch_reads =
      options_.backend == IoBackend::kUring ? BatchReads::kRing : BatchReads::kCallByCall;
  PARTITA_ASSIGN(files_, PosixFileSystem::Open(options_.directory, batch_reads));
  io_threads_ = std::make_unique<TaskPool>();
  PARTITA_TRY(io_threads_->Start("partita-io", IoThreadCount(options_), ThreadPriority::kOrdinary));
  PARTITA_TRY(StartWorkers());
  idle_helpers_ = std::make_unique<TaskPool>();
  PARTITA_TRY(idle_helpers_->Start("partita-idle", options_.idle_helpers, ThreadPriority::kIdle));
  memory_helper_ = std::make_unique<TaskPool>();
  PARTITA_TRY(memory_helper_->Start(
      "partita-memory", 1, FaultsLockTheProcess() ? ThreadPriority::kOrdinary : ThreadPriority::kIdle));
  ordinary_helpers_ = std::make_unique<TaskPool>();
  PARTITA_TRY(ordinary_helpers_->Start("partita-help", options_.ordinary_helpers, ThreadPriority::kOrdinary));
  transfer_helpers_ = std::make_unique<TaskPool>();
  return transfer_helpers_->Start("partita-copy",
                                  std::min(kTransferHelpersMax, kTransfersAShard * options_.shards),
                                  ThreadPriority::kOrdinary);
}

Status RealRuntime::StartWorkers() {
  const std::vector<int> cpus = AllowedCpus();
  for (uint32_t shard = 0; shard < options_.shards; ++shard) {
    std::unique_ptr<IoWorker> worker;
    if (options_.backend == IoBackend::kUring) {
      worker = std::make_unique<UringExecutor>(*io_threads_, Uring::Options());
    } else {
      worker = std::make_unique<ThreadExecutor>(*io_threads_);
    }
    const bool pin = options_.pin_workers && !cpus.empty();
    const int cpu = pin ? cpus[shard % cpus.size()] : IoWorker::kAnyCpu;
    PARTITA_TRY(worker->Start("partita-w" + std::to_string(shard), cpu));
    workers_.push_back(std::move(worker));
  }
  return Status();
}

Status RealRuntime::Close() {
  if (closed_) return Status();
  closed_ = true;
  // Helpers may wait for the workers, and workers for the I/O threads, so this is the order.
  if (idle_helpers_) idle_helpers_->Close();
  if (memory_helper_) memory_helper_->Close();
  if (ordinary_helpers_) ordinary_helpers_->Close();
  if (transfer_helpers_) transfer_helpers_->Close();  // The helpers above wait for these.
  for (auto& worker : workers_) worker->Stop();
  if (io_threads_) io_threads_->Close();
  return Status();
}

RealRuntime::~RealRuntime() { (void)Close(); }

uint64_t RealRuntime::RandomU64() {
  uint64_t value;
  // Never short nor interrupted for so few bytes, once the machine has booted.
  while (getrandom(&value, sizeof value, 0) != sizeof value) {
  }
  return value;
}

Executor& RealRuntime::shard_executor(ShardId shard) { return *workers_[shard.value % workers_.size()]; }

Executor& RealRuntime::background(BackgroundClass background_class) {
  switch (background_class) {
    case BackgroundClass::kIdle:
      return *idle_helpers_;
    case BackgroundClass::kMemory:
      return *memory_helper_;
    case BackgroundClass::kOrdinary:
      break;
    case BackgroundClass::kInput:
      return *io_threads_;
    case BackgroundClass::kTransfer:
      return *transfer_helpers_;
  }
  return *ordinary_helpers_;
}

void RealRuntime::Run(Task<void> root) { RunBlocking(std::move(root)); }

const char* RealRuntime::name() const {
  return options_.backend == IoBackend::kUring ? "io_uring" : "threads";
}

}  // namespace partita
