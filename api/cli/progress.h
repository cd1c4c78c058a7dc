#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "api/cli/console.h"

namespace partita {

// How far a command is after so many seconds, and how long it takes at least because it is held back. A
// large file is counted at once, and then waited for, so that the rate until now tells too little.
struct Course {
  uint64_t done = 0, total = 0;
  double seconds = 0;
  double seconds_min = 0;
};
// REQUIRES: course.done > 0.
double SecondsLeft(const Course& course);

// How far a long command is, on the error stream: a bar with rate and time left, drawn in place ten times a
// second, when that is a terminal; elsewhere a line every five seconds. What would wait for a reader is left
// out, but for messages. Used by one thread.
//
//   import [##########..........]  52 %  31,204 records  26.1 MiB  61,000 records/s  0:01 left
class Progress {
 public:
  // `total` in whatever unit Update counts; 0: not known.
  enum class Unit : uint8_t { kBytes, kRecords, kBytesAlone };  // The last: nobody counts records.
  Progress(Console& console, std::string label, Unit unit, uint64_t total);
  ~Progress() { Finish(); }

  // `done` counts to the total, `records` is what was handled so far. Looks at the clock each time: what is
  // called for each page or block may be long in coming again.
  void Update(uint64_t done, uint64_t records);
  // Prints a line of its own, such as an error, without disturbing the bar.
  void Message(std::string_view line);
  // Removes the bar; where that would wait, it is left to the next call of this or Message. Idempotent.
  void Finish();

  double seconds() const { return Elapsed(started_); }

  // For a command that learns on its way how much there is to do, and is held back to take so long at least.
  void SetTotal(uint64_t total, double seconds_min);

  // For a resumed command: rates and time left count from here.
  void StartAt(uint64_t done, uint64_t records);

 private:
  using Time = std::chrono::steady_clock::time_point;
  static double Elapsed(Time since) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count();
  }
  std::string Line(uint64_t done, uint64_t records) const;

  Console& console_;
  const std::string label_;
  const Unit unit_;
  uint64_t total_;
  double seconds_min_ = 0;
  const Time started_ = std::chrono::steady_clock::now();
  Time printed_ = started_;
  uint64_t first_done_ = 0, first_records_ = 0;
  bool bar_shown_ = false;
};

}  // namespace partita
