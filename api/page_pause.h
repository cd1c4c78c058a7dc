#pragma once
#include <atomic>
#include <cstdint>

#include "engine/base/clock.h"
#include "engine/base/status.h"
#include "engine/base/task.h"

namespace partita {

// Calls that go through many pages by themselves are within throughput targets, too: the first page is
// admitted or refused as any other call, and behind it they take what flows in, page by page. To refuse them
// amid it would have them begin anew, deeper in debt, and never end.

// Waits for a page that was `refused`, with kThrottled, to be asked for again: as long as that says, but
// never for more than a second, since targets may be changed meanwhile, nor beyond `deadline_ns` by `clock`.
// kCancelled soon after `*cancelled`, which may be null, is true.
Task<Status> PauseBeforePage(Clock& clock, const Status& refused, uint64_t deadline_ns,
                             const std::atomic<bool>* cancelled);

}  // namespace partita
