#include "engine/io/space_returner.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>

#include "engine/io/thread_setup.h"

namespace partita {

namespace {

// 0.8 ms of the disk of bench/HISTORY.md; smaller pieces take more of it in all.
constexpr uint64_t kPieceBytes = 2 << 20;
constexpr uint64_t kPauseNanosMax = 10'000'000;
constexpr uint64_t kSpreadNanos = 8'000'000'000;
// Until it is looked again whether who reads a file has closed it, and how often. After 10 s who reads it
// still, or where the kernel cannot tell (NFS), the last to close it gives its space back.
constexpr uint64_t kSharedNanos = 100'000'000;
constexpr uint32_t kSharedLooksMax = 100;
// As many descriptors are taken at most, and of those that the process may have one in sixteen.
constexpr size_t kFilesMax = 256;
constexpr size_t kDescriptorsShare = 16;

// On the others nothing is known to be gained; on a union or a network file system nobody knows of all
// readers.
bool IsKnown(int directory) {
  constexpr uint32_t kExt4 = 0xEF53, kXfs = 0x58465342, kBtrfs = 0x9123683E, kF2fs = 0xF2F52010;
  struct statfs information {};
  if (fstatfs(directory, &information) != 0) return false;
  const uint32_t type = static_cast<uint32_t>(information.f_type);
  return type == kExt4 || type == kXfs || type == kBtrfs || type == kF2fs;
}

}  // namespace

SpaceReturner::SpaceReturner(int directory) {
  rlimit limit{};
  if (!IsKnown(directory) || getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  files_max_ = static_cast<size_t>(std::min<rlim_t>(kFilesMax, limit.rlim_cur / kDescriptorsShare));
  directory_ = fcntl(directory, F_DUPFD_CLOEXEC, 0);
}

SpaceReturner::~SpaceReturner() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  for (const Held& held : held_) close(held.descriptor);
  if (directory_ >= 0) close(directory_);
}

void SpaceReturner::Take(int descriptor) {
  struct stat information {};
  uint64_t bytes = 0;
  // One that has another name (a backup's hard link) keeps its content.
  if (fstat(descriptor, &information) == 0 && S_ISREG(information.st_mode) && information.st_nlink == 0)
    bytes = std::min(static_cast<uint64_t>(information.st_size), uint64_t{512} * information.st_blocks);
  // An idle thread, which may have no core for long, would hold the mutex meanwhile, and others a log's
  // tokens while they wait for it; a thread inherits its class, too.
  const bool is_worth_it = spreads() && bytes >= kFileBytesMin && sched_getscheduler(0) != SCHED_IDLE;
  if (is_worth_it && !IsShort(waiting_bytes() + bytes)) {
    std::lock_guard lock(mutex_);
    if (held_.size() < files_max_ && Start()) {
      held_.push_back({.descriptor = descriptor, .bytes = static_cast<uint64_t>(information.st_size)});
      waiting_bytes_ += held_.back().bytes;
      descriptor = -1;
    }
  }
  if (descriptor < 0) return changed_.notify_all();
  close(descriptor);
}

uint64_t SpaceReturner::waiting_bytes() const {
  std::lock_guard lock(mutex_);
  return waiting_bytes_;
}

bool SpaceReturner::Start() {
  if (thread_.joinable()) return true;
  Result<std::thread> started = StartThread("partita-space", [this] { Run(); });
  if (started.ok()) thread_ = std::move(started).value();
  return thread_.joinable();
}

// A lease for writing is granted to whoever has a file open alone. It is given up again at once; who opens
// the file meanwhile, through /proc, breaks it, of which the process is told by a signal that means nothing
// (the default would end it).
SpaceReturner::Use SpaceReturner::UseOf(int descriptor) {
  if (fcntl(descriptor, F_SETSIG, SIGURG) != 0) return Use::kUnknown;
  if (fcntl(descriptor, F_SETLEASE, F_WRLCK) == 0) {
    fcntl(descriptor, F_SETLEASE, F_UNLCK);
    return Use::kAlone;
  }
  return errno == EAGAIN || errno == EBUSY ? Use::kShared : Use::kUnknown;
}

bool SpaceReturner::IsShort(uint64_t waiting) const {
  struct statvfs disk {};
  if (fstatvfs(directory_, &disk) != 0) return true;
  return uint64_t{disk.f_bavail} * disk.f_frsize < 2 * waiting;
}

uint64_t SpaceReturner::ReturnPiece(Held* held) {
  const Use use = UseOf(held->descriptor);
  if (use == Use::kShared && ++held->shared_looks < kSharedLooksMax) return kSharedNanos;
  // At a multiple of a block: else what is left of one would be read, and written with zeros.
  const uint64_t left = (held->bytes - 1) / kPieceBytes * kPieceBytes;
  // What cannot be cut, or nobody can tell whether it may, goes at once.
  const bool is_cut = use == Use::kAlone && ftruncate(held->descriptor, static_cast<off_t>(left)) == 0;
  held->bytes = is_cut ? left : 0;
  return 0;
}

void SpaceReturner::Run() {
  std::unique_lock lock(mutex_);
  size_t shared = 0;  // As many in a row were open elsewhere.
  while (true) {
    changed_.wait(lock, [this] { return ending_ || !held_.empty(); });
    if (ending_) return;
    Held held = held_.front();
    held_.pop_front();
    const uint64_t before = held.bytes, waiting = waiting_bytes_;
    lock.unlock();
    uint64_t pause = ReturnPiece(&held);
    const bool is_shared = pause > 0;
    if (!is_shared && !IsShort(waiting))
      pause = std::min(kPauseNanosMax, kSpreadNanos / (waiting / kPieceBytes + 1));
    if (held.bytes == 0) close(held.descriptor);
    lock.lock();
    waiting_bytes_ -= before - held.bytes;
    if (is_shared) {
      held_.push_back(held);
      // Others may be free.
      if (++shared < held_.size()) continue;
    } else if (held.bytes > 0) {
      held_.push_front(held);
    }
    shared = 0;
    changed_.wait_for(lock, std::chrono::nanoseconds(pause), [this] { return ending_; });
  }
}

}  // namespace partita
