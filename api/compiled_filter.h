#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/comparison_outcome.h"
#include "api/filter.h"
#include "engine/base/entity_record.h"
#include "engine/base/entry_run.h"
#include "engine/base/ids.h"
#include "engine/base/property_probe.h"
#include "engine/base/user_key.h"

namespace partita {

// A filter made ready to be asked of many encoded rows: no allocation, no decoding, no recursion.
//
// The tree becomes a list of tests, each with the place to go on at when it is true and when it is
// false; constants become the codes and bytes that records hold, so that a comparison is one of integers
// or one memcmp. Semantics: spec 11.3.
//
// Owned by one query: Matches remembers where the row before had its properties, so an object is used by
// one thread at a time. Cheap to make: about a microsecond for a few comparisons.
class CompiledFilter {
 public:
  // What the names in the filter mean: of an entity, or of a table (`TableName` alone exists).
  enum class Target : uint8_t { kEntities, kTables };

  // `names`: the frequent property names of the table, or null; must outlive this.
  explicit CompiledFilter(const Filter& filter, Target target = Target::kEntities,
                          const PropertyNames* names = nullptr);

  // True when every row matches.
  bool matches_all() const { return entry_ == kAccept; }
  // True when no row does.
  bool matches_none() const { return entry_ == kReject; }

  // True when rows cannot be told from their versions and contents alone.
  bool asks_for_keys() const { return asks_for_keys_; }

  // Comparisons in it: what a row costs, at most.
  size_t test_count() const { return tests_.size(); }

  // Whether the entity matches: its keys (ordered text), its version, which is its Timestamp, and its
  // record. Once a content was met that cannot be read as a record, that one and all behind it match, and
  // met_unreadable() is true: whoever takes the rows finds out which it is (EntityRecordView::Check).
  // REQUIRES: Target::kEntities.
  bool Matches(const UserKeyParts& key, Version version, std::string_view content);

  // The same of up to 64 rows at once, whose misses of the caches overlap: bit i is set when row i matches.
  // REQUIRES: !asks_for_keys(), Target::kEntities, and as above.
  uint64_t MatchesOf(std::span<const KeylessRow> rows);

  bool met_unreadable() const { return met_unreadable_; }

  // Whether a table of this name, in UTF-8, matches. REQUIRES: Target::kTables.
  bool MatchesTable(std::string_view name);

 private:
  enum class Subject : uint8_t { kProperty, kPartitionKey, kRowKey, kTimestamp, kTableName, kMissing };

  using Outcome = ComparisonOutcome::Bit;
  using enum ComparisonOutcome::Bit;

  struct Test {
    Subject subject = Subject::kProperty;
    bool bare = false;           // Asks for a Boolean property that is true.
    bool only_equality = false;  // The operator does not tell less from greater.
    uint8_t accepted = 0;        // Outcomes that make it true.
    uint16_t comparable = 0;     // Bit t: properties of PropertyType t are compared by value.
    uint32_t probe = 0;          // Of the property's name.
    uint32_t when_true = 0, when_false = 0;
    uint64_t code = 0;         // Of the constant, in its own type.
    uint64_t double_code = 0;  // Of the constant widened to Double.
    std::string bytes;         // Of a String (ordered text), Guid or Binary constant.
  };
  struct Row;
  static constexpr uint32_t kAccept = UINT32_MAX;
  static constexpr uint32_t kReject = UINT32_MAX - 1;

  uint32_t AddTest(const FilterNode& node, uint32_t when_true, uint32_t when_false);
  static void SetConstant(Test* test, const PropertyValue& value);
  uint32_t ProbeOf(const std::string& name);
  Subject SubjectOf(const std::string& name) const;
  bool Run(const Row& row);
  bool IsTrue(const Test& test, const Row& row);
  bool IsTrueOfProperty(const Test& test, std::string_view content);
  static Outcome CompareCode(const Test& test, PropertyType type, uint64_t code);
  static Outcome CompareText(const Test& test, PropertyType type, std::string_view text);

  Target target_;
  const PropertyNames* names_;
  std::vector<Test> tests_;
  std::vector<PropertyProbe> probes_;
  bool asks_for_keys_ = false;
  bool met_unreadable_ = false;
  uint32_t entry_ = kAccept;
};

}  // namespace partita
