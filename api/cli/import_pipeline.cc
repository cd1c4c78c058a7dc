#include "api/cli/import_pipeline.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>
#include <utility>

namespace partita {

namespace {

constexpr uint64_t kBusyWaitUs = 2'000;
constexpr uint64_t kRetryWaitUsMax = 1'000'000;
constexpr auto kAskToStopEvery = std::chrono::seconds(1);

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

ImportPipeline::ImportPipeline(Table table, const Options& options, const ImportPosition& start)
    : table_(std::move(table)),
      options_(options),
      last_offset_(start.offset),
      position_(start),
      imported_(start.imported),
      bad_(start.bad) {}

ImportPipeline::~ImportPipeline() { Drain(); }

void ImportPipeline::Submit(Entity entity, const Place& place) {
  const size_t key_hash = EntityKeyHash(entity);
  uint64_t sequence = 0;
  Write write{options_.action, std::move(entity), {}};
  {
    std::unique_lock lock(mutex_);
    while (!HasRoom(key_hash)) WaitABit(&lock);
    if (!failure_.ok() || stopping_) return;
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
  std::lock_guard lock(mutex_);
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
  while (in_flight_ > 0) WaitABit(&lock);
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
  // Under the lock: once it is released, the waiting destructor may end this object.
  completed_.notify_all();
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
  completed_.notify_all();
}

// The write, or the look at what it met, came to `status`, which is not ok.
void ImportPipeline::NotDone(uint64_t sequence, const Status& status) {
  Slot& slot = SlotOf(sequence);
  if (TriesAgain(status.code())) {
    TryAgain(sequence, status.retry_after_us());
  } else if (IsRefusal(status.code())) {
    Refuse(&slot, status);
  } else {
    if (failure_.ok() && !stopping_) failure_ = status;
    Finish(&slot, SlotState::kFailed);
  }
}

void ImportPipeline::TryAgain(uint64_t sequence, uint64_t wait_us) {
  SlotOf(sequence).state = SlotState::kRetry;
  retries_.push_back(sequence);
  retry_wait_us_ = std::max({retry_wait_us_, kBusyWaitUs, wait_us});
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

bool ImportPipeline::HasRoom(size_t key_hash) const {
  if (!failure_.ok() || stopping_) return true;  // Nothing is started any more.
  return in_flight_ < options_.writes_max && bytes_in_flight_ < options_.bytes_max &&
         !keys_in_flight_.contains(key_hash);
}

void ImportPipeline::WaitABit(std::unique_lock<std::mutex>* lock) {
  if (retries_.empty()) {
    if (completed_.wait_for(*lock, kAskToStopEvery) == std::cv_status::timeout) AskToStop();
    return;
  }
  std::vector<std::pair<uint64_t, Write>> writes, comparisons;
  for (uint64_t sequence : retries_) {
    Slot& slot = SlotOf(sequence);
    slot.state = SlotState::kInFlight;
    (slot.met.ok() ? writes : comparisons).emplace_back(sequence, slot.write);
  }
  retries_.clear();
  const auto wait = std::chrono::microseconds(std::min(std::exchange(retry_wait_us_, 0), kRetryWaitUsMax));
  lock->unlock();
  std::this_thread::sleep_for(wait);
  // What began first ends first, where little is let through.
  for (const auto& [sequence, write] : comparisons) StartComparison(sequence, write);
  for (auto& [sequence, write] : writes) Start(sequence, std::move(write));
  lock->lock();
  AskToStop();
}

bool ImportPipeline::TriesAgain(Code code) {
  if (code != Code::kBusy && code != Code::kThrottled) return false;
  if (!failure_.ok() || stopping_) return false;
  const auto now = std::chrono::steady_clock::now();
  if (!busy_since_) busy_since_ = now;
  return std::chrono::duration<double>(now - *busy_since_).count() < options_.busy_seconds_max;
}

void ImportPipeline::AskToStop() {
  if (options_.stop && options_.stop()) stopping_ = true;
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
