#pragma once
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/result.h"

namespace partita {

// Starts a thread of the engine's: named, and with all signals blocked, so that the handlers of
// the program that embeds us never run on it. kResourceExhausted when the system has no threads.
Result<std::thread> StartThread(const std::string& name, std::function<void()> body);

// The cores this process may run on, in rising order.
std::vector<int> AllowedCpus();

// Confines the calling thread to one core.
Status PinThisThread(int cpu);

}  // namespace partita
