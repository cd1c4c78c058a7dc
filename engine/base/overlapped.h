#pragma once
#include <atomic>
#include <memory>

#include "engine/base/event.h"
#include "engine/base/executor.h"
#include "engine/base/status.h"
#include "engine/base/task.h"
#include "engine/base/task_group.h"

namespace partita {

// An operation on a file that goes on beside its owner. On an executor's thread it is begun at once; in
// blocking mode a helper performs it, or its owner, who needs what comes of it before a helper has begun: so
// nobody waits for a helper that is busy but who joins the group, whose tasks end when helpers have seen that
// nothing is left to do; until then they hold what the operation holds.
//
// Held by its owner and, while it is performed, by who does that: an owner that goes away leaves everything
// that the operation uses to it (F62).
//
//   `claimed_`: whoever changes it performs the operation; what that does is handed on by `done_`.
class Overlapped {
 public:
  virtual ~Overlapped() = default;

  // `operation` is performed by `helpers`, which run it in blocking mode, unless nobody else holds it by
  // then.
  static void Start(TaskGroup& group, Executor& helpers, std::shared_ptr<Overlapped> operation);

  // It succeeded: Arrive would say so at once.
  bool is_there() const { return done_.is_set() && status_.ok(); }
  // Somebody performs it, or has.
  bool is_claimed() const { return claimed_.load(std::memory_order_relaxed); }
  // Ends when the operation has; performs it when nobody has begun to. Called by the owner alone.
  Task<Status> Arrive();
  // True: nobody has begun to perform it, and nobody will. Called by the owner, who must not arrive then.
  bool Forgo() { return Claim(); }

 private:
  friend class TimedWaits;  // Waits for `done_` in its own way, so it claims and performs as Arrive does.
  virtual Task<Status> Perform() = 0;
  static Task<void> Run(std::shared_ptr<Overlapped> operation);
  bool Claim() { return !claimed_.exchange(true, std::memory_order_relaxed); }
  Task<void> PerformClaimed();

  std::atomic<bool> claimed_{false};
  Status status_;  // Written before `done_` is set.
  Event done_;
};

}  // namespace partita
