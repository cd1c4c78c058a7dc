#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "api/entity.h"
#include "api/filter.h"
#include "engine/base/block_counts.h"

// What is asked of a table, and what it answers: the values that Table::Query and its kin (partita.h) take
// and give. All are plain values; none is thread-safe.
namespace partita {

enum class ScanOrder : uint8_t { kAscending, kDescending };

// Which entities by their keys alone, and how many at once.
struct ScanOptions {
  // Bounds on (PartitionKey, RowKey); unset: open. Lower bounds are inclusive, upper ones
  // exclusive. Either `partition` or bounds on partitions; row bounds only with `partition`. Of an entity
  // table `partition` is a key and bounds are UTF-8, of a raw one all are bytes without 0x00.
  std::optional<std::string> partition_lower{}, partition_upper{};
  std::optional<std::string> partition{};  // Only this one.
  std::optional<std::string> row_lower{}, row_upper{};
  ScanOrder order = ScanOrder::kAscending;
  uint32_t limit = 1000;            // Entities in the page, 1 to 100,000.
  uint64_t bytes_limit = 4u << 20;  // Of stored entities; at least one entity is always given.
  std::string continuation{};       // From the page before; empty: from the start.
  bool skip_damage = false;         // As QueryOptions'.
};

// Which entities by a condition on any of their properties, what of them, and how many at once.
//
//   partita::QueryOptions late;
//   late.filter = "PartitionKey eq 'customer-7' and RowKey ge 'order-0100' and Total gt 100.0";
//   late.select = {"Total", "Note"};
//   late.order = partita::ScanOrder::kDescending;   // The newest first, where RowKeys rise with time.
//   late.top = 10;
//
// Conditions on PartitionKey and RowKey say where to look: keep them as tight as you can, and see with
// Table::Explain what they save. A condition on a property that rises or falls with the keys (a date, a
// number given in order) saves reading, too: blocks whose zone maps rule it out are not read.
struct QueryOptions {
  // In the `$filter` language of the table service: properties against constants (eq ne gt ge lt le), and,
  // or, not, parentheses; 'text', 5, 5L, 5.0, true, datetime'2026-01-31T00:00:00Z', guid'...', X'hex'. A
  // quote in a text is doubled. An entity without the property matches no comparison with it. Empty: all.
  std::string filter{};

  // The same built from parts (api/filter.h), for constants that come from elsewhere: nothing to quote, so
  // nothing to get wrong. Where both are given both must hold. Strings must be UTF-8.
  Filter where{};

  // The properties that are wanted; those not named are not decoded. Empty: all. Keys, Timestamp and ETag
  // are always there; a property that an entity lacks is not in the answer.
  std::vector<std::string> select{};

  ScanOrder order = ScanOrder::kAscending;
  uint64_t top = UINT64_MAX;        // At most so many entities: of one page, or of all pages of ForEach.
  uint32_t limit = 1000;            // Entities in a page, 1 to 100,000.
  uint64_t bytes_limit = 4u << 20;  // Of stored entities in a page; at least one is always given.
  std::string continuation{};       // From the page before; empty: from the start.

  // A page ends after so long, at the latest after 5 s, with what it has, and goes on by its continuation.
  // ForEach and Aggregate as a whole answer kDeadlineExceeded then; ForEach looks at the clock behind a page,
  // and within it every 64 visits. Zero: there is no limit, but for the 5 s of a page. What is left of a time
  // until a deadline may be negative: kDeadlineExceeded at once.
  std::chrono::nanoseconds time_limit{0};

  // Set to true by any thread to stop the call, which then answers kCancelled within milliseconds; ForEach
  // makes no further visit then. May be null; must outlive the call.
  const std::atomic<bool>* cancelled = nullptr;

