#include "bench/load/outstanding_writes.h"

#include <string>
#include <utility>

namespace partita::bench {

void OutstandingWrites::Run(uint32_t outstanding) {
  end_ns_ = NowNanos() + static_cast<uint64_t>(load_.seconds * 1e9);
  chains_ = std::vector<Chain>(outstanding);
  running_ = outstanding;
  for (uint32_t i = 0; i < outstanding; ++i) {
    chains_[i].random.seed(load_.seed + i);
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

void OutstandingWrites::AddTo(Measurement* measurement) const {
  for (const Chain& chain : chains_) chain.tally.AddTo(measurement, values_->value_size());
}

void OutstandingWrites::Start(Chain* chain) {
  const uint64_t index = chain->random() % load_.keys;
  std::string value;
  values_->Fill(index, load_.generation + chain->tally.operations, &value);
  chain->started_ns = NowNanos();
  engine_->PutAsync(KeysOf(index), std::move(value), DurabilityLevel::kPower,
                    [this, chain](const Status& status) { Ended(chain, status); });
}

void OutstandingWrites::Ended(Chain* chain, const Status& status) {
  const uint64_t now = NowNanos();
  if (status.ok()) {
    chain->tally.latency.Record(now - chain->started_ns);
    ++chain->tally.operations;
    ++chain->tally.rows;
    ++chain->tally.rows_written;
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
