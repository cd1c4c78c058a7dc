#include "api/zone_filter.h"

#include <algorithm>

#include "api/filter_codes.h"
#include "engine/base/assert.h"
#include "engine/base/user_key.h"

namespace partita {
namespace {

// A longer filter rules nothing out: asking it of many blocks would cost more than it saves.
constexpr size_t kNodesMax = 256;

// Operands that wait for their operator: a deeper filter rules nothing out.
constexpr size_t kOperandsMax = 64;

// How many operands wait at most while the tree is evaluated in post-order.
size_t OperandsMax(const std::vector<FilterNode>& nodes) {
  size_t now = 0;
  size_t most = 0;
  for (const FilterNode& node : nodes) {
    if (node.kind == FilterNodeKind::kAnd || node.kind == FilterNodeKind::kOr) {
      --now;
    } else if (node.kind != FilterNodeKind::kNot) {
      most = std::max(most, ++now);
    }
  }
  return most;
}

}  // namespace

// ---- Making it.

ZoneFilter::ZoneFilter(const Filter& filter) {
  if (filter.empty() || filter.nodes().size() > kNodesMax) return;
  if (OperandsMax(filter.nodes()) > kOperandsMax) return;
  nodes_.reserve(filter.nodes().size());
  for (const FilterNode& node : filter.nodes()) {
    nodes_.push_back(NodeOf(node));
    const Node& made = nodes_.back();
    useful_ |= made.kind == Kind::kProperty || made.kind == Kind::kBareProperty ||
               made.kind == Kind::kTimestamp || (made.kind == Kind::kAnswer && made.answer != kEither);
  }
}

ZoneFilter::Node ZoneFilter::NodeOf(const FilterNode& node) {
  const bool is_key = node.name == "PartitionKey" || node.name == "RowKey";
  const bool is_timestamp = node.name == "Timestamp";
  Node made;
  switch (node.kind) {
    case FilterNodeKind::kNot:
      made.kind = Kind::kNot;
      return made;
    case FilterNodeKind::kAnd:
      made.kind = Kind::kAnd;
      return made;
    case FilterNodeKind::kOr:
      made.kind = Kind::kOr;
      return made;
    case FilterNodeKind::kConstant:
      made.answer = node.truth ? kTrue : kFalse;
      return made;
    case FilterNodeKind::kProperty:
      made.answer = kFalse;  // No key or Timestamp is a Boolean.
      if (is_key || is_timestamp) return made;
      made.kind = Kind::kBareProperty;
      made.property = PropertyIndex(node.name);
      return made;
    case FilterNodeKind::kComparison:
      break;
  }
  if (is_key) return made;
  made.kind = is_timestamp ? Kind::kTimestamp : Kind::kProperty;
  made.accepted = ComparisonOutcome::Accepted(node.op);
  SetConstant(&made, node.value);
  if (!is_timestamp) made.property = PropertyIndex(node.name);
  return made;
}

void ZoneFilter::SetConstant(Node* node, const PropertyValue& value) {
  const WidenedConstant widened = Widened(value);
  node->comparable = widened.comparable;
  node->double_code = widened.double_code;
  node->code = OrderedCode(value);
  if (value.type() != PropertyType::kString && value.type() != PropertyType::kBinary) return;
  const std::string text = value.if_string() ? OrderedText(*value.if_string()) : value.if_binary()->bytes;
  // Filled with zeros the head is also that of what ends in such zeros, and only that is below it.
  node->head_is_least = text.size() <= sizeof node->code && (text.empty() || text.back() != '\0');
}

uint32_t ZoneFilter::PropertyIndex(const std::string& name) {
  const auto found = std::find(properties_.begin(), properties_.end(), name);
  if (found != properties_.end()) return static_cast<uint32_t>(found - properties_.begin());
  properties_.push_back(name);
  return static_cast<uint32_t>(properties_.size() - 1);
}

// ---- Asking it.

bool ZoneFilter::MayMatch(const BlockZones& zones) const {
  PARTITA_DEBUG_ASSERT(zones.properties.size() == properties_.size());
  if (nodes_.empty()) return true;
  uint8_t operands[kOperandsMax];
  size_t count = 0;
  for (const Node& node : nodes_) {
    if (node.kind < Kind::kNot) {
      operands[count++] = AnswersOf(node, zones);
      continue;
    }
    uint8_t& left = operands[node.kind == Kind::kNot ? count - 1 : count - 2];
    const uint8_t right = operands[count - 1];
    if (node.kind == Kind::kNot) {
      left = static_cast<uint8_t>((right & kTrue) << 1 | (right & kFalse) >> 1);
      continue;
    }
    --count;
    // True needs both, false needs one; and the other way round.
    const uint8_t both = node.kind == Kind::kAnd ? kTrue : kFalse;
    const uint8_t one = both ^ kEither;
    left = static_cast<uint8_t>((left & right & both) | ((left | right) & one));
  }
  return (operands[0] & kTrue) != 0;
}

uint8_t ZoneFilter::AnswersOf(const Node& node, const BlockZones& zones) {
  if (node.kind == Kind::kAnswer) return node.answer;
  uint8_t outcomes = 0;
  bool missing = false;
  if (node.kind == Kind::kTimestamp) {
    outcomes =
        OutcomesOfType(node, PropertyType::kDateTime, zones.version_min.value, zones.version_max.value);
  } else {
    const PropertyZone& zone = zones.properties[node.property];
    if (!zone.known) return kEither;
    missing = zone.absent || zone.types == 0;
    if (node.kind == Kind::kBareProperty) {
      const bool may_be_true = (zone.types & BitOf(PropertyType::kBoolean)) != 0 && zone.greatest != 0;
      const bool always_true = !missing && zone.types == BitOf(PropertyType::kBoolean) && zone.least != 0;
      return static_cast<uint8_t>((may_be_true ? kTrue : kNever) | (always_true ? kNever : kFalse));
    }
    outcomes = OutcomesOf(node, zone);
  }
  const bool may_be_true = (outcomes & node.accepted) != 0;
  // A comparison with a missing property is false, whatever the operator.
  const bool may_be_false = missing || (outcomes & ~node.accepted) != 0;
  return static_cast<uint8_t>((may_be_true ? kTrue : kNever) | (may_be_false ? kFalse : kNever));
}

// The bounds hold for each of the types.
uint8_t ZoneFilter::OutcomesOf(const Node& node, const PropertyZone& zone) {
  uint8_t outcomes = 0;
  for (unsigned types = zone.types; types != 0; types &= types - 1) {
    const auto type = static_cast<PropertyType>(__builtin_ctz(types));
    outcomes |= OutcomesOfType(node, type, zone.least, zone.greatest);
  }
  return outcomes;
}

uint8_t ZoneFilter::OutcomesOfType(const Node& node, PropertyType type, uint64_t least, uint64_t greatest) {
  if ((node.comparable & BitOf(type)) == 0) return kLess;  // A mismatch counts as less.
  uint64_t code = node.code;
  uint8_t outcomes = 0;
  if (type == PropertyType::kDouble) {
    code = node.double_code;
    if (IsNanCode(code)) return kUnordered;
    if (IsNanCode(least) || IsNanCode(greatest)) outcomes |= kUnordered;
    least = std::max(least, kNegativeInfinityCode);
    greatest = std::min(greatest, kInfinityCode);
    if (least > greatest) return outcomes;
    // The two zeros are equal.
    if (least == kNegativeZeroCode) least = kZeroCode;
    if (greatest == kNegativeZeroCode) greatest = kZeroCode;
  }
  if (least < code) outcomes |= kLess;
  if (least <= code && code <= greatest) {
    outcomes |= kEqual;
    if (!CodeIsExact(type)) outcomes |= static_cast<uint8_t>(kGreater | (node.head_is_least ? 0 : kLess));
  }
  if (greatest > code) outcomes |= kGreater;
  return outcomes;
}

}  // namespace partita
