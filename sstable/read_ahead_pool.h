#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/base/aligned_buffer.h"
#include "engine/base/object_store.h"
#include "engine/base/overlapped.h"
#include "engine/base/task_group.h"
#include "engine/base/timed_waits.h"
#include "sstable/part_format.h"

namespace partita {

class ReadAheadPool;

// Pages of one file, read together.
struct ReadAheadRun {
  uint64_t begin = 0;
  uint64_t end = 0;
  size_t at = 0;  // Where they are in the buffer.

  uint64_t size() const { return end - begin; }
};

// Some runs of a file, being read or read, for the cursor that owns them.
class ReadAheadPiece final : public Overlapped {
 public:
  ~ReadAheadPiece() override;
  ReadAheadPiece(const ReadAheadPiece&) = delete;
  ReadAheadPiece& operator=(const ReadAheadPiece&) = delete;

  const std::vector<ReadAheadRun>& runs() const { return runs_; }
  // REQUIRES: is_there(), or Arrive has returned ok.
  std::string_view Bytes(const ReadAheadRun& run, uint64_t offset, size_t size) const {
    return buffer_.view(run.at + (offset - run.begin), size);
  }

  // The part as it is stored; empty when no run holds it. REQUIRES: as Bytes.
  std::string_view Find(const PartHandle& part) const {
    const ReadAheadRun* run = RunOf(part);
    return run == nullptr ? std::string_view() : Bytes(*run, part.offset, part.stored_size);
  }
  // As Arrive; with a deadline, unless `waits` is null (TimedWaits).
  static Task<Status> ArriveInTime(TimedWaits* waits, std::shared_ptr<ReadAheadPiece> piece);

  // The run that holds the part; null: none.
  const ReadAheadRun* RunOf(const PartHandle& part) const {
    for (const ReadAheadRun& run : runs_) {
      if (part.offset >= run.begin && part.end() <= run.end) return &run;
    }
    return nullptr;
  }

 private:
  friend class ReadAheadPool;
  ReadAheadPiece(ReadAheadPool* pool, std::shared_ptr<ObjectReader> object, std::vector<ReadAheadRun> runs,
                 AlignedBuffer buffer);
  Task<Status> Perform() override;

  ReadAheadPool* const pool_;  // Null: the bytes are not counted.
  const std::shared_ptr<ObjectReader> object_;
  const std::vector<ReadAheadRun> runs_;
  AlignedBuffer buffer_;
};

// The reads that are in flight while their cursors work on what they have, and the memory of all of them.
//
// Owned by the store. Thread-safe. Outlives every cursor that was given it; Join before it and the files go.
//
//   `held_`: added to and taken from by any thread; only a bound, it orders nothing.
class ReadAheadPool {
 public:
  // `helpers` run blocking reads (BackgroundClass::kInput, kTransfer).
  ReadAheadPool(Executor& helpers, size_t bytes_max) : helpers_(helpers), bytes_max_(bytes_max) {}
  ~ReadAheadPool();

  // Memory for a piece; without data when the pool is at its bound.
  AlignedBuffer TakeBuffer(size_t size);
  // Takes back what no piece was made of; may have no data.
  void GiveBack(AlignedBuffer buffer);

  // Begins to read into `buffer`, which TakeBuffer gave. REQUIRES: it has room for all runs.
  std::shared_ptr<ReadAheadPiece> Start(std::shared_ptr<ObjectReader> object, std::vector<ReadAheadRun> runs,
                                        AlignedBuffer buffer);

  // A piece that is read when its cursor wants it, by Arrive. `buffer` is one that `pool` gave; where it has
  // no room for all runs the piece gets memory that is not counted. Null when there is none.
  static std::shared_ptr<ReadAheadPiece> Prepare(ReadAheadPool* pool, std::shared_ptr<ObjectReader> object,
                                                 std::vector<ReadAheadRun> runs, AlignedBuffer buffer);

  // Ends when no read is in flight. No cursor may start one meanwhile.
  Task<void> Join() { return reads_.Join(); }

  size_t held_bytes() const { return held_.load(std::memory_order_relaxed); }
  // Reads started so far.
  uint64_t started() const { return started_.load(std::memory_order_relaxed); }

 private:
  friend class ReadAheadPiece;
  // Buffers are kept for the next piece: fresh memory of this size costs as much as decoding into it.
  static constexpr size_t kBuffersKeptMax = 8;

  Executor& helpers_;
  const size_t bytes_max_;
  std::atomic<size_t> held_{0};  // Buffers kept included.
  std::atomic<uint64_t> started_{0};
  std::mutex mutex_;  // Guards buffers_.
  std::vector<AlignedBuffer> buffers_;
  TaskGroup reads_;
};

}  // namespace partita
