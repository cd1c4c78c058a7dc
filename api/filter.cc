#include "api/filter.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "api/value_text.h"
#include "engine/base/assert.h"
#include "engine/base/hex.h"

namespace partita {

std::string_view ComparisonText(ComparisonOp op) {
  constexpr std::string_view kTexts[] = {"eq", "ne", "gt", "ge", "lt", "le"};
  return kTexts[static_cast<size_t>(op)];
}

ComparisonOp TurnedRound(ComparisonOp op) {
  switch (op) {
    case ComparisonOp::kGreater:
      return ComparisonOp::kLess;
    case ComparisonOp::kGreaterOrEqual:
      return ComparisonOp::kLessOrEqual;
    case ComparisonOp::kLess:
      return ComparisonOp::kGreater;
    case ComparisonOp::kLessOrEqual:
      return ComparisonOp::kGreaterOrEqual;
    case ComparisonOp::kEqual:
    case ComparisonOp::kNotEqual:
      break;
  }
  return op;
}

Filter Filter::Comparison(std::string name, ComparisonOp op, PropertyValue value) {
  Filter filter;
  filter.nodes_.push_back({.kind = FilterNodeKind::kComparison, .op = op, .name = std::move(name)});
  filter.nodes_.back().value = std::move(value);
  return filter;
}

Filter Filter::BareProperty(std::string name) {
  Filter filter;
  filter.nodes_.push_back({.kind = FilterNodeKind::kProperty, .name = std::move(name)});
  return filter;
}

Filter Filter::Constant(bool truth) {
  Filter filter;
  filter.nodes_.push_back({.kind = FilterNodeKind::kConstant, .truth = truth});
  return filter;
}

Filter Filter::Not(Filter operand) {
  if (operand.empty()) return Constant(false);
  const auto size = static_cast<uint32_t>(operand.nodes_.size() + 1);
  operand.nodes_.push_back({.kind = FilterNodeKind::kNot, .size = size});
  return operand;
}

Filter Filter::And(Filter left, Filter right) {
  if (left.empty()) return right;
  if (right.empty()) return left;
  return Join(FilterNodeKind::kAnd, std::move(left), std::move(right));
}

Filter Filter::Or(Filter left, Filter right) {
  if (left.empty() || right.empty()) return {};
  return Join(FilterNodeKind::kOr, std::move(left), std::move(right));
}

Filter Filter::Join(FilterNodeKind kind, Filter left, Filter right) {
  left.nodes_.insert(left.nodes_.end(), std::make_move_iterator(right.nodes_.begin()),
                     std::make_move_iterator(right.nodes_.end()));
  const auto size = static_cast<uint32_t>(left.nodes_.size() + 1);
  left.nodes_.push_back({.kind = kind, .size = size});
  return left;
}

Filter Filter::Subtree(size_t root) const {
  PARTITA_ASSERT(root < nodes_.size());
  Filter filter;
  const auto end = nodes_.begin() + static_cast<ptrdiff_t>(root) + 1;
  filter.nodes_.assign(end - nodes_[root].size, end);
  return filter;
}

// ---- Text.

void AppendQuoted(std::string* out, std::string_view text) {
  out->push_back('\'');
  for (const char c : text) {
    if (c == '\'') out->push_back('\'');
    out->push_back(c);
  }
  out->push_back('\'');
}

namespace {

void AppendLiteral(std::string* out, const PropertyValue& value) {
  switch (value.type()) {
    case PropertyType::kString:
      return AppendQuoted(out, *value.if_string());
    case PropertyType::kInt64:
      AppendValueText(out, value);
      return out->push_back('L');
    case PropertyType::kDouble:
      if (!std::isinf(*value.if_double())) return AppendValueText(out, value);
      out->append(*value.if_double() < 0 ? "-INF" : "INF");
      return;
    case PropertyType::kDateTime:
      out->append("datetime'");
      // One that no entity can have is as good as the last: an open end, say.
      AppendValueText(out, DateTime{std::min(value.if_date_time()->ticks, kDateTimeTicksMax)});
      return out->push_back('\'');
    case PropertyType::kGuid:
      out->append("guid'");
      AppendValueText(out, value);
      return out->push_back('\'');
    case PropertyType::kBinary:
      out->append("X'");
      AppendHex(out, value.if_binary()->bytes);
      return out->push_back('\'');
    default:
      return AppendValueText(out, value);
  }
}

void AppendLeaf(std::string* out, const FilterNode& node) {
  if (node.kind == FilterNodeKind::kConstant) {
    out->append(node.truth ? "true" : "false");
    return;
  }
  out->append(node.name);
  if (node.kind == FilterNodeKind::kProperty) return;
  out->push_back(' ');
  out->append(ComparisonText(node.op));
  out->push_back(' ');
  AppendLiteral(out, node.value);
}

bool IsJoin(FilterNodeKind kind) { return kind == FilterNodeKind::kAnd || kind == FilterNodeKind::kOr; }

// What is still to be written: a subtree, or text.
struct Piece {
  static constexpr size_t kText = SIZE_MAX;
  size_t root = kText;
  std::string_view text;
};

void PushPieces(std::vector<Piece>* pieces, size_t root, bool in_parentheses) {
  if (in_parentheses) pieces->push_back({.text = ")"});
  pieces->push_back({.root = root});
  if (in_parentheses) pieces->push_back({.text = "("});
}

}  // namespace

std::string Filter::ToString() const {
  std::string out;
  std::vector<Piece> pieces;  // The next one last.
  if (!nodes_.empty()) pieces.push_back({.root = nodes_.size() - 1});
  while (!pieces.empty()) {
    const Piece piece = pieces.back();
    pieces.pop_back();
    if (piece.root == Piece::kText) {
      out.append(piece.text);
      continue;
    }
    const FilterNode& node = nodes_[piece.root];
    const size_t right = piece.root - 1;
    if (node.kind == FilterNodeKind::kNot) {
      PushPieces(&pieces, right, nodes_[right].kind != FilterNodeKind::kNot);
      pieces.push_back({.text = "not "});
    } else if (IsJoin(node.kind)) {
      // Chains group to the left, so an equal operator on the right needs its parentheses.
      const bool is_and = node.kind == FilterNodeKind::kAnd;
      const size_t left = right - nodes_[right].size;
      PushPieces(&pieces, right,
                 nodes_[right].kind == FilterNodeKind::kOr || nodes_[right].kind == node.kind);
      pieces.push_back({.text = is_and ? " and " : " or "});
      PushPieces(&pieces, left, is_and && nodes_[left].kind == FilterNodeKind::kOr);
    } else {
      AppendLeaf(&out, node);
    }
  }
  return out;
}

}  // namespace partita
