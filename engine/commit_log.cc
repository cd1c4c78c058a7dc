#include "engine/commit_log.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "engine/base/assert.h"
#include "engine/batch_record.h"

namespace partita {

namespace {

// Versions of lower levels are exposed at most this far ahead of what is flushed (F18, DESIGN 2).
constexpr uint64_t kLeaseTicks = 10 * kTicksPerSecond;
// While the clock runs ahead of the wall clock (after a restart within a lease) leases are short,
// so that the lead does not grow with every restart.
constexpr uint64_t kShortLeaseTicks = kTicksPerSecond / 100;

// At most this much log stays unflushed (DESIGN 5); how long, commit_log_tick.cc says.
constexpr uint64_t kUnflushedBytesMax = 4u << 20;
// Between two rounds at most so many turns of the worker are given to those who are just coming: no timer,
// and nothing at all for a lone writer, who leaves no work behind a round.
constexpr int kGatherTurnsMax = 4;

// What one round writes at most, so that a round ends in a few milliseconds.
constexpr uint64_t kRoundBytesMax = 4u << 20;

// So often who finds the tail token taken looks again before it asks for a flush. Its holder copies a few
// records, which takes microseconds unless the kernel took its core; a flush takes the device for
// milliseconds. A worker does not wait for a core that was taken.
constexpr int kTailTriesMax = 1024;
constexpr int kTailTriesOnWorker = 256;

// Retrying to leave the fence: doubling from 50 ms to 2 s, so writes resume well within 10 s of
// space returning (F56).
constexpr uint64_t kFenceRetryNanosMin = 50'000'000;
constexpr uint64_t kFenceRetryNanosMax = 2'000'000'000;

// A trim that was not let in for 10 ms goes next.
constexpr uint64_t kTrimPollNanos = 100'000;
constexpr int kTrimTriesMax = 100;

// What a record takes in the tail: its head, and what aligns it (wal/tail_format.h).
constexpr uint64_t TailBytes(uint64_t payload_bytes) { return payload_bytes + 44; }

Status InDoubt(const Status& why) {
  return Status::Unknown("the outcome of the write is in doubt: " + why.ToString());
}

// The last moment to find that memory changed what was decided: with a seal it would pass for what was meant.
// It is as a write that failed (F20), and stays one until the process ends.
Status CheckBeforeSeal(const std::vector<LogRecord>& records) {
  for (const LogRecord& record : records) PARTITA_TRY(CheckLoggedVersion(record));
  return Status();
}

}  // namespace

// `co_await WaitFor(log, &waiter)`.
class CommitLog::WaitFor {
 public:
  WaitFor(CommitLog& log, VisibleWaiter* waiter, std::source_location at = std::source_location::current())
      : log_(log), waiter_(waiter), at_(at) {}
  bool await_ready() {
    if (!waiter_->waiter.blocking()) return false;
    if (log_.Enqueue(waiter_)) waiter_->waiter.BlockUntilWoken(kSpins);
    return true;
  }
  bool await_suspend(std::coroutine_handle<> handle) {
    waiter_->waiter.SuspendAs(handle, at_);
    return log_.Enqueue(waiter_);
  }
  void await_resume() noexcept {}

