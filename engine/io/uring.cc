#include "engine/io/uring.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "engine/io/errno_status.h"

namespace partita {

namespace {

std::string Disabled() {
  std::ifstream file("/proc/sys/kernel/io_uring_disabled");
  int value = -1;
  if (!(file >> value)) return "unknown";
  return std::to_string(value);
}

std::string LikelyCause(int error) {
  switch (error) {
    case EPERM:
    case EACCES:
      return "it is forbidden here: the sysctl kernel.io_uring_disabled is " + Disabled() +
             " (0 allows it), or a seccomp filter denies it, as container runtimes commonly do";
    case ENOSYS:
      return "the kernel is built without it, or a seccomp filter hides it, as container runtimes commonly "
             "do";
    case ENOMEM: {
      rlimit limit{};
      getrlimit(RLIMIT_MEMLOCK, &limit);
      return "it may lock too little memory: `ulimit -l` is " + std::to_string(limit.rlim_cur / 1024) +
             " KiB";
    }
    default:
      return "the kernel is too old: 6.1 is the minimum";
  }
}

}  // namespace

Status UringRefused(int error) {
  // Not a reason to do without io_uring: the store needs descriptors on any backend.
  if (error == EMFILE || error == ENFILE) return ErrnoStatus("set up", "io_uring", error);
  char text[128] = "";
  std::string message = "io_uring cannot be set up: ";
  message.append(strerror_r(error, text, sizeof text)).append(" (errno ").append(std::to_string(error));
  message.append("); probably ").append(LikelyCause(error));
  message.append(
      ". Allow io_uring, or choose the thread backend (--io threads; in code "
      "IoBackend::kThreads), which keeps every promise at some cost in speed");
  return Status::Unsupported(std::move(message)).WithDetail(static_cast<uint16_t>(Unmet::kIoUring));
}

Status Uring::Open(const Options& options) {
  PARTITA_ASSERT(!open_);
  int error = SetUp(options);
  if (error != 0) return UringRefused(error);
  open_ = true;
  process_ = getpid();
  Status able = CheckAbilities();
  if (!able.ok()) {
    Close();
    return able;
  }
  registered_ = io_uring_register_ring_fd(&ring_) == 1;  // A few percent; works without.
  return Status();
}

int Uring::SetUp(const Options& options) {
  constexpr uint32_t kBase = IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP;
  constexpr uint32_t kTries[] = {
      kBase | IORING_SETUP_SUBMIT_ALL | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
          IORING_SETUP_TASKRUN_FLAG,
      kBase | IORING_SETUP_SUBMIT_ALL | IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG,
      kBase,
  };
  int error = EINVAL;
  for (uint32_t flags : kTries) {
    io_uring_params params{};
    params.flags = flags;
    params.cq_entries = options.completions;
    error = -io_uring_queue_init_params(options.submissions, &ring_, &params);
    if (error == 0) {
      setup_flags_ = flags;
      return 0;
    }
    if (error != EINVAL) return error;  // Only an unknown flag is worth another try.
  }
  return error;
}

Status Uring::CheckAbilities() {
  constexpr uint32_t kNeeded = IORING_FEAT_NODROP | IORING_FEAT_EXT_ARG;
  if ((ring_.features & kNeeded) != kNeeded) return UringRefused(EINVAL);
  io_uring_probe* probe = io_uring_get_probe_ring(&ring_);
  if (probe == nullptr) return UringRefused(EINVAL);
  bool able = true;
  for (int operation : {IORING_OP_READ, IORING_OP_WRITE, IORING_OP_FSYNC}) {
    able = able && io_uring_opcode_supported(probe, operation) != 0;
  }
  io_uring_free_probe(probe);
  if (!able) return UringRefused(EINVAL);
  return Status();
}

void Uring::Close() {
  if (!open_) return;
  open_ = false;
  if (OpenedByThisProcess()) {
    io_uring_queue_exit(&ring_);
  } else {
    close(ring_.ring_fd);
  }
}

bool Uring::OpenedByThisProcess() const { return process_ == getpid(); }

std::string Uring::Features() const {
  std::string features;
  auto add = [&features](bool present, const char* name) {
    if (!present) return;
    if (!features.empty()) features += ", ";
    features += name;
  };
  add(setup_flags_ & IORING_SETUP_SINGLE_ISSUER, "single-issuer");
  add(setup_flags_ & IORING_SETUP_DEFER_TASKRUN, "defer-taskrun");
  add(setup_flags_ & IORING_SETUP_COOP_TASKRUN, "coop-taskrun");
  add(registered_, "registered-ring");
  return features;
}

}  // namespace partita
