#pragma once
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/event.h"
#include "engine/base/log_store.h"
#include "engine/base/task.h"
#include "engine/base/task_group.h"
#include "engine/write_request.h"

namespace partita {

// What waits for the disk for longer is answered in doubt (F26). As long as the kernel gives a command before
// it resets the device (SCSI and NVMe: 30 s): who waited that long has seen the kernel try all that it can.
inline constexpr uint64_t kIoDeadlineNanos = 30'000'000'000;

// What a lease that is lost may have let versions run ahead of the wall clock (DESIGN 2), and a little.
inline constexpr uint64_t kLeaseTicksMax = 11 * kTicksPerSecond;

// From decision to answer: stages *log* and *publish* of a write (DESIGN 2), for one shard.
//
// A decided record gets the next position and joins the queue. Whoever takes the *flush token*
// writes what was decided so far and flushes it if any record asks for that: this alone is group
// commit. A lone synchronous caller does it with plain system calls; when others wait, or who asks is
// a worker, the *driver* goes on: one coroutine at most, on the worker that asked first, whichever
// shard it serves, since a hop to another thread costs more than the rest of a commit. Records at `process`
// are copied, under the *tail token*, to a tail that the kernel owns, and do not wait for a flush in
// progress.
//
// What is visible is the longest prefix of positions in which each record is durable at its own
// level; answers wait for that (F9, F12, F13). A failed append or flush fences the shard (F20); only
// the driver leads it out, by writing everything not known flushed to a new segment (F21).
//
// Threads: Append on the strand; the rest from any thread. `mutex_` guards the queue and is held for
// well under a microsecond; the two tokens are atomics; `visible_version_` is read by every reader.
class CommitLog {
 public:
  // `tail_bytes`: of the log's tail, both halves.
  CommitLog(LogStore& log, Executor& worker, Clock& clock, uint64_t io_deadline_ns, uint64_t tail_bytes);
  ~CommitLog();
  CommitLog(const CommitLog&) = delete;
  CommitLog& operator=(const CommitLog&) = delete;

  // Where recovery ended: everything up to `last` is durable and visible.
  void Start(LogPosition last, Version version_max);

  // What the strand hands over. `payload` lies in the memory that `keep` owns.
  struct Decided {
    Version version;
    DurabilityLevel level;
    std::string_view payload;
    std::shared_ptr<const void> keep;
  };
  // On the strand: gives the record its position. REQUIRES: !fenced().
  LogPosition Append(Decided decided);

  // The last position given; a refusal waits for it (F13).
  LogPosition last_decided() const { return LogPosition(decided_.load(std::memory_order_acquire)); }

  // Drives the log as far as `level` asks, and ends when `position` is visible. kUnknown when the
  // outcome is in doubt (F15).
  Task<Status> AwaitVisible(LogPosition position, DurabilityLevel level);

  // Ends when everything up to `position` is flushed; in doubt when that may never happen.
  Task<Status> FlushThrough(LogPosition position);
  // The last position whose version is at most `version`. Of what was flushed long ago: some position that
  // was flushed, too.
  LogPosition LastUpTo(Version version) const;
  // Ends when everything decided so far is flushed (F8).
  Task<Status> FlushAll() { return FlushThrough(last_decided()); }

  // After each accepted write, whatever its level: keeps the log moving to the disk.
  void NoteAccepted();

  Version visible_version() const { return Version(visible_version_.load(std::memory_order_acquire)); }
  // Of the last record decided.
  Version last_version() const { return Version(last_version_.load(std::memory_order_acquire)); }
  LogPosition visible_position() const { return LogPosition(visible_.load(std::memory_order_acquire)); }

  // Takes no records: after a failed write (F20), or stalled (F26).
  bool fenced() const { return fenced_.load(std::memory_order_acquire) || stalled(); }
  bool stalled() const { return (flush_token_.load(std::memory_order_acquire) & kTokenOverdue) != 0; }
  uint64_t stalls() const { return stalls_.load(std::memory_order_relaxed); }
  uint64_t fences() const { return fences_.load(std::memory_order_relaxed); }  // After failed writes.
  // Why, while fenced; ok when that has ended, as it may between a look at fenced() and this.
  Status fence_reason() const;
  // A waiter was answered kUnknown, and what it wrote is not decided yet: a reader that meets an
  // entry above the visible version must answer in-doubt too (DESIGN 2).
  bool in_doubt() const { return in_doubt_.load(std::memory_order_acquire); }

  // Recycles log segments below `position`. Ok also when the log is fenced: nothing is lost.
  Task<void> Trim(LogPosition position);

  // Stops background rounds, flushes and seals (F7).
  Task<Status> Close();

  // Of what was decided and is not known flushed, as it takes room in the tail.
  uint64_t unflushed_bytes() const { return unflushed_bytes_.load(std::memory_order_relaxed); }
  uint64_t bytes_appended() const { return bytes_appended_.load(std::memory_order_relaxed); }

