#pragma once
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

  TaskPace Pace(uint64_t bytes_per_second) {
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
    bar_->Update(done, 0);
    return !console_.interrupts.Requested();
  }

  Console& console_;
  const std::string label_;
  std::optional<Progress> bar_;
};

}  // namespace partita
