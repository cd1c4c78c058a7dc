#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/base/task_group.h"
#include "engine/commit_log.h"
#include "engine/io/runtime.h"
#include "engine/read_view.h"
#include "engine/row_scan.h"
#include "engine/rowless_stretches.h"
#include "engine/strand.h"
#include "engine/write_request.h"
#include "sstable/read_ahead_pool.h"

namespace partita {

// A shard's rowless stretches (rowless_stretches.h), and the sweep that finds them: around a hint it walks in
// both directions to the first row. Hints come from scans that passed many deleted keys, and from deletes.
//
// The sweep runs on the shard's worker, in slices as any scan there, and pauses between; a long one ends for
// others in between, and goes on from where it was when there are none. What it walks, the next scan would
// walk. On the idle helper a compaction would be before it for seconds, in which a queue in a table deletes
// tens of thousands of rows.
//
// Threads: Leap and Hint any; what is said to be on the strand, there. Owned by the shard, which joins
// `tasks` before it goes.
class RowlessSweep {
 public:
  struct Surroundings {
    Runtime& runtime;
    ShardId shard;
    ReadViewPublisher& views;
    Strand& strand;
    const std::unique_ptr<CommitLog>& log;  // There before the first write or scan is.
    ReadAheadPool& read_ahead;
    TaskGroup& tasks;
    const std::atomic<bool>& closing;
    bool read_only;
  };
  explicit RowlessSweep(Surroundings around) : around_(around) {}

  const RowlessStretches& stretches() const { return stretches_; }
  // No row at this key, nor at many beside it.
  void Hint(std::string_view user_key);

  // On the strand: whether NoteWrite must be told of a write without deletes.
  bool watches() const { return stretches_.watches(); }
  // On the strand, of each accepted write, before its version can become visible.
  void NoteWrite(const WriteRequest& request);
  // On the strand: a range is let go of, or taken. An empty upper is no bound.
  void Forget(std::string_view lower, std::string_view upper) { stretches_.Forget(lower, upper); }

 private:
  using Interval = RowlessStretches::Interval;
  // What is known where a watch begins.
  struct Watched {
    Version decided;                          // What was before it.
    bool begins_at_stretch, ends_at_stretch;  // The interval does: what lies beyond is known.
  };
  // What is to be walked.
  struct Part : Interval {
    // What lies behind its far end is known, or deleted: a walk that meets no row leaves no gap there.
    bool to_end = false;
  };
  // Keys without a row that were walked, about as many as one stretch has.
  struct Piece {
    Interval keys;
    uint64_t entries = 0;
  };
  // What a walk came to.
  struct Page {
    std::vector<Piece> pieces;  // In the order of the walk; each borders on the one before it.
    Version visible;            // That of the walk.
    uint64_t nanos = 0;         // That it took.
    bool at_end = false;        // At a row, or where the interval ends.
  };
  class PieceMarker;

  void Schedule();
  static Task<void> SweepHints(RowlessSweep* self);
  // False when there was little to find, or something came between.
  Task<bool> SweepAround(std::string hint);
  // Watches the keys around the hint: Interval() when they are known or not this shard's.
  Interval Watch(std::string_view hint, Watched* watched);
  Task<bool> AwaitVisible(Version decided);
  void GoOnLater(std::string place);
  std::string TakePlace();  // Empty: there is none.
  // Forward from keys->lower or backward from keys->upper, which it moves, while *pieces last; returns how
  // many entries of stretches were added.
  Task<uint64_t> Sweep(Part* keys, Direction direction, int* pieces);
  Task<Result<Page>> Walk(const Part& keys, Direction direction, int pieces_max);
  // `left`, which is what lies behind the last mark, down to what was walked of it; may be nothing.
  static Piece LastPiece(Interval left, Direction direction, const std::string& last_key,
                         const ScanAnswer& answer, bool at_end);
  // The pieces in their order, up to the first that a row has cut. Returns their entries, and how many.
  Task<std::pair<uint64_t, size_t>> Add(const Page& page);

  Surroundings around_;
  RowlessStretches stretches_;
  std::atomic<bool> running_{false};
  // Of the sweep that runs.
  uint64_t pause_ = 0;  // Grows while sweeps find little.
  // Where long ones are to go on, after what others have asked for: the last first.
  std::vector<std::string> go_on_;
};

}  // namespace partita
