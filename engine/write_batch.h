#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/entry.h"
#include "engine/base/event.h"
#include "engine/base/ids.h"
#include "engine/base/lookup.h"
#include "engine/base/status.h"
#include "engine/base/task.h"
#include "engine/write_request.h"
#include "memtable/memtable.h"
#include "sstable/level_set.h"

namespace partita {

struct ReadView;

// What one batch may take at most.
struct BatchRoom {
  size_t record_bytes = 0;  // In the log.
  size_t memory_bytes = 0;  // The record with what a memtable sets aside for its entries.
};

// One write on its road (shard_write.cc): what is known of the entities that it must know, the log record
// that says what it makes of them, and what became of it. The request outlives it. One thread at a time.
struct WriteBatch {
  enum class Verdict : uint8_t { kAccepted, kRefused, kResolveAgain, kNoRoom, kMoving, kFenced };

  explicit WriteBatch(const WriteRequest& request);

  bool is_decided() const {
    return verdict != Verdict::kResolveAgain && verdict != Verdict::kNoRoom && verdict != Verdict::kMoving;
  }

  // ---- The old state of entities, for conditions and merges.
  // Takes down what memory has of it: the newest entry of each key, whatever the visible version. Returns the
  // keys of which memory has not all, or not what was written, rising.
  std::vector<SoughtTogether> FindInMemory(const ReadView& view, const LevelSet& levels);
  // Takes down the rest. An error when a key lies in a damaged range (F49). A value to merge with that is not
  // what its writer gave is read once more, past the cache, and counted in `faults` (F52); by each batch that
  // finds it so, which may be many while somebody has a pin on the block: the cache cannot let go of it then.
  Task<Status> FindByReading(const LevelSet& levels, std::vector<SoughtTogether> missing, ReadFaults* faults);
  // Replaces what was found by anything newer in the memtables, not yet visible entries included. The verdict
  // is then kAccepted, or kResolveAgain when a merge's result is too large to be made again here. True: some
  // result changed.
  bool Renew(const ReadView& view);
  // Checks every condition in the order of the operations; the first that fails refuses the batch. A merge
  // with a value that is not what its writer gave fails with kCorruption (F51).
  bool CheckOps();
  // What takes the place of a row that was in memory, because it was written or read not long ago, is likely
  // to be asked for as soon: the next write with a condition is who asks for such rows most.
  bool WasInMemory(size_t i) {
    return any_old && old(i).state == LookupState::kFound && !old(i).had_to_be_read;
  }

  // ---- The log record.
  // Makes it in the memtable's memory. kResourceExhausted: there is none just now. kInvalidArgument: it would
  // take more than `room`, so there never is.
  Status Encode(const std::shared_ptr<Memtable>& into, const BatchRoom& room);

  void Refuse(size_t i, Status status) {
    verdict = Verdict::kRefused;
    failed_op = static_cast<uint32_t>(i);
    refusal = std::move(status);
  }

  const WriteRequest& request;
  bool any_old = false;  // Some operation must know its entity.
  uint64_t bytes;        // About what it takes in the log.

  // As of when it was resolved.
  uint64_t structure_counter = 0;
  RangeEpoch epoch;
  const Memtable* active = nullptr;  // Of the view; only to be compared.
  uint64_t pool_releases = 0;        // Of the memtables' pool, before the batch asked it for memory.

  std::shared_ptr<Memtable> memtable;  // Whose arena holds the payload; null: there is none.
  uint8_t* payload = nullptr;
  std::string_view payload_view;
  RangeEpoch encoded_epoch;  // Which the payload names.

  Verdict verdict = Verdict::kResolveAgain;
  std::shared_ptr<Event> fence_end;  // Of kMoving (RangeView).
  Status refusal;
  uint32_t failed_op = 0;
  LogPosition position;
  Version version;

 private:
  // What is known of one operation's entity, and what a merge makes of it.
  struct Old {
    LookupState state = LookupState::kAbsent;
    Version version;
    bool had_to_be_read = false;  // From the disk, when it was first looked for.
    std::string merged;
    Status merge_status;
  };

  Old& old(size_t i) { return i == 0 ? first_ : more_[i - 1]; }
  std::string_view ContentOf(size_t i) {
    return request.ops[i].kind == WriteKind::kMerge ? std::string_view(old(i).merged)
                                                    : request.ops[i].content;
  }
  void TakeFound(const LevelSet& levels, std::vector<SoughtTogether>* sought);
  bool Note(size_t i, const Lookup& found);
  bool MayBeInMemtables(const ReadView& view) const;

  Old first_;
  std::vector<Old> more_;
};

}  // namespace partita
