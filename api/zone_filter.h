#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "api/comparison_outcome.h"
#include "api/filter.h"
#include "engine/base/block_predicate.h"
#include "engine/base/property_value.h"

namespace partita {

// A filter that can be asked of zone maps: it rules out blocks of which surely no entity matches.
//
// Each comparison is given the set of answers that it may have over the entities of a zone: true, false or
// both. `and`, `or` and `not` work on such sets. So correlations between properties are not seen, and what
// is ruled out is ruled out for good: semantics of spec 11.3, as in compiled_filter.h. Strings, Guids and
// Binaries are known by their first 8 bytes only; keys not at all, because the plan has cut them out.
//
// Immutable and thread-safe.
class ZoneFilter final : public BlockPredicate {
 public:
  explicit ZoneFilter(const Filter& filter);

  // False: it rules nothing out, whatever the zones; there is no use in asking.
  bool useful() const { return useful_; }

  std::span<const std::string> properties() const override { return properties_; }
  bool MayMatch(const BlockZones& zones) const override;
  size_t cost() const override { return nodes_.size() + properties_.size(); }

 private:
  using enum ComparisonOutcome::Bit;
  // What a condition may answer, as bits.
  enum Answer : uint8_t { kNever = 0, kTrue = 1, kFalse = 2, kEither = 3 };

  enum class Kind : uint8_t { kAnswer, kProperty, kBareProperty, kTimestamp, kNot, kAnd, kOr };

  // In the filter's post-order. What counts depends on the kind.
  struct Node {
    Kind kind = Kind::kAnswer;
    uint8_t answer = kEither;    // Of kAnswer: what it answers anywhere.
    uint32_t property = 0;       // Index in properties_.
    uint8_t accepted = 0;        // Outcomes that make a comparison true.
    uint16_t comparable = 0;     // Bit t: properties of PropertyType t are compared by value.
    bool head_is_least = false;  // No longer text with the constant's head code is below it.
    uint64_t code = 0;           // Of the constant in its own type; the head code of a text.
    uint64_t double_code = 0;    // Of a number widened to Double.
  };

  Node NodeOf(const FilterNode& node);
  static void SetConstant(Node* node, const PropertyValue& value);
  uint32_t PropertyIndex(const std::string& name);
  static uint8_t AnswersOf(const Node& node, const BlockZones& zones);
  static uint8_t OutcomesOf(const Node& node, const PropertyZone& zone);
  static uint8_t OutcomesOfType(const Node& node, PropertyType type, uint64_t least, uint64_t greatest);

  std::vector<Node> nodes_;
  std::vector<std::string> properties_;
  bool useful_ = false;
};

}  // namespace partita
