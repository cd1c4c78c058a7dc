#pragma once
#include <sys/types.h>
#include <csignal>

#include <array>
#include <functional>

#include "engine/base/result.h"

namespace partita::bench {

// While it lives SIGINT, SIGTERM and SIGHUP kill the child that runs and are remembered, and this process
// goes on, to keep what it has and to clean up. What was ignored before stays so. One at a time.
class StopScope {
 public:
  StopScope();
  ~StopScope();
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;

  // The signal that came since the scope began; 0: none, or no scope lives.
  static int Signal();

 private:
  static constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, kSignals.size()> before_;
};

// Runs `act` in a process of its own, which exits with what that answers and dies with this one, however this
// one ends. kCancelled when a StopScope has seen a signal. REQUIRES: no other thread runs in this process,
// which forks, and no other child.
Result<pid_t> StartChild(const std::function<int()>& act);

// Waits for its end; the status is that of waitpid.
int WaitForChild(pid_t child);

}  // namespace partita::bench
