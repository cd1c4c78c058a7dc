#include "engine/io/io_worker.h"

#include <algorithm>

#include "engine/io/system_clock.h"
#include "engine/io/thread_setup.h"

namespace partita {

namespace {

thread_local IoWorker* current_worker = nullptr;

constexpr uint64_t kSliceNanos = 200'000;
// A turn's work before the ring gets its submissions, so that one long queue delays no I/O.
constexpr int kRunnablesPerTurn = 128;

// Names what a worker does between its pieces of work: takes mail, fires timers, submits and reaps I/O.
consteval std::source_location BetweenPiecesOfWork() { return std::source_location::current(); }

}  // namespace

// What the new thread tells the one that started it.
struct StartReport {
  sem_t done;
  Status status;
  StartReport() { sem_init(&done, 0, 0); }
  ~StartReport() { sem_destroy(&done); }
};

IoWorker::~IoWorker() { PARTITA_ASSERT(!thread_.joinable()); }

IoWorker* IoWorker::Current() { return current_worker; }

Status IoWorker::Start(const std::string& name, int cpu) {
  PARTITA_TRY(mailbox_.Open());
  StartReport report;
  PARTITA_ASSIGN(thread_, StartThread(name, [this, cpu, &report] { ThreadMain(cpu, &report); }));
  while (sem_wait(&report.done) != 0) {
  }
  if (!report.status.ok()) thread_.join();
  return report.status;
}

void IoWorker::Stop() {
  if (!thread_.joinable()) return;
  struct StopRequest : Runnable {
    IoWorker* worker;
  } request;
  request.worker = this;
  request.run = [](Runnable* self) { static_cast<StopRequest*>(self)->worker->stopping_ = true; };
  Post(&request);
  thread_.join();
}

void IoWorker::Post(Runnable* work) {
  if (current_worker == this) {
    Enqueue(work);
  } else {
    mailbox_.Send(work);
  }
}

void IoWorker::PostAhead(Runnable* work) {
  if (current_worker != this || !may_post_ahead_) return Post(work);
  Runnable*& place = last_ahead_ == nullptr ? first_ : last_ahead_->next;
  work->next = place;
  place = work;
  last_ahead_ = work;
  if (work->next == nullptr) last_ = work;
}

void IoWorker::PostAt(uint64_t deadline_ns, Runnable* work) {
  PARTITA_ASSERT(current_worker == this);
  timers_.push_back(Timer{deadline_ns, timers_set_++, work});
  std::push_heap(timers_.begin(), timers_.end(), FiresLater);
}

uint64_t IoWorker::MonotonicNanos() { return SystemClock().MonotonicNanos(); }

bool IoWorker::ShouldYield() {
  const bool due = MonotonicNanos() - slices_.began_ns() >= kSliceNanos;
  slice_over_ = slice_over_ || due;
  return due;
}

void IoWorker::Enqueue(Runnable* work) {
  work->next = nullptr;
  if (first_ == nullptr) {
    first_ = work;
  } else {
    last_->next = work;
  }
  last_ = work;
}

void IoWorker::ThreadMain(int cpu, StartReport* report) {
  Status status = cpu == kAnyCpu ? Status() : PinThisThread(cpu);
  if (status.ok()) status = SetUp();
  const bool ready = status.ok();
  report->status = std::move(status);
  sem_post(&report->done);  // `report` may be gone from here on.
  if (!ready) return;
  current_worker = this;
  Executor::Scope scope(this);
  Loop();
  TearDown();
  current_worker = nullptr;
}

void IoWorker::Loop() {
  while (true) {
    TakeMail();
    FireTimers();
    RunSome();
    if (first_ != nullptr) {
      Poll();
      continue;
    }
    if (Finished()) return;
    SleepUntilWork();
  }
}

void IoWorker::TakeMail() {
  Runnable* work = mailbox_.TakeAll();
  while (work != nullptr) {
    Runnable* next = work->next;
    Enqueue(work);
    work = next;
  }
}

void IoWorker::FireTimers() {
  if (timers_.empty()) return;
  const uint64_t now = MonotonicNanos();
  while (!timers_.empty() && timers_.front().deadline_ns <= now) {
    std::pop_heap(timers_.begin(), timers_.end(), FiresLater);
    Enqueue(timers_.back().work);
    timers_.pop_back();
  }
}

void IoWorker::RunSome() {
  slice_over_ = false;
  if (first_ == nullptr) return;
  const uint64_t now = MonotonicNanos();
  if (slept_) {
    slices_.Begin(now);
  } else {
    ResumeRunnable::ForgetSuspended();
    slices_.End(BetweenPiecesOfWork(), now);  // A submission may do its I/O at once, in this thread.
  }
  slept_ = false;
  for (int i = 0; i < kRunnablesPerTurn && first_ != nullptr && !slice_over_; ++i) {
    Runnable* work = first_;
    first_ = work->next;
    may_post_ahead_ = last_ahead_ == nullptr;
    if (work == last_ahead_) last_ahead_ = nullptr;
    const std::source_location where = work->where;
    ResumeRunnable::ForgetSuspended();
    work->run(work);  // May free itself.
    slices_.End(where, MonotonicNanos());
  }
}

void IoWorker::SleepUntilWork() {
  uint64_t wait_ns = kForever;
  if (!timers_.empty()) {
    const uint64_t now = MonotonicNanos();
    const uint64_t deadline = timers_.front().deadline_ns;
    if (deadline <= now) return Poll();
    wait_ns = deadline - now;
  }
  if (!mailbox_.AnnounceSleep()) return Poll();
  slept_ = true;
  Sleep(wait_ns);
}

bool IoWorker::Finished() const {
  return stopping_ && timers_.empty() && offloads_ == 0 && NothingInFlight();
}

}  // namespace partita
