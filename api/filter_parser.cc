#include <optional>

#include "api/filter.h"
#include "api/filter_lexer.h"
#include "api/names.h"
#include "engine/base/assert.h"
#include "engine/base/text.h"

// An operator-precedence parser with two stacks of its own, so that the depth of the text is a number and
// never the depth of our stack:
//
// 1. Operands (names, constants, conditions) and operators wait on their stacks; an operator that binds no
//    tighter than the one before it has that one reduced first.
// 2. Conditions go to the tree in post-order as soon as they are complete. A bare name or constant becomes a
//    condition when `and` or `or` follows it, so that everything on its right comes out behind it.
// 3. A comparison that cannot be run is noted and parsing goes on: a syntax error further on wins.

namespace partita {
namespace {

// By rising tightness; the order is what Reduce goes by.
enum class Operator : uint8_t { kOpen, kCall, kOr, kAnd, kNot, kCompare, kArithmetic };

struct PendingOperator {
  Operator kind = Operator::kOpen;
  ComparisonOp comparison = ComparisonOp::kEqual;
};

struct Operand {
  enum class Kind : uint8_t {
    kName,
    kConstant,
    kNull,
    kCondition,  // Its nodes are in the tree, from `start` on.
    kUnrun,      // The value of a function or of arithmetic: the service parses and refuses it.
  };
  Kind kind = Kind::kName;
  size_t start = 0;
  size_t at = 0;  // Of a kConstant and a kNull: the byte where it begins.
  std::string name;
  PropertyValue value;
};

constexpr std::string_view kGenericText = "One of the request inputs is not valid.";
constexpr std::string_view kNotImplementedText =
    "The requested operation is not implemented on the specified resource.";

Status InvalidInput(std::string_view text) { return BrokenRule(Violation::kInvalidInput, std::string(text)); }

// Functions of OData 3: parsed, not run.
constexpr std::string_view kFunctions[] = {
    "cast",      "ceiling",     "concat",  "day",     "endswith", "floor", "hour",   "indexof",
    "isof",      "length",      "minute",  "month",   "replace",  "round", "second", "startswith",
    "substring", "substringof", "tolower", "toupper", "trim",     "year"};
constexpr std::string_view kArithmetic[] = {"add", "sub", "mul", "div", "mod"};

template <size_t n>
bool IsOneOf(std::string_view word, const std::string_view (&words)[n]) {
  for (const std::string_view candidate : words) {
    if (word == candidate) return true;
  }
  return false;
}

std::optional<ComparisonOp> ComparisonOf(std::string_view word) {
  for (uint8_t i = 0; i <= static_cast<uint8_t>(ComparisonOp::kLessOrEqual); ++i) {
    const auto op = static_cast<ComparisonOp>(i);
    if (word == ComparisonText(op)) return op;
  }
  return std::nullopt;
}

// Operators are words of lower case (documented). Where an operand must stand the others are names, since
// properties may well be called `sub` or `mod`.
bool IsReserved(std::string_view word) { return word == "and" || word == "or"; }

// What the service says of `null` with this operator (spec 11.1).
std::string NullText(ComparisonOp op) {
  if (op == ComparisonOp::kEqual || op == ComparisonOp::kNotEqual) return std::string(kGenericText);
  constexpr std::string_view kNames[] = {"Equal",    "NotEqual",       "GreaterThan", "GreaterThanOrEqual",
                                         "LessThan", "LessThanOrEqual"};
  return "The operator '" + std::string(kNames[static_cast<size_t>(op)]) +
         "' is not supported for the 'null' literal; only equality checks are supported.";
}

}  // namespace

class FilterParser {
 public:
  FilterParser(std::string_view text, FilterWords words) : lexer_(text), words_(words) {}
  Result<Filter> Parse();

 private:
  using Kind = FilterToken::Kind;

