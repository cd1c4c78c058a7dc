#include "engine/io/sim_scheduler.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "engine/base/assert.h"

namespace partita {

SimExecutor::SimExecutor(SimScheduler& scheduler, std::string name, uint32_t index)
    : scheduler_(scheduler), name_(std::move(name)), index_(index) {}

void SimExecutor::Post(Runnable* work) { scheduler_.Enqueue(this, work); }

void SimExecutor::PostAt(uint64_t deadline_ns, Runnable* work) { scheduler_.At(deadline_ns, this, work); }

uint64_t SimExecutor::MonotonicNanos() { return scheduler_.now_ns(); }

bool SimExecutor::ShouldYield() { return scheduler_.random_.Chance(scheduler_.options_.yield_chance); }

SimScheduler::SimScheduler(const SimOptions& options)
    : options_(options), random_(options.seed), trace_hash_(options.seed) {}

SimScheduler::~SimScheduler() = default;

SimExecutor& SimScheduler::NewExecutor(std::string name) {
  const uint32_t index = static_cast<uint32_t>(executors_.size());
  executors_.push_back(std::make_unique<SimExecutor>(*this, std::move(name), index));
  return *executors_.back();
}

void SimScheduler::Enqueue(SimExecutor* executor, Runnable* work) {
  work->next = nullptr;
  if (executor->last_ != nullptr) {
    executor->last_->next = work;
  } else {
    executor->first_ = work;
    ready_.push_back(executor);
  }
  executor->last_ = work;
}

void SimScheduler::At(uint64_t deadline_ns, SimExecutor* executor, Runnable* work) {
  timed_.push_back(Timed{deadline_ns, timed_order_++, executor, work});
  std::push_heap(timed_.begin(), timed_.end());
}

void SimScheduler::FireDue() {
  while (!timed_.empty() && timed_.front().deadline_ns <= now_ns_) {
    const Timed due = timed_.front();
    std::pop_heap(timed_.begin(), timed_.end());
    timed_.pop_back();
    if (due.executor != nullptr) {
      Enqueue(due.executor, due.work);
    } else {
      due.work->run(due.work);
    }
  }
}

bool SimScheduler::Step() {
  FireDue();
  if (ready_.empty()) return false;
  const uint64_t chance = random_.Next();
  const size_t pick = static_cast<size_t>(((chance >> 32) * ready_.size()) >> 32);
  SimExecutor* executor = ready_[pick];
  Runnable* work = executor->first_;
  executor->first_ = work->next;
  if (executor->first_ == nullptr) {
    executor->last_ = nullptr;
    ready_[pick] = ready_.back();
    ready_.pop_back();
  }
  now_ns_ += options_.step.min_ns +
             (((chance & 0xffffffff) * (options_.step.max_ns - options_.step.min_ns + 1)) >> 32);
  Trace(now_ns_ ^ (uint64_t{executor->index_} << 56));
  if (++steps_ >= options_.steps_max) FailTooManySteps();
  const Executor::Scope scope(executor);
  work->run(work);
  return true;
}

bool SimScheduler::AdvanceToNextDeadline(uint64_t limit_ns) {
  if (timed_.empty() || timed_.front().deadline_ns > limit_ns) return false;
  AdvanceTo(timed_.front().deadline_ns);
  FireDue();
  return true;
}

std::string SimScheduler::Describe() const {
  std::string text;
  for (const auto& executor : executors_) {
    size_t queued = 0;
    for (const Runnable* work = executor->first_; work != nullptr; work = work->next) ++queued;
    text.append("  ").append(executor->name()).append(": ").append(std::to_string(queued)).append(" ready\n");
  }
  std::vector<Timed> timed = timed_;
  std::sort(timed.begin(), timed.end(), [](const Timed& a, const Timed& b) { return b < a; });
  for (const Timed& due : timed) {
    text.append("  at ").append(std::to_string(due.deadline_ns)).append(" ns: ");
    text.append(due.executor != nullptr ? due.executor->name() + ", a timer\n" : "a device, an operation\n");
  }
  return text;
}

void SimScheduler::FailTooManySteps() const {
  std::fprintf(stderr,
               "simulator: seed %llu: %llu steps taken (SimOptions::steps_max), time %llu ns: most likely a "
               "loop that never ends\n%s",
               static_cast<unsigned long long>(options_.seed), static_cast<unsigned long long>(steps_),
               static_cast<unsigned long long>(now_ns_), Describe().c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace partita
