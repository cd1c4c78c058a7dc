#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/query_options.h"
#include "engine/base/entity_record.h"
#include "engine/base/entry_run.h"
#include "engine/base/ids.h"
#include "engine/base/property_probe.h"

namespace partita {

// A sum of Doubles that keeps what the rounding of each step lost (Neumaier), so that it hardly depends on
// the order: parts that were summed apart can be put together.
class CompensatedSum {
 public:
  void Add(double value);
  void Add(const CompensatedSum& other);
  double value() const;

 private:
  double sum_ = 0;
  double lost_ = 0;
};

// The least or the greatest of the values seen, as query_options.h orders them. Values are taken as they lie
// in a record, and kept only when they win.
class Extreme {
 public:
  enum class Which : uint8_t { kLeast, kGreatest };
  explicit Extreme(Which which) : which_(which) {}

  // False: a NaN, which is passed over.
  bool Add(const PropertyView& value);
  void Add(const Extreme& other);
  // Nothing when no value was taken.
  std::optional<PropertyValue> value() const;

 private:
  Which which_;
  std::optional<PropertyType> type_;
  std::string raw_;  // The value as a record holds it.
};

// Aggregates over rows: one for each share of a table that is read apart; Merge puts them together. Used by
// one thread at a time. Rows are not held.
class Aggregator {
 public:
  explicit Aggregator(std::vector<AggregateOf> wanted);

  // True when some value asked for is a key.
  bool needs_keys() const { return needs_keys_; }

  // One entity that matches: its keys in ordered text, its version and its record, which is looked at only
  // as far as it is asked for. Where it cannot be read as one, what comes of it all is void:
  // met_unreadable() is true then.
  void Add(std::string_view partition_key, std::string_view row_key, Version version,
           std::string_view content);

  // Those of several whose bit is set in `wanted`, without keys. REQUIRES: !needs_keys().
  void AddKeyless(std::span<const KeylessRow> rows, uint64_t wanted);

  bool met_unreadable() const;

  // REQUIRES: `other` was made for the same aggregates.
  void Merge(const Aggregator& other);

  // Without cost.
  AggregateAnswer Answer() const;

 private:
  enum class Subject : uint8_t { kProperty, kPartitionKey, kRowKey, kTimestamp };
  // All that is wanted of one property.
  struct Slot {
    PropertyProbe probe;
    Subject subject = Subject::kProperty;
    bool sums = false;
    bool finds_least = false, finds_greatest = false;
    uint64_t present = 0;
    uint64_t not_ordered = 0;
    uint64_t integers = 0, doubles = 0;
    __extension__ __int128 integer_sum = 0;  // 2^64 values of 2^63 fit.
    CompensatedSum double_sum;
    Extreme least{Extreme::Which::kLeast};
    Extreme greatest{Extreme::Which::kGreatest};
  };
  static void Take(Slot* slot, const PropertyView& value);
  static void Sum(const Slot& slot, AggregateValue* out);

  std::vector<AggregateOf> wanted_;
  std::vector<size_t> slot_of_;  // Of each wanted; SIZE_MAX: none, it counts entities.
  std::vector<Slot> slots_;
  bool needs_keys_ = false;
  uint64_t count_ = 0;
};

}  // namespace partita
