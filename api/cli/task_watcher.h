#pragma once
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "api/cli/console.h"
#include "api/cli/progress.h"
#include "engine/base/maintenance.h"

namespace partita {

// Watches a long task on a store's files for the user: progress on the error stream, and an end when he
// asks for one (Ctrl-C). Used by one thread; the console outlives it, and it the task.
class TaskWatcher {
 public:
  TaskWatcher(Console& console, std::string label) : console_(console), label_(std::move(label)) {
    console.interrupts.Arm();
  }

  // 0: as fast as it goes; `period_seconds`: what the task is spread over besides.
  TaskPace Pace(uint64_t bytes_per_second, uint64_t period_seconds = 0) {
    bytes_per_second_ = bytes_per_second;
    period_seconds_ = period_seconds;
    TaskPace pace;
    pace.bytes_per_second = bytes_per_second;
    pace.progress = [this](uint64_t done, uint64_t due) { return Watch(done, due); };
    return pace;
  }

  // Removes the bar.
  void Finish() {
    if (bar_.has_value()) bar_->Finish();
  }

 private:
  bool Watch(uint64_t done, uint64_t due) {
    if (!bar_.has_value()) bar_.emplace(console_, label_, Progress::Unit::kBytesAlone, due);
    const double at_rate =
        bytes_per_second_ == 0 ? 0 : static_cast<double>(due) / static_cast<double>(bytes_per_second_);
    bar_->SetTotal(due, std::max(at_rate, static_cast<double>(period_seconds_)));
    bar_->Update(done, 0);
    return !console_.interrupts.Requested();
  }

  Console& console_;
  const std::string label_;
  uint64_t bytes_per_second_ = 0, period_seconds_ = 0;
  std::optional<Progress> bar_;
};

}  // namespace partita
