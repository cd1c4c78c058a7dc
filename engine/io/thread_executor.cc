#include "engine/io/thread_executor.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

namespace partita {

void ThreadExecutor::Sleep(uint64_t wait_ns) {
  pollfd wake{mailbox().wake_descriptor(), POLLIN, 0};
  timespec timeout{static_cast<time_t>(wait_ns / 1'000'000'000), static_cast<long>(wait_ns % 1'000'000'000)};
  int ready = ppoll(&wake, 1, wait_ns == kForever ? nullptr : &timeout, nullptr);
  PARTITA_ASSERT(ready >= 0 || errno == EINTR);
  if (ready <= 0) return;
  uint64_t count;
  ssize_t bytes = read(mailbox().wake_descriptor(), &count, sizeof count);  // Readable, so it cannot block.
  PARTITA_ASSERT(bytes == sizeof count || errno == EINTR);
}

}  // namespace partita
