#pragma once
#include <time.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "engine/base/executor.h"

namespace partita {

// A thread with an event loop, as plain as can be, for tests of what runs on one. Work left in the
// queue at destruction still runs.
class TestThread : public Executor {
 public:
  TestThread() : thread_([this] { Loop(); }) {}
  ~TestThread() override {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

  void Post(Runnable* work) override {
    {
      const std::lock_guard lock(mutex_);
      work->next = nullptr;
      (last_ != nullptr ? last_->next : first_) = work;
      last_ = work;
    }
    changed_.notify_one();
  }
  void PostAt(uint64_t, Runnable* work) override { Post(work); }  // Time does not matter here.
  uint64_t MonotonicNanos() override {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
  }
  bool ShouldYield() override { return true; }

 private:
  void Loop() {
    const Executor::Scope scope(this);
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return first_ != nullptr || ending_; });
      if (first_ == nullptr) return;
      Runnable* work = first_;
      first_ = work->next;
      if (first_ == nullptr) last_ = nullptr;
      lock.unlock();
      work->run(work);
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  Runnable* first_ = nullptr;
  Runnable* last_ = nullptr;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace partita
