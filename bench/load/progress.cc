#include "bench/load/progress.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "bench/load/format_text.h"

namespace partita::bench {

Progress::Progress(uint32_t tellers, Show show, std::chrono::milliseconds every)
    : tellers_(tellers), thread_([this, show = std::move(show), every] { Run(show, every); }) {}

Progress::~Progress() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  ended_changed_.notify_one();
  thread_.join();
}

void Progress::ShowOnStandardError(const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); }

void Progress::Run(const Show& show, std::chrono::milliseconds every) {
  using std::chrono::steady_clock;
  const auto started = steady_clock::now();
  auto last = started;
  std::unique_lock lock(mutex_);
  while (!ended_changed_.wait_until(lock, last + every, [this] { return ended_; })) {
    const auto now = steady_clock::now();
    const auto in_seconds = [](steady_clock::duration time) {
      return std::chrono::duration<double>(time).count();
    };
    show(TakeLine(in_seconds(now - started), in_seconds(now - last)));
    last = now;
  }
}

std::string Progress::TakeLine(double passed, double since_last) {
  uint64_t operations = 0, longest_ns = 0;
  for (Teller& teller : tellers_) {
    operations += teller.operations.load(std::memory_order_relaxed);
    longest_ns = std::max(longest_ns, teller.longest_ns.exchange(0, std::memory_order_relaxed));
  }
  const double rate = static_cast<double>(operations - shown_) / since_last;
  shown_ = operations;
  return Format("  %.0f s: %s operations a second, the longest %.1f ms; %.1f %% of the processors stolen",
                passed, ShortNumber(rate).c_str(), static_cast<double>(longest_ns) * 1e-6,
                TakeStolenShare() * 100);
}

double Progress::TakeStolenShare() {
  const ProcessorTime before = std::exchange(processor_time_, ProcessorTime::Now());
  const uint64_t all = processor_time_.all - before.all;
  return all == 0 ? 0
                  : static_cast<double>(processor_time_.stolen - before.stolen) / static_cast<double>(all);
}

}  // namespace partita::bench
