#include "api/cli/import_pipeline.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

#include "engine/base/executor.h"

namespace partita {

namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr uint64_t kBusyWaitUs = 2'000;
constexpr uint64_t kRetryWaitUsMax = 1'000'000;
constexpr auto kAskToStopEvery = std::chrono::seconds(1);
// Of records behind one that is not done, for each write that may be in flight: some 15 MB in all.
constexpr size_t kSlotsAWrite = 64;

size_t EntityKeyHash(const Entity& entity) {
  const std::hash<std::string> hash;
  return hash(entity.partition_key()) * 31 + hash(entity.row_key());
}

// The record's own fault: others may still be written.
bool IsRefusal(Code code) {
  return code == Code::kInvalidArgument || code == Code::kAlreadyExists || code == Code::kNotFound ||
         code == Code::kPreconditionFailed;
}

}  // namespace

ImportPipeline::ImportPipeline(Database& database, Table table, const Options& options,
                               const ImportPosition& start)
    : database_(database),
      table_(std::move(table)),
      options_(options),
      last_offset_(start.offset),
      ask_at_(SteadyClock::now() + kAskToStopEvery),
      position_(start),
      imported_(start.imported),
      bad_(start.bad) {}

ImportPipeline::~ImportPipeline() {
  Drain();
  database_.runtime().Run(retrier_.Join());
}

void ImportPipeline::Submit(Entity entity, const Place& place) {
  const size_t key_hash = EntityKeyHash(entity);
  uint64_t sequence = 0;
  Write write{options_.action, std::move(entity), {}};
  {
    std::unique_lock lock(mutex_);
    while (!IsOver() && (IsFull() || keys_in_flight_.contains(key_hash))) WaitForCompletion(&lock);
    if (IsOver()) return;
    Slot slot;
    slot.place = place;
    slot.write = write;
    slot.key_hash = key_hash;
    slot.bytes = static_cast<size_t>(place.next_offset - last_offset_);
    last_offset_ = place.next_offset;
    bytes_in_flight_ += slot.bytes;
    ++in_flight_;
    keys_in_flight_.insert(key_hash);
    sequence = first_sequence_ + slots_.size();
    slots_.push_back(std::move(slot));
  }
  Start(sequence, std::move(write));
}

void ImportPipeline::SkipBad(const Place& place) {
  std::unique_lock lock(mutex_);
  while (!IsOver() && IsFull()) WaitForCompletion(&lock);
  ++bad_;
  last_offset_ = place.next_offset;
  Slot slot;
  slot.place = place;
  slot.state = SlotState::kRefused;
  slots_.push_back(std::move(slot));
  AdvancePosition();
}

void ImportPipeline::Drain() {
  std::unique_lock lock(mutex_);
  while (in_flight_ > 0) WaitForCompletion(&lock);
}

// Called without the lock: the answer may come before it returns, on this thread.
void ImportPipeline::Start(uint64_t sequence, Write write) {
  table_.WriteAsync(std::move(write), options_.write,
                    [this, sequence](WriteResult result) { Complete(sequence, result); });
}

void ImportPipeline::Complete(uint64_t sequence, const WriteResult& result) {
  std::unique_lock lock(mutex_);
  Slot& slot = SlotOf(sequence);
  const Code code = result.status.code();
  if (code == Code::kAlreadyExists && options_.accept_equal) {
    slot.met = result.status;
    busy_since_.reset();
    const Write write = slot.write;
    lock.unlock();
    StartComparison(sequence, write);
    return;
  }
  if (result.ok()) {
    ++imported_;
    busy_since_.reset();
    Finish(&slot, SlotState::kWritten);
  } else {
    NotDone(sequence, result.status);
  }
}

// Without the lock, as Start.
void ImportPipeline::StartComparison(uint64_t sequence, const Write& write) {
  table_.GetAsync(
      write.entity.partition_key(), write.entity.row_key(),
      [this, sequence](const Result<Entity>& existing) { CompleteComparison(sequence, existing); });
}

void ImportPipeline::CompleteComparison(uint64_t sequence, const Result<Entity>& existing) {
  std::lock_guard lock(mutex_);
  Slot& slot = SlotOf(sequence);
  if (existing.ok() && existing.value() == slot.write.entity) {
    ++imported_;
    busy_since_.reset();
    Finish(&slot, SlotState::kWritten);
  } else if (existing.ok()) {
    busy_since_.reset();
    Refuse(&slot, slot.met);
  } else if (existing.code() == Code::kNotFound) {  // It has gone since.
    slot.met = Status();
    TryAgain(sequence, 0);
  } else {
    NotDone(sequence, existing.status());
  }
}

// The write, or the look at what it met, came to `status`, which is not ok.
void ImportPipeline::NotDone(uint64_t sequence, const Status& status) {
  Slot& slot = SlotOf(sequence);
  if (TriesAgain(status.code())) {
    TryAgain(sequence, status.retry_after_us());
  } else if (IsRefusal(status.code())) {
    // But for what breaks a rule, which is told before the store is asked, it got through.
    if (status.code() != Code::kInvalidArgument) busy_since_.reset();
    Refuse(&slot, status);
  } else {
    if (failure_.ok() && !stopping_) failure_ = status;
    Finish(&slot, SlotState::kFailed);
  }
}

