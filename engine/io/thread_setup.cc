#include "engine/io/thread_setup.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>

#include <cerrno>
#include <system_error>

#include "engine/io/errno_status.h"

namespace partita {

Result<std::thread> StartThread(const std::string& name, std::function<void()> body) {
  // A thread inherits the mask of its creator, so it never runs with another signal open.
  sigset_t blocked, before;
  sigfillset(&blocked);
  for (int open : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGPROF}) sigdelset(&blocked, open);
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
  std::thread thread;
  int error = 0;
  try {
    thread = std::thread(std::move(body));
  } catch (const std::system_error& e) {
    error = e.code().value();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) {
    return Status::ResourceExhausted("cannot start thread \"" + name + "\" (errno " + std::to_string(error) +
                                     "): see `ulimit -u` and the control group's pids.max");
  }
  pthread_setname_np(thread.native_handle(), name.substr(0, 15).c_str());
  return thread;
}

ThreadRank RankOfThisThread() {
  // On Linux both are a thread's own.
  return {.is_idle = sched_getscheduler(0) == SCHED_IDLE, .nice = getpriority(PRIO_PROCESS, 0)};
}

std::vector<int> AllowedCpus() {
  std::vector<int> cpus;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

Status PinThisThread(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  int error = pthread_setaffinity_np(pthread_self(), sizeof set, &set);
  if (error != 0) return ErrnoStatus("pin a worker to", "core " + std::to_string(cpu), error);
  return Status();
}

}  // namespace partita
