#pragma once
#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>

namespace partita::lab {

// Asked some times a second by what takes long; false: end it.
using GoesOn = std::function<bool()>;

// Sleeps until then, but ends within a twentieth of a second, and with false, when `goes_on` says so.
inline bool SlicedWaitUntil(std::chrono::steady_clock::time_point until, const GoesOn& goes_on) {
  constexpr std::chrono::milliseconds kSlice{50};
  for (;;) {
    if (!goes_on()) return false;
    const auto now = std::chrono::steady_clock::now();
    if (now >= until) return true;
    std::this_thread::sleep_until(std::min<std::chrono::steady_clock::time_point>(now + kSlice, until));
  }
}

// Sleeps so long, likewise.
inline bool SlicedWait(std::chrono::microseconds wait, const GoesOn& goes_on) {
  return SlicedWaitUntil(std::chrono::steady_clock::now() + wait, goes_on);
}

}  // namespace partita::lab
