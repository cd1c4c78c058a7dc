#include "engine/base/overlapped.h"

#include <utility>

namespace partita {

void Overlapped::Start(TaskGroup& group, Executor& helpers, std::shared_ptr<Overlapped> operation) {
  if (Executor::Current() != nullptr) {
    group.StartHere(Run(std::move(operation)));
  } else {
    group.Spawn(helpers, Run(std::move(operation)));
  }
}

Task<Status> Overlapped::Arrive() {
  if (Claim()) {
    co_await PerformClaimed();
  } else {
    co_await done_.Wait();
  }
  co_return status_;
}

Task<void> Overlapped::Run(std::shared_ptr<Overlapped> operation) {
  const bool wanted = operation.use_count() > 1;  // The owner still has it.
  if (wanted && operation->Claim()) co_await operation->PerformClaimed();
}

Task<void> Overlapped::PerformClaimed() {
  status_ = co_await Perform();
  done_.Set();
}

}  // namespace partita