void ImportPipeline::TryAgain(uint64_t sequence, uint64_t wait_us) {
  SlotOf(sequence).state = SlotState::kRetry;
  const auto wait = std::chrono::microseconds(std::clamp(wait_us, kBusyWaitUs, kRetryWaitUsMax));
  retries_.push_back({SteadyClock::now() + wait, sequence});
  if (std::exchange(retrier_runs_, true)) return;
  retrier_.Spawn(database_.runtime().shard_executor(ShardId(0)), RunRetries());
}

void ImportPipeline::Refuse(Slot* slot, const Status& status) {
  ++bad_;
  refusals_.push_back({slot->place.line, status});
  Finish(slot, SlotState::kRefused);
}

void ImportPipeline::Finish(Slot* slot, SlotState state) {
  slot->state = state;
  slot->write = Write();
  slot->met = Status();
  keys_in_flight_.erase(slot->key_hash);
  bytes_in_flight_ -= slot->bytes;
  --in_flight_;
  AdvancePosition();
  // Under the lock: once it is released, the waiting destructor may end this object.
  completed_.notify_all();
}

void ImportPipeline::AdvancePosition() {
  while (!slots_.empty()) {
    const Slot& front = slots_.front();
    const bool passes =
        front.state == SlotState::kWritten || (front.state == SlotState::kRefused && !options_.strict);
    if (!passes) return;
    position_.offset = front.place.next_offset;
    position_.line = front.place.next_line;
    ++(front.state == SlotState::kWritten ? position_.imported : position_.bad);
    slots_.pop_front();
    ++first_sequence_;
  }
}

// What is done may wait as well: behind the first that is not.
bool ImportPipeline::IsFull() const {
  return in_flight_ > 0 && (in_flight_ >= options_.writes_max || bytes_in_flight_ >= options_.bytes_max ||
                            slots_.size() >= kSlotsAWrite * options_.writes_max);
}

void ImportPipeline::WaitForCompletion(std::unique_lock<std::mutex>* lock) {
  completed_.wait_until(*lock, ask_at_);
  if (SteadyClock::now() < ask_at_) return;
  ask_at_ = SteadyClock::now() + kAskToStopEvery;
  if (options_.stop && options_.stop()) stopping_ = true;
}

Task<void> ImportPipeline::RunRetries() {
  while (true) {
    co_await SleepFor(kBusyWaitUs * 1'000);
    const std::vector<uint64_t> due = TakeDueRetries();
    for (const uint64_t sequence : due) {
      StartAgain(sequence);
      co_await YieldIfDue();
    }
    const std::lock_guard lock(mutex_);
    if (!retries_.empty()) continue;
    retrier_runs_ = false;
    co_return;
  }
}

std::vector<uint64_t> ImportPipeline::TakeDueRetries() {
  const std::lock_guard lock(mutex_);
  const auto now = SteadyClock::now();
  const auto due =
      std::partition(retries_.begin(), retries_.end(), [now](const Retry& retry) { return retry.due > now; });
  std::vector<uint64_t> sequences;
  for (auto retry = due; retry != retries_.end(); ++retry) sequences.push_back(retry->sequence);
  retries_.erase(due, retries_.end());
  // What began first ends first, where little is let through.
  std::sort(sequences.begin(), sequences.end());
  return sequences;
}

// Without the lock, as Start.
void ImportPipeline::StartAgain(uint64_t sequence) {
  std::unique_lock lock(mutex_);
  Slot& slot = SlotOf(sequence);
  slot.state = SlotState::kInFlight;
  const bool compares = !slot.met.ok();
  Write write = slot.write;
  lock.unlock();
  if (compares) {
    StartComparison(sequence, write);
  } else {
    Start(sequence, std::move(write));
  }
}

bool ImportPipeline::TriesAgain(Code code) {
  if (code != Code::kBusy && code != Code::kThrottled) return false;
  if (IsOver()) return false;
  const auto now = SteadyClock::now();
  if (!busy_since_) busy_since_ = now;
  return std::chrono::duration<double>(now - *busy_since_).count() < options_.busy_seconds_max;
}

ImportPosition ImportPipeline::position() const {
  std::lock_guard lock(mutex_);
  return position_;
}

uint64_t ImportPipeline::imported() const {
  std::lock_guard lock(mutex_);
  return imported_;
}

uint64_t ImportPipeline::bad() const {
  std::lock_guard lock(mutex_);
  return bad_;
}

std::vector<ImportPipeline::Refusal> ImportPipeline::TakeRefusals() {
  std::lock_guard lock(mutex_);
  std::vector<Refusal> taken = std::exchange(refusals_, {});
  std::sort(taken.begin(), taken.end(), [](const Refusal& a, const Refusal& b) { return a.line < b.line; });
  return taken;
}

Status ImportPipeline::failure() const {
  std::lock_guard lock(mutex_);
  return failure_;
}

}  // namespace partita