  // A page ends in front of what is damaged, and the next one answers kCorruption. True: it goes on behind,
  // and Page::skipped names what it does not speak for. What is given is certain all the same: of entities
  // within a damaged part only those that are surely newer than what it had. For pages alone: ForEach answers
  // kInvalidArgument, Aggregate does not look at it.
  bool skip_damage = false;
};

// Keys that a page says nothing of, as it was to step over damage: entities may be missing there.
struct SkippedKeys {
  std::string keys;  // From, and up to without, in words: "'anna' '0001' up to 'anna' '0007'".
  std::string why;   // What is damaged: file, offset, rule.
};

// What a query took.
struct QueryCost {
  uint64_t scanned = 0;   // Entries looked at: older versions and deletions count, what was skipped does not.
  uint64_t returned = 0;  // Of them given, or taken into an aggregate.
  BlockCounts blocks;     // Read and skipped in table files. Entities in memory and single keys need none.
  uint64_t nanos = 0;     // By the clock.

  // The part of the work that was of use, 0 to 1: 1 where nothing was scanned in vain.
  double density() const {
    return scanned == 0 ? 1.0 : static_cast<double>(returned) / static_cast<double>(scanned);
  }
  QueryCost& operator+=(const QueryCost& other) {
    scanned += other.scanned;
    returned += other.returned;
    blocks += other.blocks;
    nanos += other.nanos;
    return *this;
  }
};

// One page: one point in time for each partition it touches.
struct Page {
  std::vector<Entity> entities;
  // Opaque, stateless, never expires: it names a place between keys, and the direction. Empty: nothing is
  // left. A page may be empty and yet have one: the time was up before a match came.
  std::string continuation;
  QueryCost cost;
  // Not empty: the page is incomplete (QueryOptions::skip_damage). A part that goes on behind the page is
  // named again by the next one, from there on.
  std::vector<SkippedKeys> skipped;
};

// How a query would be answered.
struct Explanation {
  // By rising cost: "empty" (its conditions contradict each other), "point", "points", "row-range",
  // "row-ranges", "partition", "partition-range", "ranges", "table-scan".
  std::string kind;
  // Each interval of keys that is read, as a condition, e.g. "PartitionKey eq 'a' and RowKey ge 'b'"; "all"
  // for the whole table.
  std::vector<std::string> bounds;
  std::string residual;  // What is asked of each entity there; "" when the bounds say it all.
  // Properties whose zone maps may spare reading blocks.
  std::vector<std::string> zone_maps;
};

// ---- Aggregates: one value over all entities that match, without giving any of them.

enum class AggregateKind : uint8_t {
  kCount,  // How many have the property; of the empty name: how many entities match.
  kMin,
  kMax,
  kSum,
};

// One of the values wanted. A property may also be PartitionKey, RowKey (Strings) or Timestamp (a DateTime).
struct AggregateOf {
  AggregateKind kind = AggregateKind::kCount;
  std::string property{};
};

// Types. A property may hold values of several types.
//
//   kMin, kMax  of every type; only NaN is passed over. Numbers (Int32, Int64, Double) compare by their value
//               whatever their type; of equal ones the narrower type is given. Values of different kinds
//               order as: Boolean, numbers, DateTime, Guid, String, Binary. Strings compare by UTF-16 code
//               units, as keys do.
//   kSum        of numbers; other types are passed over. Integers alone are summed exactly and give an Int64;
//               when the sum does not fit one it is the nearest Double, and `exact` is false. With a Double
//               among them the sum is a Double; each kind is summed apart, Doubles with compensation.
struct AggregateValue {
  AggregateOf of{};
  std::optional<PropertyValue> value{};  // kCount: an Int64. Nothing where there was no value to take.
  uint64_t taken = 0;                    // Entities whose value went into it.
  uint64_t passed_over = 0;              // Entities that have the property with a value it does not take.
  bool exact = true;                     // False: integers whose sum no Int64 holds.
};

struct AggregateAnswer {
  uint64_t count = 0;                  // Entities that match.
  std::vector<AggregateValue> values;  // As they were asked for.
  QueryCost cost;
};

// Told now and then what was done so far; on one thread at a time, a worker maybe: it must not block for
// long.
using QueryProgress = std::function<void(const QueryCost& so_far)>;

}  // namespace partita
