#include "api/key_boxes.h"

#include <algorithm>
#include <iterator>

#include "engine/base/assert.h"
#include "engine/base/user_key.h"

namespace partita {
namespace {

constexpr char kBefore = '\0';
constexpr char kAfter = '\1';

std::string_view EarlierUpper(const std::string& a, const std::string& b) {
  if (a.empty()) return b;
  return b.empty() ? a : std::min<std::string_view>(a, b);
}

ComparisonOp Negated(ComparisonOp op) {
  switch (op) {
    case ComparisonOp::kEqual:
      return ComparisonOp::kNotEqual;
    case ComparisonOp::kNotEqual:
      return ComparisonOp::kEqual;
    case ComparisonOp::kGreater:
      return ComparisonOp::kLessOrEqual;
    case ComparisonOp::kGreaterOrEqual:
      return ComparisonOp::kLess;
    case ComparisonOp::kLess:
      return ComparisonOp::kGreaterOrEqual;
    case ComparisonOp::kLessOrEqual:
      return ComparisonOp::kGreater;
  }
  return op;
}

KeyBoxes Always(bool truth) { return truth ? KeyBoxes::All(/*exact=*/true) : KeyBoxes::None(); }

// A key is always there and always a String: its comparisons have a complement, and with a constant of
// another type they come out the same for every row (a mismatch is less, spec 11.3).
KeyBoxes BoxesOfKeyComparison(const FilterNode& node, bool negated) {
  const std::string* text = node.value.if_string();
  if (text == nullptr) {
    const bool when_less = node.op == ComparisonOp::kNotEqual || node.op == ComparisonOp::kLess ||
                           node.op == ComparisonOp::kLessOrEqual;
    return Always(when_less != negated);
  }
  const ComparisonOp op = negated ? Negated(node.op) : node.op;
  // All but one key is nearly all. A text that no key can have is left to the residual, as the ends of
  // intervals are built on what keys cannot hold.
  const bool beyond_keys = text->find(kBefore) != text->npos || text->find(kAfter) != text->npos;
  if (op == ComparisonOp::kNotEqual || beyond_keys) return KeyBoxes::All(/*exact=*/false);
  KeyInterval keys = KeyInterval::Where(op, *text);
  if (keys.IsEmpty()) return KeyBoxes::None();
  KeyBox box;
  (node.name == "PartitionKey" ? box.partitions : box.rows) = std::move(keys);
  return {.boxes = {std::move(box)}};
}

KeyBoxes BoxesOfLeaf(const FilterNode& node, bool negated) {
  const bool is_key = node.name == "PartitionKey" || node.name == "RowKey";
  switch (node.kind) {
    case FilterNodeKind::kConstant:
      return Always(node.truth != negated);
    case FilterNodeKind::kProperty:
      return is_key ? Always(negated) : KeyBoxes::All(/*exact=*/false);
    default:
      return is_key ? BoxesOfKeyComparison(node, negated) : KeyBoxes::All(/*exact=*/false);
  }
}

// An open box never lies beside others: Union sees to it.
bool IsAll(const KeyBoxes& set) { return set.boxes.size() == 1 && set.boxes.front().open(); }

}  // namespace

// ---- Intervals.

KeyInterval KeyInterval::Where(ComparisonOp op, std::string_view utf8) {
  PARTITA_ASSERT(op != ComparisonOp::kNotEqual);
  KeyInterval interval;
  const std::string key = OrderedText(utf8);
  const bool bounded_below =
      op == ComparisonOp::kEqual || op == ComparisonOp::kGreater || op == ComparisonOp::kGreaterOrEqual;
  const bool bounded_above =
      op == ComparisonOp::kEqual || op == ComparisonOp::kLess || op == ComparisonOp::kLessOrEqual;
  if (bounded_below) interval.lower = key + (op == ComparisonOp::kGreater ? kAfter : kBefore);
  if (bounded_above) interval.upper = key + (op == ComparisonOp::kLess ? kBefore : kAfter);
  return interval;
}

bool KeyInterval::IsEmpty() const {
  if (upper.empty()) return false;
  return lower >= upper ||
         (upper.size() == 1 && upper[0] == kBefore);  // Nothing stands before the empty key.
}

bool KeyInterval::IsPoint() const {
  if (lower.empty() || lower.size() != upper.size() || lower.back() != kBefore || upper.back() != kAfter) {
    return false;
  }
  return std::string_view(lower).substr(0, lower.size() - 1) ==
         std::string_view(upper).substr(0, upper.size() - 1);
}

KeyInterval KeyInterval::And(const KeyInterval& other) const {
  return {.lower = std::max(lower, other.lower), .upper = std::string(EarlierUpper(upper, other.upper))};
}

// ---- Sets.

KeyBoxes Intersection(KeyBoxes a, KeyBoxes b, size_t* work_left) {
  // A condition that says nothing of keys is most of them, and costs nothing.
  if (IsAll(a) || IsAll(b)) {
    KeyBoxes& narrower = IsAll(a) ? b : a;
    narrower.exact = narrower.boxes.empty() || (a.exact && b.exact);
    return std::move(narrower);
  }
  const size_t pairs = a.boxes.size() * b.boxes.size();
  const bool too_much = pairs > *work_left;
  *work_left -= std::min(pairs, *work_left);
  if (too_much) {
    // Either alone holds every match.
    KeyBoxes& fewer = a.boxes.size() < b.boxes.size() ? a : b;
    fewer.exact = false;
    return std::move(fewer);
  }
  KeyBoxes result{.exact = a.exact && b.exact};
  for (const KeyBox& left : a.boxes) {
    for (const KeyBox& right : b.boxes) {
      KeyBox box{.partitions = left.partitions.And(right.partitions), .rows = left.rows.And(right.rows)};
      if (!box.partitions.IsEmpty() && !box.rows.IsEmpty()) result.boxes.push_back(std::move(box));
    }
  }
  if (result.boxes.size() > kKeyBoxesMax) {
    KeyBoxes& fewer = a.boxes.size() < b.boxes.size() ? a : b;
    fewer.exact = false;
    return std::move(fewer);
  }
  if (result.boxes.empty()) result.exact = true;
  return result;
}

KeyBoxes Union(KeyBoxes a, KeyBoxes b) {
  const bool exact = a.exact && b.exact;
  if (IsAll(a) || IsAll(b)) return KeyBoxes::All((IsAll(a) && a.exact) || (IsAll(b) && b.exact));
  if (a.boxes.size() < b.boxes.size()) std::swap(a, b);
  if (a.boxes.size() + b.boxes.size() > kKeyBoxesMax) return KeyBoxes::All(/*exact=*/false);
  std::move(b.boxes.begin(), b.boxes.end(), std::back_inserter(a.boxes));
  a.exact = exact;
  return a;
}

// Bottom-up over the post-order, with `not` pushed down to the leaves beforehand: below an odd number of
// them `and` and `or` change places and comparisons turn into their complements.
KeyBoxes BoxesOf(const Filter& filter, size_t* work_left) {
  const std::vector<FilterNode>& nodes = filter.nodes();
  if (nodes.empty()) return KeyBoxes::All(/*exact=*/true);
  std::vector<bool> negated(nodes.size());
  for (size_t i = nodes.size(); i-- > 0;) {
    const FilterNodeKind kind = nodes[i].kind;
    if (kind == FilterNodeKind::kNot) negated[i - 1] = !negated[i];
    if (kind == FilterNodeKind::kAnd || kind == FilterNodeKind::kOr) {
      negated[i - 1] = negated[i];
      negated[i - 1 - nodes[i - 1].size] = negated[i];
    }
  }
  std::vector<KeyBoxes> sets;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].kind == FilterNodeKind::kNot) continue;
    if (nodes[i].kind != FilterNodeKind::kAnd && nodes[i].kind != FilterNodeKind::kOr) {
      sets.push_back(BoxesOfLeaf(nodes[i], negated[i]));
      continue;
    }
    KeyBoxes right = std::move(sets.back());
    sets.pop_back();
    const bool is_and = (nodes[i].kind == FilterNodeKind::kAnd) != negated[i];
    sets.back() = is_and ? Intersection(std::move(sets.back()), std::move(right), work_left)
                         : Union(std::move(sets.back()), std::move(right));
  }
  PARTITA_ASSERT(sets.size() == 1);
  return std::move(sets.back());
}

}  // namespace partita
