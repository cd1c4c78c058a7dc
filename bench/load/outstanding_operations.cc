#include "bench/load/outstanding_operations.h"

#include <string>
#include <utility>

namespace partita::bench {

void OutstandingOperations::Run() {
  const uint32_t outstanding = context_.parallel;
  end_ns_ = NowNanos() + static_cast<uint64_t>(context_.config.seconds * 1e9);
  chains_ = std::vector<Chain>(outstanding);
  running_ = outstanding;
  for (uint32_t i = 0; i < outstanding; ++i) {
    chains_[i].random.seed(context_.generation + i);
    Start(&chains_[i]);
  }
  std::unique_lock lock(mutex_);
  while (running_ > 0) {
    changed_.wait(lock, [this] { return running_ == 0 || !refused_.empty(); });
    const std::vector<Chain*> refused = std::exchange(refused_, {});
    lock.unlock();
    for (Chain* chain : refused) Start(chain);
    lock.lock();
  }
}

void OutstandingOperations::AddTo(Measurement* measurement) const {
  for (const Chain& chain : chains_) chain.tally.AddTo(measurement, context_.config.value_size);
}

void OutstandingOperations::Start(Chain* chain) {
  const uint64_t index = chain->random() % context_.config.keys;
  if (kind_ == Kind::kRead) {
    chain->started_ns = NowNanos();
    context_.engine.GetAsync(KeysOf(index), [this, chain, index](const Result<std::string>& value) {
      if (value.ok()) chain->tally.wrong += context_.values.Check(index, *value) ? 0 : 1;
      if (value.code() == Code::kNotFound) ++chain->tally.missing;
      Ended(chain, value.code() == Code::kNotFound ? Status() : value.status());
    });
    return;
  }
  std::string value;
  context_.values.Fill(index, context_.generation + chain->tally.operations, &value);
  chain->started_ns = NowNanos();
  context_.engine.PutAsync(KeysOf(index), std::move(value), DurabilityLevel::kPower,
                           [this, chain](const Status& status) { Ended(chain, status); });
}

void OutstandingOperations::Ended(Chain* chain, const Status& status) {
  const uint64_t now = NowNanos();
  if (status.ok()) {
    chain->tally.latency.Record(now - chain->started_ns);
    ++chain->tally.operations;
    ++chain->tally.rows;
    chain->tally.rows_written += kind_ == Kind::kDurableWrite ? 1 : 0;
    if (now < end_ns_) return Start(chain);
  }
  // Notified under the lock: when Run sees the last one end, this object may go.
  const std::lock_guard lock(mutex_);
  if (status.code() == Code::kBusy && now < end_ns_) {
    refused_.push_back(chain);
  } else {
    if (!status.ok() && status.code() != Code::kBusy) chain->tally.Failed(status);
    --running_;
  }
  changed_.notify_one();
}

}  // namespace partita::bench
