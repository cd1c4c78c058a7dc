#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/block_counts.h"
#include "engine/base/block_predicate.h"
#include "engine/base/entry_iterator.h"
#include "engine/base/entry_run.h"
#include "engine/base/ids.h"
#include "engine/base/user_key.h"
#include "sstable/block_cache.h"
#include "sstable/table_scan.h"

namespace partita {

class ScanMeter;

// What Shard::Scan and Store::Scan are asked for, who takes the rows, and what comes of it.

inline constexpr uint32_t kEntriesPerSlice = 64;

// Keys [lower, upper).
struct ScanInterval {
  std::string lower;
  std::string upper;
  // Exactly one key: read as a point, through the filters. What names no partition, as a table's lower bound,
  // is none.
  bool IsPoint() const {
    return upper.size() == lower.size() + 1 && upper.back() == '\0' && upper.starts_with(lower) &&
           lower.find('\0', kTableIdSize) != lower.npos;
  }
};

// A page of [lower, upper) within one range: visible entries at one point in time.
struct ScanRequest {
  std::string lower;
  std::string upper;  // Empty: to the end of the range.
  Direction direction = Direction::kForward;
  uint32_t limit = 1000;
  uint64_t bytes_limit = 4u << 20;
  // When not empty: of those keys only the ones in these intervals, which are sorted and disjoint; no
  // upper is empty, here and above. Outlive the call.
  std::span<const ScanInterval> only;
  // By the runtime's clock: the page ends soon after. 0: 5 s after the call, the most that a page may
  // hold its view (DESIGN 3).
  uint64_t deadline_ns = 0;
  // After so many entries others may get a turn, and the sink is asked whether to go on; each 4 KiB of a row
  // count as one more. Above 0; less for a sink that takes long over a row.
  uint32_t entries_per_slice = kEntriesPerSlice;
  // What the sink would refuse anyway, for zone maps: blocks and files that it rules out are not read. It
  // must not rule out what the sink takes. Null: every block is read. Outlives the call.
  const BlockPredicate* predicate = nullptr;
  // About how many entries the page will look at; 0: unknown. Not many more are read ahead.
  uint64_t entries_expected = 0;
  // False: the page ends in front of what is damaged (F44). True: it goes on behind, ScanAnswer::skipped
  // says what was passed, and of the keys in there only those are given of which something newer is known
  // than the damaged part can hold: no older state, nothing that was deleted (F43). Nothing is passed over
  // by zone maps then, and no other shard scans ahead.
  bool skip_damage = false;
  // Told of each row that is looked at; the page ends when it says so, once it has got past one key. Store
  // sets it when there are throughput targets. Null: nobody counts. Outlives the call.
  ScanMeter* meter = nullptr;
};

inline constexpr size_t kRowsAtOnceMax = 64;

// Parts rows on another thread than the sink's, for ranges that are scanned ahead of their turn: the sink
// is asked later, in its turn, of the rows that pass. Used by one thread at a time, beside its sink.
class RowSieve {
 public:
  virtual ~RowSieve() = default;
  // As RowSink::Wanted, and then, of a row with its key: false when the sink would pass it.
  virtual uint64_t Wanted(std::span<const KeylessRow> rows) { return UINT64_MAX; }
  virtual bool Passes(std::string_view user_key, Version version, std::string_view content) { return true; }
  // False: nobody waits for the rows any more.
  virtual bool GoOn() { return true; }
};

// Takes the rows of a page as they are found; the views are valid during the call.
class RowSink {
 public:
  enum class Verdict : uint8_t {
    kTaken,   // Counts for the page's limits.
    kPassed,  // Not wanted.
    kStop,    // Not this page's: it ends before this row.
  };
  virtual ~RowSink() = default;
  // Asked of every row once, in their order, before its key is built; of up to kRowsAtOnceMax at once. Bit
  // i clear: row i is not wanted (kPassed). For the others Add follows; for none when the page ends before.
  virtual uint64_t Wanted(std::span<const KeylessRow> rows) { return UINT64_MAX; }
  virtual Verdict Add(std::string_view user_key, Version version, std::string_view content) = 0;
  // The same of a content in a block, which a share of the pin keeps.
  virtual Verdict AddPinned(std::string_view key, Version at, std::string_view content, const BlockPin&) {
    return Add(key, at, content);
  }
  // Asked once a slice, whether rows come by or not (hidden entries and tombstones count). False: the page
  // ends here, once it has got past one key.
  virtual bool GoOn() { return true; }
  // The same, for who wants to know what the scan of a range has come to by now.
  virtual bool GoOnBehind(uint64_t scanned, const BlockCounts& blocks) { return GoOn(); }
  // Asked of a scan of several ranges that lasts: a sieve when so few rows pass that other shards should
  // scan theirs at the same time, else null. `rows_expected` tells how many are still to come of the range in
  // turn, about: where they fill the page, what others scan is thrown away. It looks at each file of the
  // range. Outlived by the sink.
  virtual std::unique_ptr<RowSieve> NewSieve(const std::function<uint64_t()>& rows_expected) {
    return nullptr;
  }
};

struct ScanAnswer {
  uint64_t rows = 0;     // Taken.
  uint64_t bytes = 0;    // Of their keys and contents.
  uint64_t scanned = 0;  // Entries looked at, hidden ones and tombstones included.
  BlockCounts blocks;    // Of table files. Points (ScanInterval::IsPoint) are not counted.
  bool done = false;     // The interval is exhausted.
  // Where to go on: forward the inclusive lower bound, backward the exclusive upper one.
  std::string next_key;
  // The answer is incomplete when there are any: within what the page has decided, each part once.
  std::vector<SkippedSpan> skipped;
};

}  // namespace partita
