#include "api/page_pause.h"

#include <algorithm>

#include "engine/base/assert.h"
#include "engine/base/executor.h"

namespace partita {

Task<Status> PauseBeforePage(Clock& clock, const Status& refused, uint64_t deadline_ns,
                             const std::atomic<bool>* cancelled) {
  constexpr uint64_t kPauseNanosMax = 1'000'000'000;
  constexpr uint64_t kLookNanos = 5'000'000;  // Between two looks at `cancelled`.
  PARTITA_ASSERT(refused.code() == Code::kThrottled);
  uint64_t now = clock.MonotonicNanos();
  const uint64_t pause = std::min(refused.retry_after_us() * 1'000, kPauseNanosMax);
  for (const uint64_t end = std::min(now + pause, deadline_ns); now < end; now = clock.MonotonicNanos()) {
    co_await SleepFor(cancelled == nullptr ? end - now : std::min(end - now, kLookNanos));
    if (cancelled != nullptr && cancelled->load(std::memory_order_relaxed)) {
      co_return Status::Cancelled("the query was cancelled");
    }
  }
  co_return Status();
}

}  // namespace partita
