#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/base/executor.h"

namespace partita {

// Runs what is posted when told to.
class LateExecutor : public Executor {
 public:
  void Post(Runnable* work) override { work_.push_back(work); }
  void PostAt(uint64_t, Runnable*) override { FAIL(); }
  uint64_t MonotonicNanos() override { return 0; }
  bool ShouldYield() override { return false; }
  size_t RunAll() {
    const std::vector<Runnable*> work = std::exchange(work_, {});
    for (Runnable* one : work) one->run(one);
    return work.size();
  }

 private:
  std::vector<Runnable*> work_;
};

}  // namespace partita
