#include "engine/io/task_pool.h"

#include <sched.h>

#include <cerrno>
#include <system_error>

#include "engine/io/errno_status.h"
#include "engine/io/system_clock.h"
#include "engine/io/thread_setup.h"

namespace partita {

TaskPool::~TaskPool() {
  PARTITA_ASSERT(threads_.empty());
  if (started_) sem_destroy(&items_);
}

Status TaskPool::Start(const std::string& name, uint32_t threads, ThreadPriority priority) {
  PARTITA_ASSERT(!started_);
  started_ = true;
  sem_init(&items_, /*pshared=*/0, /*value=*/0);
  for (uint32_t i = 0; i < threads; ++i) {
    const std::string thread_name = name + "-" + std::to_string(i);
    PARTITA_ASSIGN(std::thread thread, StartThread(thread_name, [this, priority] { ThreadMain(priority); }));
    threads_.push_back(std::move(thread));
  }
  return Status();
}

void TaskPool::Close() {
  closing_.store(true);
  for (size_t i = 0; i < threads_.size(); ++i) sem_post(&items_);
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void TaskPool::Post(Runnable* work) {
  Runnable* head = inbox_.load(std::memory_order_relaxed);
  do {
    work->next = head;
  } while (!inbox_.compare_exchange_weak(head, work, std::memory_order_release, std::memory_order_relaxed));
  // EOVERFLOW would need two billion items.
  sem_post(&items_);
}

void TaskPool::PostAt(uint64_t, Runnable*) { PARTITA_ASSERT(!"a pool has no timers"); }

uint64_t TaskPool::MonotonicNanos() { return SystemClock().MonotonicNanos(); }

void TaskPool::ThreadMain(ThreadPriority priority) {
  if (priority == ThreadPriority::kIdle) {
    // Going down needs no privilege. Should the kernel refuse, work is done at ordinary priority:
    // slower commits beside it, nothing else.
    sched_param none{};
    pthread_setschedparam(pthread_self(), SCHED_IDLE, &none);
  }
  while (true) {
    while (sem_wait(&items_) != 0) PARTITA_ASSERT(errno == EINTR);
    // Not one item a token: a thread of idle class that lost its core between its item and its token would
    // leave the last one waiting.
    while (Runnable* work = TakeOne()) work->run(work);
    if (closing_.load()) return;
  }
}

Runnable* TaskPool::TakeOne() {
  std::lock_guard lock(mutex_);
  if (first_ == nullptr) {
    Runnable* newest = inbox_.exchange(nullptr, std::memory_order_acquire);
    last_ = newest;
    while (newest != nullptr) {
      Runnable* next = newest->next;
      newest->next = first_;
      first_ = newest;
      newest = next;
    }
  }
  Runnable* work = first_;
  if (work != nullptr) first_ = work->next;
  return work;
}

}  // namespace partita
