#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "api/async_database.h"
#include "api/partita.h"
#include "engine/base/task_group.h"

namespace partita {

// A place in an input: everything before it has been dealt with.
struct ImportPosition {
  uint64_t offset = 0;
  uint64_t line = 1;
  uint64_t imported = 0;  // Records before it that were written,
  uint64_t bad = 0;       // and that were refused.
};

// Writes the records of an input with many writes in flight, and knows up to where all of them are
// acknowledged.
//
// Order: writes in flight together have none, so a record whose key is in flight waits for that write;
// records of one key are thus written in the order of the input. Bounds: `writes_max` writes and
// `bytes_max` bytes of input are in flight at once, and a write that takes longer than those behind it is
// waited for once they are very many. kBusy and kThrottled are tried again, also while nothing is submitted,
// until nothing got through for `busy_seconds_max` (a full disk), or the user wants to stop.
//
// One thread submits; completions come from the workers, which also try again. The database outlives it. The
// destructor waits for all writes.
class ImportPipeline {
 public:
  struct Options {
    WriteAction action = WriteAction::kInsertOrReplace;
    WriteOptions write;
    bool strict = false;  // The position does not pass a refused record.
    // An insert that meets an entity equal to the record counts as written: after a crash, what was written
    // behind the last checkpoint comes again.
    bool accept_equal = false;
    double busy_seconds_max = 30;
    std::function<bool()> stop;  // Asked while waiting, once a second; may be empty.
    size_t writes_max = 1024;
    size_t bytes_max = 32u << 20;
  };
  // Into a table of the database. `start` is where an earlier import got to.
  ImportPipeline(Database& database, Table table, const Options& options, const ImportPosition& start);
  ~ImportPipeline();

  // A record: where it begins, and the input's place after it.
  struct Place {
    uint64_t line = 0;
    uint64_t next_offset = 0;
    uint64_t next_line = 0;
  };
  // Starts the write; waits while the bounds are reached. Does nothing after a failure, or when the wait was
  // stopped.
  void Submit(Entity entity, const Place& place);
  // A record that could not be read. Waits as Submit.
  void SkipBad(const Place& place);
  // Waits for all writes in flight.
  void Drain();

  // Everything before it is acknowledged or refused.
  ImportPosition position() const;
  // Of all writes so far, in any order.
  uint64_t imported() const;
  uint64_t bad() const;

  struct Refusal {
    uint64_t line = 0;
    Status status;
  };
  // Records that the table refused since the last call, by line.
  std::vector<Refusal> TakeRefusals();

  // Why nothing more can be written: disk full, store closed, ... Ok while it goes on.
  Status failure() const;

 private:
  enum class SlotState : uint8_t { kInFlight, kRetry, kWritten, kRefused, kFailed };
  struct Slot {
    Place place;
    Write write;  // Kept to be tried again.
    size_t key_hash = 0;
    size_t bytes = 0;
    SlotState state = SlotState::kInFlight;
    Status met;  // Not ok: why the insert was refused, if the entity that it met is not the record's equal.
  };

  struct Retry {
    std::chrono::steady_clock::time_point due;
    uint64_t sequence = 0;
  };

  void Start(uint64_t sequence, Write write);
  void Complete(uint64_t sequence, const WriteResult& result);
  void StartComparison(uint64_t sequence, const Write& write);
  void CompleteComparison(uint64_t sequence, const Result<Entity>& existing);
  // On a worker while something was turned away: starts it again when it is due.
  Task<void> RunRetries();
  std::vector<uint64_t> TakeDueRetries();
  void StartAgain(uint64_t sequence);
  // These run with the lock held.
  Slot& SlotOf(uint64_t sequence) { return slots_[sequence - first_sequence_]; }
  void Finish(Slot* slot, SlotState state);
  void Refuse(Slot* slot, const Status& status);
  void TryAgain(uint64_t sequence, uint64_t wait_us);
  void NotDone(uint64_t sequence, const Status& status);
  void AdvancePosition();
  bool TriesAgain(Code code);
  bool IsOver() const { return !failure_.ok() || stopping_; }  // Nothing is started any more.
  bool IsFull() const;
  // For a completion, or until it is time to ask whether to stop. Unlocks meanwhile.
  void WaitForCompletion(std::unique_lock<std::mutex>* lock);

  const AsyncDatabase database_;
  const Table table_;
  const Options options_;
  TaskGroup retrier_;

  mutable std::mutex mutex_;  // Guards everything below.
  std::condition_variable completed_;
  std::deque<Slot> slots_;  // In the order of the input; the front is the first one not done.
  uint64_t first_sequence_ = 0;
  uint64_t last_offset_ = 0;
  size_t in_flight_ = 0;
  size_t bytes_in_flight_ = 0;
  std::unordered_set<size_t> keys_in_flight_;  // Hashes.
  std::vector<Retry> retries_;
  bool retrier_runs_ = false;
  std::optional<std::chrono::steady_clock::time_point> busy_since_;  // Since then nothing got through.
  std::chrono::steady_clock::time_point ask_at_;                     // Whether to stop.
  bool stopping_ = false;
  ImportPosition position_;
  uint64_t imported_ = 0, bad_ = 0;
  std::vector<Refusal> refusals_;
  Status failure_;
};

}  // namespace partita
