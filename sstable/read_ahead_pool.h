#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/base/aligned_buffer.h"
#include "engine/base/event.h"
#include "engine/base/object_store.h"
#include "engine/base/task_group.h"
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

// Some runs of a file, being read or read. Held by the cursor that wants them and, while the read is in
// flight, by the read: a cursor that goes away leaves buffer and file to it (F62).
class ReadAheadPiece {
 public:
  ~ReadAheadPiece();
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
  // The run that holds the part; null: none.
  const ReadAheadRun* RunOf(const PartHandle& part) const {
    for (const ReadAheadRun& run : runs_) {
      if (part.offset >= run.begin && part.end() <= run.end) return &run;
    }
    return nullptr;
  }

  // The bytes are there: Arrive would say so at once.
  bool is_there() const { return done_.is_set() && status_.ok(); }
  // Ends when the bytes are there; reads them itself when nobody has begun to. Called by the cursor alone.
  Task<Status> Arrive();

 private:
  friend class ReadAheadPool;
  ReadAheadPiece(ReadAheadPool* pool, std::shared_ptr<ObjectReader> object, std::vector<ReadAheadRun> runs,
                 AlignedBuffer buffer);
  Task<void> Perform();
  bool Claim() { return !claimed_.exchange(true, std::memory_order_relaxed); }

  ReadAheadPool* const pool_;  // Null: the bytes are not counted.
  const std::shared_ptr<ObjectReader> object_;
  const std::vector<ReadAheadRun> runs_;
  AlignedBuffer buffer_;
  std::atomic<bool> claimed_{false};  // Somebody performs the read.
  Status status_;                     // Written before `done_` is set.
  Event done_;
};

// The reads that are in flight while their cursors work on what they have, and the memory of all of them.
//
// On a worker a read goes to its ring (or its I/O threads) at once. In blocking mode a helper thread
// performs it; a caller that needs the bytes before a helper has begun does so itself, so a helper that is
// busy costs nothing but the overlap.
//
// Owned by the store. Thread-safe. Outlives every cursor that was given it; Join before it and the files go.
//
//   `held_`: added to and taken from by any thread; only a bound, it orders nothing.
class ReadAheadPool {
 public:
  // `helpers` run blocking reads (BackgroundClass::kInput).
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
  static Task<void> Read(std::shared_ptr<ReadAheadPiece> piece);

  Executor& helpers_;
  const size_t bytes_max_;
  std::atomic<size_t> held_{0};  // Buffers kept included.
  std::atomic<uint64_t> started_{0};
  std::mutex mutex_;  // Guards buffers_.
  std::vector<AlignedBuffer> buffers_;
  TaskGroup reads_;
};

}  // namespace partita