 private:
  struct VisibleWaiter {
    uint64_t position;
    bool until_durable;
    Waiter waiter;
    Status status;
    VisibleWaiter* next = nullptr;
    explicit VisibleWaiter(uint64_t p, bool durable) : position(p), until_durable(durable) {}
  };
  class WaitFor;

  // One round under the flush token: append what is there, flush if asked, publish.
  Task<Status> FlushRound();
  // Rounds until nobody asks any more.
  static Task<void> Drive(CommitLog* self);
  Task<void> Gather();
  Task<void> LeaveFence();
  // One round under the tail token.
  void TailRound();
  // Has `position` copied to the tail, by a round of our own or of whoever holds its token; looks at most so
  // often whether that is free.
  void CopyToTail(LogPosition position, int tries_max);

  bool FlushTokenHeld() const { return (flush_token_.load() & kTokenHeld) != 0; }
  enum class TokenFor : uint8_t { kLog, kTrim };
  bool TryTakeFlushToken(TokenFor purpose = TokenFor::kLog);
  // False when it was held beyond the deadline: then this flush acknowledges nothing (F26).
  bool ReleaseFlushToken();
  void Fence(const Status& why);
  Status FenceReasonLocked() const;  // Under mutex_.
  void WantFlush(uint64_t position);
  bool WantsFlush() const;
  // Makes the driver run rounds soon: on this worker, or the shard's when this thread is none.
  void WakeDriver();
  void ArmTick();
  static Task<void> TickOnWorker(CommitLog* self);
  void WatchFlushToken();
  Status Overdue() const;
  static Task<void> SealIdle(CommitLog* self, uint64_t decided);

  std::vector<LogRecord> TakeUnappended();
  // Records up to `through` are in a round's hands.
  void NoteTaken(LogPosition through);
  void Publish();                       // Takes mutex_.
  void FailWaiters(const Status& why);  // Takes mutex_.
  bool Enqueue(VisibleWaiter* waiter);  // False: nothing to wait for.
  Version LeaseNow() const;

  LogStore& log_;
  Executor& worker_;
  Clock& clock_;
  const uint64_t io_deadline_ns_;
  const uint64_t flush_from_bytes_;  // So much that is in no segment is a reason to flush.
  TaskGroup tasks_;

  mutable std::mutex mutex_;
  std::deque<Decided> records_;  // Positions base_ .. decided_, all not yet known flushed.
  uint64_t base_ = 1;            // Position of records_.front().
  uint64_t appended_ = 0;        // Handed to the segments without error.
  uint64_t taken_ = 0;           // In a round's hands, or were.
  VisibleWaiter* waiters_ = nullptr;
  uint64_t woken_visible_ = 0, woken_durable_ = 0;  // Whom these reach does not wait any more.
  Status fence_reason_;
  uint64_t doubt_through_ = 0;  // What was answered in doubt lies up to here.

  std::atomic<uint64_t> decided_{0};
  std::atomic<uint64_t> visible_{0};
  std::atomic<uint64_t> visible_version_{0};
  std::atomic<uint64_t> flush_wanted_{0};  // Flush asked for up to here.
  std::atomic<uint64_t> last_power_{0};    // The last position at `power`, which only a flush makes visible.
  std::atomic<uint64_t> last_version_{0};
  // Written under mutex_: of the payloads of records_ behind taken_; of all records_, as in the tail.
  std::atomic<uint64_t> unlogged_bytes_{0}, unflushed_bytes_{0};
  std::atomic<uint64_t> bytes_appended_{0};
  std::atomic<bool> lower_levels_used_{false};
  // The flush token: how often it was taken, and two bits about now. Both clear: free.
  static constexpr uint64_t kTokenHeld = 1;
  static constexpr uint64_t kTokenOverdue = 2;  // Set beside kTokenHeld only, by the tick.
  static constexpr uint64_t kTokenCountOne = 4;
  std::atomic<uint64_t> flush_token_{0};
  std::atomic<uint64_t> stalls_{0}, fences_{0};
  // The tick's own.
  uint64_t watched_token_ = 0;  // The holding it met last,
  uint64_t watched_ticks_ = 0;  // and how often since.
  // What was decided when the log was last sealed as idle since the tick began.
  std::atomic<uint64_t> sealed_through_{UINT64_MAX};
  std::atomic<bool> trim_waits_{false};  // A trim is next to get the flush token.
  std::atomic<bool> tail_token_{false};
  uint64_t tail_full_at_ = UINT64_MAX;  // By who has that token: durable_end() when the tail had no room.
  std::atomic<bool> driven_{false};
  std::atomic<bool> tick_armed_{false};
  std::atomic<bool> fenced_{false};
  std::atomic<bool> in_doubt_{false};
  std::atomic<bool> closing_{false};
};

}  // namespace partita
