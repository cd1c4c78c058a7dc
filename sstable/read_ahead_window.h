#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/object_store.h"
#include "sstable/part_format.h"
#include "sstable/read_ahead_pool.h"

namespace partita {

// The parts of a file that a cursor wants next, in the order in which it will come to them. What a route
// leaves out (blocks that a zone map skips) is not read.
class ReadAheadRoute {
 public:
  // Begins anew behind the part that the cursor is about to fetch.
  virtual void Restart() = 0;
  // The part behind the one given last. Nothing: no more is known now, or no more is wanted.
  virtual std::optional<PartHandle> NextPart() = 0;
  // True when NextPart gave nothing since no more is wanted.
  virtual bool IsAtEnd() const = 0;
  // True when the cursor will find the part in the cache, most likely.
  virtual bool CacheHas(const PartHandle& part) const = 0;

 protected:
  ~ReadAheadRoute() = default;
};

// The pages that a cursor over one file has read and not yet come to, and those that are on their way.
//
// 1. Parts that lie near each other are read together, in pieces that grow from 16 KiB while the cursor
//    goes on in order. So a short scan reads little more than it uses. Where it is known how much that will
//    be, from the far bound or from what the scan expects, the first piece is all of it, up to 128 KiB.
// 2. Without a pool a piece is read when the cursor comes to it; pieces grow to 256 KiB.
// 3. Where the scan comes from the end of another file pieces have such a size from the start, and may be on
//    their way before the cursor wants them.
// 4. With a pool, a cursor that has gone on for a while has the next pieces read while it works on one
//    (at most kAheadMax of up to 512 KiB, each at most half of what was asked for before, or as large as the
//    one in front: a scan that ends early has read in vain about twice what it used, at worst).
//
// Holds bytes as they are stored and checks nothing. Belongs to one cursor, which may go at any time: see
// ReadAheadPiece.
class ReadAheadWindow {
 public:
  static constexpr size_t kAheadMax = 2;

  struct Options {
    ReadAheadPool* pool = nullptr;
    TimedWaits* waits = nullptr;  // Null: what is read is waited for without a deadline.
    // What will be read whole: 1 MiB at once or, with a pool, 256 KiB and as much ahead from the start.
    bool large = false;
    // What the scan has read in order in the files in front: the first piece is large.
    uint64_t read_in_stride = 0;
    // About as much as will be used: nothing is read ahead beyond it, in this file, and no file is begun
    // beyond it, those in front counted. A cursor that comes beyond it goes on as one that expects nothing.
    uint64_t bytes_expected = UINT64_MAX;
    // About as much of that as is likely to lie in this file, where others hold some of it; at most
    // bytes_expected.
    uint64_t bytes_likely = UINT64_MAX;
  };
  explicit ReadAheadWindow(Options options) : options_(options), expected_(options.bytes_expected) {}

  bool Holds(const PartHandle& part) const;
  // Its read has begun: Fetch is cheaper than to read it otherwise.
  bool Awaits(const PartHandle& part) const;
  // REQUIRES: Holds(part). Valid until the next Fetch.
  std::string_view Bytes(const PartHandle& part) const;

  // Reads `wanted`, unless it is on its way, and what comes behind it on `route`. After an error nothing is
  // held and nothing on its way.
  Task<Status> Fetch(std::shared_ptr<ObjectReader> object, PartHandle wanted, ReadAheadRoute& route);

  // Begins to read `first`, which will be fetched first of all, and what comes behind it, if there is memory.
  // REQUIRES: a pool, and nothing was fetched yet.
  void Begin(const std::shared_ptr<ObjectReader>& object, PartHandle first, ReadAheadRoute& route);
  // True when the cursor works on some pieces while others are read, and will use more than those of this
  // file and of the files in front.
  bool MayBeginNext() const { return ReadsOn(); }
  // The cursor came to where it would not use any more.
  bool IsBeyondExpected() const {
    return options_.bytes_expected < UINT64_MAX && (expected_ == UINT64_MAX || bytes_left() == 0);
  }
  // About as much as will still be used.
  uint64_t bytes_left() const { return expected_ - std::min(expected_, read_in_stride() + from_cache_); }
  // The cursor used what so many bytes of the file hold, and the cache had it.
  void UsedFromCache(uint64_t bytes) { from_cache_ += bytes; }
  // Bytes planned in order, those of the files in front included.
  uint64_t read_in_stride() const { return options_.read_in_stride + total_; }

  // Bytes whose reads were planned since this was last asked.
  uint64_t TakeBytesPlanned() { return std::exchange(bytes_planned_, 0); }

  // The cursor was sent elsewhere: unless it goes on where it was, the next piece is small again.
  void Jumped() {
    jumped_ = true;
    from_cache_ = 0;
  }

 private:
  using Runs = std::vector<ReadAheadRun>;
  bool GoesOn(const PartHandle& wanted) const;
  Runs PlanFirst(const PartHandle& wanted, ReadAheadRoute& route);
  Runs PlanMore(const PartHandle& wanted, ReadAheadRoute& route);
  Runs PlanFrom(const PartHandle& wanted, ReadAheadRoute& route, bool without_cached);
  void Fill(Runs* runs, ReadAheadRoute& route, bool without_cached = false);
  void Count(Runs* runs);
  void StartAhead(const std::shared_ptr<ObjectReader>& object, ReadAheadRoute& route);
  bool ReadsOn() const;
  size_t LargeSize() const;

  const Options options_;
  uint64_t expected_;  // options_.bytes_expected, until the cursor has come beyond it.
  bool jumped_ = true;
  bool failed_ = false;  // The last read did: the next one is small.
  size_t size_ = 0;      // Of the piece planned last.
  uint64_t bytes_planned_ = 0;
  uint64_t total_ = 0;       // Planned since the cursor was sent elsewhere.
  uint64_t from_cache_ = 0;  // Used of the cache since then.
  bool is_sparse_ = false;   // The piece planned last leaves out what the cache has.
  std::shared_ptr<ReadAheadPiece> current_;
  std::deque<std::shared_ptr<ReadAheadPiece>> ahead_;  // In the order of the route.
  std::optional<PartHandle> left_over_;                // Of the route: found no room in the last piece.
};

}  // namespace partita
