#pragma once
#include <chrono>
#include <cstdint>
#include <optional>

#include "api/cli/console.h"
#include "api/cli/progress.h"

namespace partita {

// Shows how far the opening of a store is, where it takes long, and waits for no reader of that: the store's
// own threads call Watch, one at a time, while the command's waits for the opening, which calls the rest. The
// console outlives it.
class OpeningWatcher {
 public:
  // From so many seconds on it is shown: most openings are shorter.
  static constexpr double kLongSeconds = 1;
  explicit OpeningWatcher(Console& console, double long_seconds = kLongSeconds)
      : console_(console), long_seconds_(long_seconds) {}

  void Watch(uint64_t done, uint64_t due) {
    if (!bar_.has_value()) {
      if (std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count() < long_seconds_)
        return;
      bar_.emplace(console_, "opening the store", Progress::Unit::kBytesAlone, due);
      bar_->StartAt(done, 0);
    }
    bar_->SetTotal(due, /*seconds_min=*/0);
    bar_->Update(done, 0);
    TellThatItStops();
  }

  // Removes the bar.
  void Finish() {
    if (bar_.has_value()) bar_->Finish();
  }

 private:
  // An opening is not interrupted: a command that notes interrupts by now ends behind it.
  void TellThatItStops() {
    if (stop_told_ || !console_.interrupts.Requested() || WouldWait(console_.err_descriptor)) return;
    stop_told_ = true;
    bar_->Message("stopping once the store is open; again to stop at once");
  }

  Console& console_;
  const double long_seconds_;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::optional<Progress> bar_;
  bool stop_told_ = false;
};

}  // namespace partita
