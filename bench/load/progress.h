#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "bench/load/measurement.h"

namespace partita::bench {

// Tells, while threads run a load of many minutes, how much they did in each and which operation took
// longest.
class Progress {
 public:
  // What one thread tells; written by it alone, but for `longest_ns`, which is taken away at each line.
  struct alignas(64) Teller {
    std::atomic<uint64_t> operations{0};
    std::atomic<uint64_t> longest_ns{0};

    void Note(uint64_t nanos) {
      operations.store(operations.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      if (nanos > longest_ns.load(std::memory_order_relaxed))
        longest_ns.store(nanos, std::memory_order_relaxed);
    }
  };

  using Show = std::function<void(const std::string& line)>;
  static constexpr std::chrono::milliseconds kEvery{60'000};

  explicit Progress(uint32_t tellers, Show show = ShowOnStandardError,
                    std::chrono::milliseconds every = kEvery);
  ~Progress();

  Teller* teller(uint32_t index) { return &tellers_[index]; }

 private:
  static void ShowOnStandardError(const std::string& line);
  void Run(const Show& show, std::chrono::milliseconds every);
  std::string TakeLine(double passed, double since_last);
  double TakeStolenShare();

  std::vector<Teller> tellers_;
  uint64_t shown_ = 0;                                   // Operations in earlier lines.
  ProcessorTime processor_time_ = ProcessorTime::Now();  // At the line before.
  std::mutex mutex_;
  std::condition_variable ended_changed_;
  bool ended_ = false;  // Guarded by mutex_.
  std::thread thread_;
};

}  // namespace partita::bench
