#include "api/cli/progress.h"

#include <algorithm>

#include "api/cli/figures.h"
#include "engine/base/assert.h"

namespace partita {

namespace {

constexpr double kRedrawSeconds = 0.1;
constexpr double kLineSeconds = 5;
constexpr size_t kBarWidth = 20;
constexpr std::string_view kEraseLine = "\r\x1b[K";

}  // namespace

double SecondsLeft(const Course& course) {
  PARTITA_ASSERT(course.done > 0);
  const double by_rate = static_cast<double>(course.total - std::min(course.done, course.total)) *
                         course.seconds / static_cast<double>(course.done);
  return std::max({0.0, by_rate, course.seconds_min - course.seconds});
}

Progress::Progress(Console& console, std::string label, Unit unit, uint64_t total)
    : console_(console), label_(std::move(label)), unit_(unit), total_(total) {}

void Progress::StartAt(uint64_t done, uint64_t records) {
  first_done_ = done;
  first_records_ = records;
}

void Progress::SetTotal(uint64_t total, double seconds_min) {
  total_ = total;
  seconds_min_ = seconds_min;
}

void Progress::Update(uint64_t done, uint64_t records) {
  const double interval = console_.err_is_terminal ? kRedrawSeconds : kLineSeconds;
  if (Elapsed(printed_) < interval || WouldWait(console_.err_descriptor)) return;
  printed_ = std::chrono::steady_clock::now();
  if (console_.err_is_terminal) {
    console_.err << kEraseLine << Line(done, records) << std::flush;
    bar_shown_ = true;
  } else {
    console_.err << Line(done, records) << std::endl;
  }
}

std::string Progress::Line(uint64_t done, uint64_t records) const {
  const double seconds = std::max(Elapsed(started_), 1e-3);
  std::string line = label_;
  if (total_ > 0) {
    const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total_));
    const auto full = static_cast<size_t>(share * kBarWidth);
    line += " [" + std::string(full, '#') + std::string(kBarWidth - full, '.') + "] ";
    line += std::to_string(static_cast<int>(share * 100)) + " %";
  }
  if (unit_ != Unit::kBytesAlone) line += "  " + FormatCount(records) + " records";
  if (unit_ != Unit::kRecords) line += "  " + FormatBytes(done);
  if (unit_ != Unit::kBytesAlone)
    line += "  " + FormatRate(static_cast<double>(records - first_records_), seconds, "records");
  if (total_ > 0 && done > first_done_) {
    const double left =
        SecondsLeft({done - first_done_, total_ - std::min(first_done_, total_), seconds, seconds_min_});
    if (left > 0) line += "  " + FormatSeconds(left) + " left";
  }
  return line;
}

void Progress::Message(std::string_view line) {
  // The line waits for its reader anyhow.
  if (bar_shown_) console_.err << kEraseLine;
  bar_shown_ = false;
  console_.err << line << "\n";
}

void Progress::Finish() {
  if (!bar_shown_ || WouldWait(console_.err_descriptor)) return;
  console_.err << kEraseLine << std::flush;
  bar_shown_ = false;
}

}  // namespace partita