 private:
  // A commit takes tens of microseconds of I/O: spinning for it only takes the core from others.
  static constexpr int kSpins = 0;
  CommitLog& log_;
  VisibleWaiter* waiter_;
  std::source_location at_;
};

// Writers are slowed from a quarter of the tail on (Shard::WallsAhead), which must be seen to by then.
CommitLog::CommitLog(LogStore& log, Executor& worker, Clock& clock, uint64_t io_deadline_ns,
                     uint64_t tail_bytes)
    : log_(log),
      worker_(worker),
      clock_(clock),
      io_deadline_ns_(io_deadline_ns),
      flush_from_bytes_(std::min(kUnflushedBytesMax / 2, tail_bytes / 4)) {}

CommitLog::~CommitLog() { PARTITA_ASSERT(waiters_ == nullptr); }

void CommitLog::Start(LogPosition last, Version version_max) {
  decided_ = visible_ = last.value;
  appended_ = taken_ = last.value;
  base_ = last.value + 1;
  visible_version_ = version_max.value;
  last_version_ = version_max.value;
}

Version CommitLog::LeaseNow() const {
  uint64_t last = last_version_.load(std::memory_order_relaxed);
  bool ahead = last > clock_.WallTicks();
  return Version(last + (ahead ? kShortLeaseTicks : kLeaseTicks));
}

LogPosition CommitLog::Append(Decided decided) {
  uint64_t size = decided.payload.size();
  const Version version = decided.version;
  bool power = decided.level == DurabilityLevel::kPower;
  if (!power) lower_levels_used_.store(true, std::memory_order_relaxed);
  uint64_t position;
  bool visible_at_once = false;
  {
    std::lock_guard lock(mutex_);
    PARTITA_ASSERT(last_version_.load(std::memory_order_relaxed) < version.value);
    last_version_.store(version.value, std::memory_order_relaxed);
    position = decided_.load(std::memory_order_relaxed) + 1;
    visible_at_once = decided.level == DurabilityLevel::kMemory &&
                      visible_.load(std::memory_order_relaxed) + 1 == position &&
                      version <= log_.durable_ceiling();
    records_.push_back(std::move(decided));
    unlogged_bytes_.store(unlogged_bytes_.load(std::memory_order_relaxed) + size, std::memory_order_relaxed);
    unflushed_bytes_.store(unflushed_bytes() + TailBytes(size), std::memory_order_relaxed);
    if (power) last_power_.store(position, std::memory_order_relaxed);
    decided_.store(position, std::memory_order_release);
    if (visible_at_once) {
      visible_version_.store(version.value, std::memory_order_release);
      visible_.store(position, std::memory_order_release);
    }
  }
  if (power) WantFlush(position);
  return LogPosition(position);
}

bool CommitLog::Enqueue(VisibleWaiter* waiter) {
  std::lock_guard lock(mutex_);
  uint64_t reached =
      waiter->until_durable ? log_.durable_end().value : visible_.load(std::memory_order_relaxed);
  if (reached >= waiter->position) return false;
  if (in_doubt_.load(std::memory_order_relaxed) && fenced()) {
    doubt_through_ = std::max(doubt_through_, waiter->position);
    waiter->status = InDoubt(FenceReasonLocked());
    return false;
  }
  waiter->next = waiters_;
  waiters_ = waiter;
  return true;
}

void CommitLog::Publish() {
  VisibleWaiter* wake = nullptr;
  {
    std::lock_guard lock(mutex_);
    uint64_t durable = log_.durable_end().value;
    uint64_t kernel = std::max(durable, log_.kernel_end().value);
    Version ceiling = log_.durable_ceiling();
    uint64_t visible = visible_.load(std::memory_order_relaxed);
    uint64_t decided = decided_.load(std::memory_order_relaxed);
    uint64_t version = visible_version_.load(std::memory_order_relaxed);
    PARTITA_ASSERT(durable <= decided);
    while (visible < decided) {
      const Decided& record = records_[visible + 1 - base_];
      bool done = visible + 1 <= durable;
      if (!done && record.version <= ceiling) {
        done = record.level == DurabilityLevel::kMemory ||
               (record.level == DurabilityLevel::kProcess && visible + 1 <= kernel);
      }
      if (!done) break;
      ++visible;
      version = record.version.value;
    }
    // The version first: a reader that sees the position may rely on the version.
    visible_version_.store(version, std::memory_order_release);
    visible_.store(visible, std::memory_order_release);
    // Visible first: a reader that meets no doubt any more sees what was in doubt (F15).
    if (visible >= doubt_through_ && !fenced()) in_doubt_.store(false, std::memory_order_release);
    uint64_t flushed_bytes = 0;
    while (base_ <= std::min(durable, visible)) {
      flushed_bytes += TailBytes(records_.front().payload.size());
      records_.pop_front();
      ++base_;
    }
    unflushed_bytes_.store(unflushed_bytes() - flushed_bytes, std::memory_order_relaxed);
    // Else each of many writers who goes by the tail would look through all who wait for a flush.
    const bool reaches_more = visible != woken_visible_ || durable != woken_durable_;
    woken_visible_ = visible;
    woken_durable_ = durable;
    for (VisibleWaiter** link = &waiters_; reaches_more && *link != nullptr;) {
      VisibleWaiter* waiter = *link;
      if (waiter->position <= (waiter->until_durable ? durable : visible)) {
        *link = waiter->next;
        waiter->next = wake;
        wake = waiter;
      } else {
        link = &waiter->next;
      }
    }
  }
  while (wake != nullptr) {
    VisibleWaiter* waiter = wake;
    wake = wake->next;
    waiter->waiter.Wake();
  }
}

void CommitLog::FailWaiters(const Status& why) {
  VisibleWaiter* failed;
  {
    std::lock_guard lock(mutex_);
    failed = std::exchange(waiters_, nullptr);
    if (decided_.load() > visible_.load()) {
      doubt_through_ = decided_.load();
      in_doubt_.store(true, std::memory_order_release);
    }
  }
  while (failed != nullptr) {
    VisibleWaiter* waiter = failed;
    failed = failed->next;
    waiter->status = InDoubt(why);
    waiter->waiter.Wake();
  }
}

Status CommitLog::fence_reason() const {
  std::lock_guard lock(mutex_);
  return FenceReasonLocked();
}

Status CommitLog::FenceReasonLocked() const { return stalled() ? Overdue() : fence_reason_; }

// F20: nothing of this group is acknowledged, and this segment is not used again.
void CommitLog::Fence(const Status& why) {
  std::lock_guard lock(mutex_);
  fence_reason_ = why;
  fences_.fetch_add(1, std::memory_order_relaxed);
  fenced_.store(true, std::memory_order_release);
}

bool CommitLog::TryTakeFlushToken(TokenFor purpose) {
  if (purpose == TokenFor::kLog && trim_waits_.load()) return false;  // Its end wakes the driver.
  uint64_t token = flush_token_.load();  // In one order with flush_wanted_: see Drive.
  return (token & kTokenHeld) == 0 &&
         flush_token_.compare_exchange_strong(token, token + kTokenCountOne + kTokenHeld);
}

bool CommitLog::ReleaseFlushToken() {
  const uint64_t token = flush_token_.fetch_and(~(kTokenHeld | kTokenOverdue));
  if ((token & kTokenOverdue) == 0) return true;
  Publish();  // Ends the doubt, unless more is to be written.
  return false;
}

void CommitLog::WantFlush(uint64_t position) {
  uint64_t wanted = flush_wanted_.load();
  while (wanted < position && !flush_wanted_.compare_exchange_weak(wanted, position)) {
  }
}

bool CommitLog::WantsFlush() const { return flush_wanted_.load() > log_.durable_end().value; }

// Under mutex_, before a flush may let go of any of them.
void CommitLog::NoteTaken(LogPosition through) {
  uint64_t bytes = 0;
  for (uint64_t p = taken_ + 1; p <= through.value; ++p) bytes += records_[p - base_].payload.size();
  unlogged_bytes_.store(unlogged_bytes_.load(std::memory_order_relaxed) - bytes, std::memory_order_relaxed);
  taken_ = std::max(taken_, through.value);
}

std::vector<LogRecord> CommitLog::TakeUnappended() {
  std::lock_guard lock(mutex_);
  std::vector<LogRecord> taken;
  uint64_t decided = decided_.load(std::memory_order_relaxed);
  uint64_t bytes = 0;
  for (uint64_t p = appended_ + 1; p <= decided && bytes < kRoundBytesMax; ++p) {
    const Decided& record = records_[p - base_];
    taken.push_back(LogRecord{LogPosition(p), record.version, record.payload});
    bytes += record.payload.size();
  }
  if (!taken.empty()) NoteTaken(taken.back().position);
  bytes_appended_.fetch_add(bytes, std::memory_order_relaxed);
  return taken;
}

Task<Status> CommitLog::FlushRound() {
  PARTITA_ASSERT(FlushTokenHeld());
  if (fenced_.load()) co_return fence_reason();
  if (lower_levels_used_.load(std::memory_order_relaxed)) log_.LeaseCeiling(LeaseNow());
  std::vector<LogRecord> records = TakeUnappended();
  bool lease_due = lower_levels_used_.load(std::memory_order_relaxed) &&
                   log_.durable_ceiling().value < last_version_.load(std::memory_order_relaxed);
  Status done = CheckBeforeSeal(records);
  if (!records.empty()) {
    if (done.ok()) done = co_await log_.AppendAndFlush(records);
  } else if (log_.durable_end().value < appended_ || lease_due) {
    done = co_await log_.Flush();
  }
  if (!done.ok()) {
    Fence(done);
    co_return done;
  }
  if (!records.empty()) {
    std::lock_guard lock(mutex_);
    appended_ = records.back().position.value;
  }
  Publish();
  co_return Status();
}

void CommitLog::TailRound() {
  const uint64_t durable = log_.durable_end().value;
  if (durable == tail_full_at_) return;  // Nothing has been freed since, and there are more records now.
  std::vector<LogRecord> records;
  std::vector<std::shared_ptr<const void>> keep;  // A flush beside us may let records go.
  {
    std::lock_guard lock(mutex_);
    uint64_t decided = decided_.load(std::memory_order_relaxed);
    uint64_t from = std::max({log_.kernel_end().value, durable, base_ - 1}) + 1;
    for (uint64_t p = from; p <= decided; ++p) {
      const Decided& record = records_[p - base_];
      records.push_back(LogRecord{LogPosition(p), record.version, record.payload});
      if (keep.empty() || keep.back() != record.keep) keep.push_back(record.keep);
    }
  }
  if (records.empty()) return;
  // A full tail is not an error: the next flush covers these records and frees it, or says what is wrong.
  if (!CheckBeforeSeal(records).ok() || !log_.AppendTail(records).ok()) {
    tail_full_at_ = durable;
    return;
  }
  Publish();
}

// A round of our own even where another has just ended: its holder may have taken its records before ours was
// there.
void CommitLog::CopyToTail(LogPosition position, int tries_max) {
  for (int tries = 0; tries < tries_max && visible_position() < position; ++tries) {
    if (!tail_token_.load(std::memory_order_relaxed) &&
        !tail_token_.exchange(true, std::memory_order_acquire)) {
      TailRound();
      tail_token_.store(false, std::memory_order_release);
      return;
    }
    if (tries < kTailTriesOnWorker) {
      __builtin_ia32_pause();
    } else {
      std::this_thread::yield();
    }
  }
}

Task<Status> CommitLog::AwaitVisible(LogPosition position, DurabilityLevel level) {
  const bool blocking = Executor::Current() == nullptr;
  const bool is_power = position.value == last_power_.load(std::memory_order_relaxed);
  if (level != DurabilityLevel::kPower && !is_power && !fenced()) {
    CopyToTail(position, blocking ? kTailTriesMax : kTailTriesOnWorker);
  }
  while (visible_position() < position) {
    ArmTick();
    WantFlush(position.value);
    if (fenced() || !blocking) {
      WakeDriver();
    } else if (TryTakeFlushToken()) {
      Status round = co_await FlushRound();
      const bool in_time = ReleaseFlushToken();
      // Others decided meanwhile, or the log failed: the driver goes on (F21 is its alone).
      if (!round.ok() || WantsFlush()) WakeDriver();
      if (!in_time) co_return InDoubt(round.ok() ? Overdue() : round);
      if (visible_position() >= position) break;
      if (round.ok()) continue;
    }
    VisibleWaiter waiter(position.value, /*durable=*/false);
    co_await WaitFor(*this, &waiter);
    if (!waiter.status.ok()) co_return waiter.status;
  }
  co_return Status();
}

void CommitLog::NoteAccepted() {
  ArmTick();
  if (unlogged_bytes_.load(std::memory_order_relaxed) > flush_from_bytes_) WakeDriver();
}

Task<Status> CommitLog::FlushThrough(LogPosition position) {
  while (log_.durable_end() < position) {
    ArmTick();
    WantFlush(position.value);
    WakeDriver();
    VisibleWaiter waiter(position.value, /*durable=*/true);
    co_await WaitFor(*this, &waiter);
    if (!waiter.status.ok()) co_return waiter.status;
  }
  co_return Status();
}

LogPosition CommitLog::LastUpTo(Version version) const {
  std::lock_guard lock(mutex_);
  const auto above =
      std::upper_bound(records_.begin(), records_.end(), version,
                       [](Version sought, const Decided& record) { return sought < record.version; });
  return LogPosition(base_ - 1 + static_cast<uint64_t>(above - records_.begin()));
}

void CommitLog::WakeDriver() {
  if (driven_.exchange(true, std::memory_order_seq_cst)) return;
  Executor* here = Executor::Current();
  tasks_.Spawn(here != nullptr ? *here : worker_, Drive(this));
}

// Between two rounds: who has been received by then decides first, and shares the next flush. A turn of the
// worker takes in what has come; as long as that brings records, as after a round that answered many, another
// may bring more.
Task<void> CommitLog::Gather() {
  uint64_t seen = 0;
  for (int turn = 0; turn < kGatherTurnsMax && seen != decided_.load(std::memory_order_relaxed); ++turn) {
    seen = decided_.load(std::memory_order_relaxed);
    co_await SleepFor(0);
  }
}

Task<void> CommitLog::Drive(CommitLog* self) {
  while (true) {
    if (self->fenced_.load()) {
      co_await self->LeaveFence();
      if (self->fenced_.load()) break;  // Closing.
    }
    if (self->TryTakeFlushToken()) {
      Status round = co_await self->FlushRound();
      self->ReleaseFlushToken();
      if (!round.ok()) continue;
    }
    bool more =
        self->WantsFlush() || self->unlogged_bytes_.load(std::memory_order_relaxed) > self->flush_from_bytes_;
    if (more && !self->FlushTokenHeld()) {
      co_await self->Gather();
      continue;
    }
    self->driven_.store(false, std::memory_order_seq_cst);
    // Asked between the check and the store: whoever asked saw us awake, so we look again. A token
    // held by a caller is no reason to stay: it wakes us when it leaves work behind. Nobody else leads out of
    // a fence.
    if (!self->fenced_.load() && (!self->WantsFlush() || self->FlushTokenHeld())) co_return;
    if (self->driven_.exchange(true, std::memory_order_seq_cst)) co_return;
  }
  self->driven_.store(false, std::memory_order_seq_cst);
}

Task<void> CommitLog::LeaveFence() {
  uint64_t pause = kFenceRetryNanosMin;
  while (fenced_.load() && !closing_.load()) {
    if (!TryTakeFlushToken()) {
      co_await SleepFor(kFenceRetryNanosMin / 50);
      continue;
    }
    std::vector<LogRecord> records;
    {
      std::lock_guard lock(mutex_);
      uint64_t durable = log_.durable_end().value;
      for (size_t i = 0; i < records_.size(); ++i) {
        uint64_t position = base_ + i;
        if (position <= durable) continue;
        records.push_back(LogRecord{LogPosition(position), records_[i].version, records_[i].payload});
      }
      if (!records.empty()) NoteTaken(records.back().position);
    }
    Status moved = CheckBeforeSeal(records);
    if (moved.ok()) moved = co_await log_.MoveToNewSegment(records);
    if (moved.ok()) {
      {
        std::lock_guard lock(mutex_);
        if (!records.empty()) appended_ = records.back().position.value;
        fence_reason_ = Status();
        fenced_.store(false, std::memory_order_release);
      }
      ReleaseFlushToken();
      Publish();
      co_return;
    }
    {
      std::lock_guard lock(mutex_);
      fence_reason_ = moved;
    }
    ReleaseFlushToken();
    FailWaiters(moved);  // A second failure keeps the fence (F21); nobody waits for it for ever.
    co_await SleepFor(pause);
    pause = std::min(pause * 2, kFenceRetryNanosMax);
  }
}

Task<void> CommitLog::Trim(LogPosition position) {
  for (int tries = 0; !fenced() && !closing_.load(); ++tries) {
    // Writers who hold the token one after the other would keep it for ever, and the log would grow.
    if (tries == kTrimTriesMax) trim_waits_.store(true);
    if (TryTakeFlushToken(TokenFor::kTrim)) {
      // A failure leaves segments behind that a later trim or open recycles.
      Status ignored = co_await log_.Trim(position);
      (void)ignored;
      trim_waits_.store(false);
      ReleaseFlushToken();
      if (WantsFlush()) WakeDriver();
      co_return;
    }
    co_await SleepFor(kTrimPollNanos);
  }
  trim_waits_.store(false);
  if (WantsFlush()) WakeDriver();
}

Task<Status> CommitLog::Close() {
  Status flushed;
  if (log_.durable_end().value < decided_.load()) flushed = co_await FlushAll();
  closing_.store(true);
  co_await tasks_.Join();
  if (flushed.ok() && fenced()) flushed = fence_reason();
  PARTITA_ASSERT(TryTakeFlushToken());
  if (flushed.ok()) flushed = co_await log_.Seal(/*closing=*/true);
  Status closed = co_await log_.Close();
  {
    std::lock_guard lock(mutex_);
    records_.clear();
  }
  co_return flushed.ok() ? closed : flushed;
}

}  // namespace partita
