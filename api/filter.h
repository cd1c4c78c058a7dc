#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/property_value.h"
#include "engine/base/result.h"

namespace partita {

// A `$filter` as a typed tree (spec 11.1, 11.2). Parsed once; planned by query_plan.h, run by
// compiled_filter.h.
//
//   PARTITA_ASSIGN(Filter filter, ParseFilter("PartitionKey eq 'a' and Price gt 5"));
//
// A value; safe to read from any thread.

enum class ComparisonOp : uint8_t { kEqual, kNotEqual, kGreater, kGreaterOrEqual, kLess, kLessOrEqual };

// "eq", "ne", "gt", "ge", "lt", "le".
std::string_view ComparisonText(ComparisonOp op);
// The operator that says the same with the sides exchanged: `5 lt s` is `s gt 5`.
ComparisonOp TurnedRound(ComparisonOp op);

// Appends a String as filters write it: between quotes, those in it doubled.
void AppendQuoted(std::string* out, std::string_view text);

enum class FilterNodeKind : uint8_t {
  kComparison,  // property op constant
  kProperty,    // A bare name: true for a Boolean property that is true.
  kConstant,    // true or false.
  kNot,         // One operand.
  kAnd,         // Two operands.
  kOr,          // Two operands.
};

// One node. What counts depends on the kind.
struct FilterNode {
  FilterNodeKind kind = FilterNodeKind::kConstant;
  ComparisonOp op = ComparisonOp::kEqual;
  bool truth = true;    // Of a kConstant.
  uint32_t size = 1;    // Nodes of the subtree that ends here, this one included.
  std::string name;     // Of the property.
  PropertyValue value;  // What it is compared with. Strings are UTF-8.
};

// The tree in post-order: operands before their operator, the root last. So a tree of any depth is
// built, walked, copied and destroyed without recursion: the right operand of node i is i - 1, its left
// one i - 1 - nodes[i - 1].size.
class Filter {
 public:
  // Matches everything: what an empty `$filter` is.
  Filter() = default;

  static Filter Comparison(std::string name, ComparisonOp op, PropertyValue value);
  static Filter BareProperty(std::string name);
  static Filter Constant(bool truth);
  static Filter Not(Filter operand);
  static Filter And(Filter left, Filter right);
  static Filter Or(Filter left, Filter right);

  // True when there is no condition at all.
  bool empty() const { return nodes_.empty(); }
  const std::vector<FilterNode>& nodes() const { return nodes_; }

  // The subtree whose root is node `root`, as a filter of its own. REQUIRES: root < nodes().size().
  Filter Subtree(size_t root) const;

  // Text that ParseFilter reads back to the same tree; "" when empty. REQUIRES: DateTimes are in range.
  std::string ToString() const;

 private:
  friend class FilterParser;
  static Filter Join(FilterNodeKind kind, Filter left, Filter right);
  std::vector<FilterNode> nodes_;
};

// Bytes of `$filter` text that are accepted; nesting of parentheses and `not`. A chain of `and` or `or`
// may be as long as the text.
inline constexpr size_t kFilterTextMax = 65'536;
inline constexpr size_t kFilterDepthMax = 1'000;

// Whose words a refusal is in: the service's, which often gives neither reason nor place, or such as always
// give the reason, and the place where the text has one.
enum class FilterWords : uint8_t { kService, kOurs };

// Parses the text after URL decoding. Empty or blank text is the empty filter. A constant on the left is
// turned round. Refusals, each with a message that is meant for the client as it stands:
//
//   kInvalidArgument, detail Violation::kInvalidInput   400 InvalidInput. A syntax error names the offset,
//                      in UTF-16 units from 0, at which the parser stopped: the end of the unexpected word
//   kUnsupported       501 NotImplemented: parsed, but not run (functions of OData 3, arithmetic, two
//                      properties, two constants)
//
// A syntax error anywhere wins over the rest, and 400 over 501.
Result<Filter> ParseFilter(std::string_view text, FilterWords words = FilterWords::kService);

}  // namespace partita