  Status TakeOperand(const FilterToken& token);
  Status TakeWord(const FilterToken& token);
  Status TakeOperator(const FilterToken& token);
  Status TakeOperatorWord(const FilterToken& token);
  Status Close(const FilterToken& token);
  Status NextArgument(const FilterToken& token);
  Status Unexpected(const FilterToken& token) const;
  // With the service's text, or with `reason` and the place of byte `at`.
  Status Refused(std::string_view service_text, std::string_view reason, size_t at) const;

  Status Push(Operator kind, ComparisonOp comparison = ComparisonOp::kEqual);
  void PushOperand(Operand operand);
  // Reduces what binds at least as tight as `kind`.
  void ReduceTo(Operator kind);
  void ReduceTop();
  void ReduceComparison(ComparisonOp op, Operand left, Operand right);
  // Makes a name the Double that its word can stand for; false when there is none.
  static bool TurnToDouble(Operand* operand);
  Operand TakeTop();
  // Turns an operand that stands where a condition must into one.
  Operand Condition(Operand operand);
  Operand Emit(size_t start, FilterNode node);
  // Keeps the first refusal for the end.
  void Note(std::string_view service_text, std::string_view reason, size_t at);
  void NoteNull(std::string_view service_text, const Operand& null);

  FilterLexer lexer_;
  const FilterWords words_;
  size_t at_ = 0;  // Where the token begins that is being taken.
  std::vector<PendingOperator> operators_;
  std::vector<Operand> operands_;
  size_t depth_ = 0;  // Parentheses, calls and `not` on the operator stack.
  bool wants_operand_ = true;
  Status refusal_;  // The first 400 that is no syntax error.
  bool unrun_ = false;
  Filter filter_;
};

Result<Filter> FilterParser::Parse() {
  while (true) {
    const FilterToken token = lexer_.Next();
    at_ = token.end - token.text.size();
    if (token.kind == Kind::kMalformed) return lexer_.fault();
    if (token.kind == Kind::kEnd && wants_operand_ && operators_.empty()) return filter_;  // Blank.
    if (token.kind == Kind::kEnd && !wants_operand_) break;
    PARTITA_TRY(wants_operand_ ? TakeOperand(token) : TakeOperator(token));
  }
  ReduceTo(Operator::kOr);
  if (!operators_.empty()) return Unexpected({.end = lexer_.Next().end});  // A parenthesis is still open.
  Condition(TakeTop());
  if (!refusal_.ok()) return refusal_;
  if (unrun_) return Status::Unsupported(std::string(kNotImplementedText));
  return std::move(filter_);
}

Status FilterParser::Unexpected(const FilterToken& token) const { return lexer_.SyntaxError(token.end); }

Status FilterParser::Refused(std::string_view service_text, std::string_view reason, size_t at) const {
  if (words_ == FilterWords::kService) return InvalidInput(service_text);
  return InvalidInput(std::string(reason) + lexer_.Place(at));
}

void FilterParser::Note(std::string_view service_text, std::string_view reason, size_t at) {
  if (refusal_.ok()) refusal_ = Refused(service_text, reason, at);
}

void FilterParser::NoteNull(std::string_view service_text, const Operand& null) {
  Note(service_text, "A property without a value does not exist, so there is no 'null' to ask for", null.at);
}

// ---- Operands.

Status FilterParser::TakeOperand(const FilterToken& token) {
  switch (token.kind) {
    case Kind::kOpen:
      return Push(Operator::kOpen);
    case Kind::kWord:
      return TakeWord(token);
    case Kind::kLiteral:
      PushOperand({.kind = Operand::Kind::kConstant, .value = token.value});
      return Status();
    default:
      return Unexpected(token);
  }
}

Status FilterParser::TakeWord(const FilterToken& token) {
  const std::string_view word = token.text;
  if (word == "not") {
    const bool after_value_operator = !operators_.empty() && operators_.back().kind >= Operator::kCompare;
    return after_value_operator ? Unexpected(token) : Push(Operator::kNot);
  }
  if (IsReserved(word)) return Unexpected(token);
  if (lexer_.OpensNext()) {
    if (!IsOneOf(word, kFunctions)) {
      const std::string unknown = "Unknown function '" + std::string(Utf16Prefix(word, 255)) + "'";
      return Refused(unknown + ".", unknown, at_);
    }
    lexer_.Next();
    return Push(Operator::kCall);
  }
  if (word == "true" || word == "false") {
    PushOperand({.kind = Operand::Kind::kConstant, .value = word == "true"});
  } else if (word == "null") {
    PushOperand({.kind = Operand::Kind::kNull});
  } else if (IsSystemPropertyName(word) || CheckPropertyName(word).ok()) {
    PushOperand({.kind = Operand::Kind::kName, .name = std::string(word)});
  } else {
    return Unexpected(token);
  }
  return Status();
}

void FilterParser::PushOperand(Operand operand) {
  operand.at = at_;
  operands_.push_back(std::move(operand));
  wants_operand_ = false;
}

// ---- Operators.

Status FilterParser::TakeOperator(const FilterToken& token) {
  switch (token.kind) {
    case Kind::kClose:
      return Close(token);
    case Kind::kComma:
      return NextArgument(token);
    case Kind::kWord:
      return TakeOperatorWord(token);
    default:
      return Unexpected(token);
  }
}

Status FilterParser::TakeOperatorWord(const FilterToken& token) {
  if (token.text == "and" || token.text == "or") {
    const Operator kind = token.text == "and" ? Operator::kAnd : Operator::kOr;
    ReduceTo(kind);
    operands_.push_back(Condition(TakeTop()));
    return Push(kind);
  }
  if (const std::optional<ComparisonOp> op = ComparisonOf(token.text)) {
    ReduceTo(Operator::kArithmetic);
    // Comparisons do not chain: `a eq b eq c`.
    if (!operators_.empty() && operators_.back().kind == Operator::kCompare) return Unexpected(token);
    return Push(Operator::kCompare, *op);
  }
  if (IsOneOf(token.text, kArithmetic)) {
    ReduceTo(Operator::kArithmetic);
    return Push(Operator::kArithmetic);
  }
  return Unexpected(token);
}

Status FilterParser::Close(const FilterToken& token) {
  ReduceTo(Operator::kOr);
  if (operators_.empty()) return Unexpected(token);
  if (operators_.back().kind == Operator::kCall) operands_.back() = {.kind = Operand::Kind::kUnrun};
  operators_.pop_back();
  --depth_;
  return Status();
}

Status FilterParser::NextArgument(const FilterToken& token) {
  ReduceTo(Operator::kOr);
  if (operators_.empty() || operators_.back().kind != Operator::kCall) return Unexpected(token);
  operands_.pop_back();
  wants_operand_ = true;
  return Status();
}

Status FilterParser::Push(Operator kind, ComparisonOp comparison) {
  if (kind == Operator::kOpen || kind == Operator::kCall || kind == Operator::kNot) {
    if (++depth_ > kFilterDepthMax) {
      return Refused(kGenericText,
                     "Parentheses and 'not' are nested too deep, beyond " + std::to_string(kFilterDepthMax),
                     at_);
    }
  }
  operators_.push_back({kind, comparison});
  wants_operand_ = true;
  return Status();
}

// ---- Reducing.

void FilterParser::ReduceTo(Operator kind) {
  while (!operators_.empty() && operators_.back().kind >= kind) ReduceTop();
}

Operand FilterParser::TakeTop() {
  PARTITA_ASSERT(!operands_.empty());
  Operand operand = std::move(operands_.back());
  operands_.pop_back();
  return operand;
}

void FilterParser::ReduceTop() {
  const PendingOperator top = operators_.back();
  operators_.pop_back();
  Operand right = TakeTop();
  switch (top.kind) {
    case Operator::kNot: {
      --depth_;
      const Operand operand = Condition(std::move(right));
      operands_.push_back(Emit(operand.start, {.kind = FilterNodeKind::kNot}));
      break;
    }
    case Operator::kAnd:
    case Operator::kOr: {
      Condition(std::move(right));
      const FilterNodeKind kind = top.kind == Operator::kAnd ? FilterNodeKind::kAnd : FilterNodeKind::kOr;
      const size_t start = TakeTop().start;
      operands_.push_back(Emit(start, {.kind = kind}));
      break;
    }
    case Operator::kCompare:
      ReduceComparison(top.comparison, TakeTop(), std::move(right));
      break;
    default:
      PARTITA_ASSERT(top.kind == Operator::kArithmetic);  // ReduceTo stops at parentheses.
      TakeTop();
      operands_.push_back({.kind = Operand::Kind::kUnrun});
  }
}

bool FilterParser::TurnToDouble(Operand* operand) {
  const std::optional<double> number = DoubleOfWord(operand->name);
  if (number) *operand = {.kind = Operand::Kind::kConstant, .at = operand->at, .value = *number};
  return number.has_value();
}

void FilterParser::ReduceComparison(ComparisonOp op, Operand left, Operand right) {
  using OperandKind = Operand::Kind;
  // `INF` and `NaN` beside a constant are properties called so; beside a name they are Doubles.
  if (left.kind == OperandKind::kName && right.kind == OperandKind::kName && !TurnToDouble(&right)) {
    TurnToDouble(&left);
  }
  const size_t start = filter_.nodes_.size();
  FilterNode node;  // Stands for a comparison that is refused.
  if (left.kind == OperandKind::kNull || right.kind == OperandKind::kNull) {
    NoteNull(NullText(op), left.kind == OperandKind::kNull ? left : right);
  } else if (left.kind == OperandKind::kConstant && right.kind == OperandKind::kName) {
    node = {.kind = FilterNodeKind::kComparison, .op = TurnedRound(op), .name = std::move(right.name)};
    node.value = std::move(left.value);
  } else if (left.kind == OperandKind::kName && right.kind == OperandKind::kConstant) {
    node = {.kind = FilterNodeKind::kComparison, .op = op, .name = std::move(left.name)};
    node.value = std::move(right.value);
  } else {
    unrun_ = true;
  }
  operands_.push_back(Emit(start, std::move(node)));
}

Operand FilterParser::Condition(Operand operand) {
  const size_t start = filter_.nodes_.size();
  switch (operand.kind) {
    case Operand::Kind::kCondition:
      return operand;
    case Operand::Kind::kName:
      return Emit(start, {.kind = FilterNodeKind::kProperty, .name = std::move(operand.name)});
    case Operand::Kind::kConstant:
      if (const bool* truth = operand.value.if_boolean()) {
        return Emit(start, {.kind = FilterNodeKind::kConstant, .truth = *truth});
      }
      Note(kGenericText, "A constant that is neither true nor false is no condition", operand.at);
      break;
    case Operand::Kind::kNull:
      NoteNull(kGenericText, operand);
      break;
    case Operand::Kind::kUnrun:
      unrun_ = true;
      break;
  }
  return Emit(start, {});
}

Operand FilterParser::Emit(size_t start, FilterNode node) {
  node.size = static_cast<uint32_t>(filter_.nodes_.size() - start + 1);
  filter_.nodes_.push_back(std::move(node));
  return {.kind = Operand::Kind::kCondition, .start = start};
}

Result<Filter> ParseFilter(std::string_view text, FilterWords words) {
  const bool ours = words == FilterWords::kOurs;
  if (text.size() > kFilterTextMax) {
    if (!ours) return InvalidInput(kGenericText);
    return InvalidInput("It has " + std::to_string(text.size()) + " bytes; allowed are " +
                        std::to_string(kFilterTextMax) + ".");
  }
  const Status utf8 = CheckUtf8("text", text);
  if (!utf8.ok()) return ours ? utf8 : InvalidInput(kGenericText);
  return FilterParser(text, words).Parse();
}

}  // namespace partita
