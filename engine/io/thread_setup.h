#pragma once
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/result.h"

namespace partita {

// Starts a thread of the engine's: named, and with signals blocked, so that the handlers of the program that
// embeds us never run on it, but for two kinds: those of its own faults, which the kernel would else answer
// by ending the process past all handlers, and that of SIGPROF, by which profilers look. kResourceExhausted
// when the system has no threads.
Result<std::thread> StartThread(const std::string& name, std::function<void()> body);

// The cores that the calling thread may run on, and with it all that it starts, in rising order.
std::vector<int> AllowedCpus();

// Confines the calling thread to one core.
Status PinThisThread(int cpu);

// How the kernel deals out cores to a thread, against others of no real-time class.
struct ThreadRank {
  bool is_idle = false;  // SCHED_IDLE: what nobody else wants.
  int nice = 0;

  // Whether it may wait for a core for long while one of the other rank would have one.
  bool IsBelow(const ThreadRank& other) const {
    return is_idle != other.is_idle ? is_idle : nice > other.nice;
  }
};
ThreadRank RankOfThisThread();

}  // namespace partita
