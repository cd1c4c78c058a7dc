#pragma once
#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>

namespace partita::lab {

// Asked some times a second by what takes long; false: end it.
using GoesOn = std::function<bool()>;

// Sleeps so long, but ends within a twentieth of a second, and with false, when `goes_on` says so.
inline bool SlicedWait(std::chrono::microseconds wait, const GoesOn& goes_on) {
  constexpr std::chrono::milliseconds kSlice{50};
  const auto until = std::chrono::steady_clock::now() + wait;
  for (;;) {
    if (!goes_on()) return false;
    const auto now = std::chrono::steady_clock::now();
    if (now >= until) return true;
    std::this_thread::sleep_until(std::min(now + kSlice, until));
  }
}

}  // namespace partita::lab
