#include "engine/io/thread_executor.h"

#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "engine/io/epoll_sockets.h"
#include "engine/io/errno_status.h"

namespace partita {

namespace {

constexpr int kEventsAtOnce = 128;
// epoll_wait counts in milliseconds; shorter sleeps are for timers that want more exactness.
constexpr uint64_t kCoarseNanos = 20'000'000;
constexpr uint64_t kNanosPerMilli = 1'000'000;

}  // namespace

ThreadExecutor::ThreadExecutor(TaskPool& io_threads) : IoWorker(io_threads) {}

ThreadExecutor::~ThreadExecutor() = default;

Status ThreadExecutor::SetUp() {
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  if (epoll_ < 0) return ErrnoStatus("epoll_create", "worker", errno);
  const int error = Watch(mailbox().wake_descriptor(), EPOLLIN, nullptr);
  watched_ = 0;
  if (error == 0) return Status();
  TearDown();
  return ErrnoStatus("epoll_ctl", "worker mailbox", error);
}

void ThreadExecutor::TearDown() {
  sockets_.reset();
  close(epoll_);
  epoll_ = -1;
}

Result<WorkerSockets*> ThreadExecutor::Sockets() {
  if (sockets_ == nullptr) sockets_ = std::make_unique<EpollSockets>(*this);
  return sockets_.get();
}

int ThreadExecutor::Watch(int descriptor, uint32_t events, ReadinessTaker* taker) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = taker;
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) != 0) return errno;
  ++watched_;
  return 0;
}

void ThreadExecutor::Unwatch(int descriptor) {
  epoll_event unused{};
  if (epoll_ctl(epoll_, EPOLL_CTL_DEL, descriptor, &unused) == 0) --watched_;
}

void ThreadExecutor::Poll() {
  if (watched_ > 0) TakeEvents(0);
}

void ThreadExecutor::Sleep(uint64_t wait_ns) {
  if (wait_ns == kForever) return TakeEvents(-1);
  if (wait_ns >= kCoarseNanos) {
    // A little early, so that the rest can be slept exactly.
    const uint64_t wait_ms = (wait_ns - kCoarseNanos / 2) / kNanosPerMilli;
    return TakeEvents(static_cast<int>(std::min<uint64_t>(wait_ms, 1'000'000)));
  }
  pollfd ready{epoll_, POLLIN, 0};
  const timespec timeout{0, static_cast<long>(wait_ns)};
  const int count = ppoll(&ready, 1, &timeout, nullptr);
  PARTITA_ASSERT(count >= 0 || errno == EINTR);
  if (count > 0) TakeEvents(0);
}

void ThreadExecutor::TakeEvents(int wait_ms) {
  std::array<epoll_event, kEventsAtOnce> events;
  const int count = epoll_wait(epoll_, events.data(), kEventsAtOnce, wait_ms);
  PARTITA_ASSERT(count >= 0 || errno == EINTR);
  for (int i = 0; i < count; ++i) {
    auto* taker = static_cast<ReadinessTaker*>(events[i].data.ptr);
    if (taker != nullptr) {
      taker->Ready(events[i].events);
      continue;
    }
    uint64_t wakes;  // Readable, so it cannot block.
    const ssize_t bytes = read(mailbox().wake_descriptor(), &wakes, sizeof wakes);
    PARTITA_ASSERT(bytes == sizeof wakes || errno == EINTR);
  }
}

}  // namespace partita
