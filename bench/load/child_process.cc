#include "bench/load/child_process.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

namespace partita::bench {
namespace {

// Of the signal handler: what came, and whom it kills.
std::atomic<int> stop_signal = 0;
std::atomic<pid_t> running_child = 0;
static_assert(std::atomic<pid_t>::is_always_lock_free);

void Stop(int signal) {
  const int error = errno;
  stop_signal = signal;
  if (const pid_t child = running_child; child > 0) kill(child, SIGKILL);
  errno = error;
}

// While it lives no signal comes between a look at what came and what hangs on it.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsHeld() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

 private:
  sigset_t before_;
};

// The child's: what ends it is its parent's end, or any signal that is not ignored.
void BecomeChildOf(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // It ended before.
  running_child = 0;
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    sigaction(signal, nullptr, &action);
    if (action.sa_handler == Stop) std::signal(signal, SIG_DFL);
  }
}

}  // namespace

StopScope::StopScope() {
  stop_signal = 0;
  for (size_t i = 0; i < kSignals.size(); ++i) {
    struct sigaction action {};
    action.sa_handler = Stop;
    action.sa_flags = SA_RESTART;
    sigaction(kSignals[i], &action, &before_[i]);
    if (before_[i].sa_handler == SIG_IGN) sigaction(kSignals[i], &before_[i], nullptr);
  }
}

StopScope::~StopScope() {
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  stop_signal = 0;
}

int StopScope::Signal() { return stop_signal; }

Result<pid_t> StartChild(const std::function<int()>& act) {
  std::fflush(nullptr);
  const pid_t parent = getpid();
  pid_t child = 0;
  {
    const SignalsHeld held;
    if (stop_signal != 0) return Status(Code::kCancelled, "stopped by a signal");
    child = fork();
    if (child < 0) return Status::IoError(std::string("fork: ") + std::strerror(errno));
    if (child == 0) {
      BecomeChildOf(parent);
    } else {
      running_child = child;
    }
  }
  if (child > 0) return child;
  const int code = act();
  std::fflush(nullptr);
  // Not exit: what the parent had opened and registered is the parent's to end.
  _exit(code);
}

int WaitForChild(pid_t child) {
  // Its number is free for others only once it is forgotten here.
  siginfo_t info;
  while (waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) continue;
  running_child = 0;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return status;
}

}  // namespace partita::bench
