#include "bench/lab/key_template.h"

#include <algorithm>
#include <charconv>

#include "bench/lab/experiment.h"
#include "bench/lab/key_expression.h"

namespace partita::lab {
namespace {

using Expression = KeyTemplate::Expression;
using Operator = Expression::Op;

constexpr std::string_view kTimeUnits = "YmdHMSf";
// Plans follow a key part by part.
constexpr size_t kPartsMax = 64;

void CollectFields(const Expression& expression, KeyTemplate::Part* part) {
  if (expression.op == Operator::kField) part->fields.push_back(expression.field);
  if (expression.op == Operator::kSalt) part->salted = true;
  for (const Expression& argument : expression.arguments) CollectFields(argument, part);
}

// Digits rise with the number only where they are as many: with leading zeros, and no number that outgrows
// them.
void ClassifyDigits(const std::vector<Field>& fields, KeyTemplate::Part* part) {
  const Expression& expression = *part->expression;
  const bool padded = expression.op == Operator::kPad;
  uint64_t digits = padded ? static_cast<uint64_t>(expression.arguments[1].number) : 0;
  if (!padded && part->format.starts_with('0')) {
    std::from_chars(part->format.data(), part->format.data() + part->format.size(), digits);
  }
  const uint64_t base = part->format.ends_with('x') ? 16 : 10;
  if (part->values > 0) {
    part->one_length =
        FitDigits({0, static_cast<int64_t>(part->values) - 1}, std::max<uint64_t>(digits, 1), base);
    return;
  }
  const Expression& number = padded ? expression.arguments[0] : expression;
  if (number.op != Operator::kField || number.type != PropertyType::kInt64) return;
  const std::pair<int64_t, int64_t> range = fields[number.field].NumberRange();
  part->one_length = FitDigits(range, digits, base);
  if (!part->one_length) return;
  part->direction = 1;
  part->numbers = range;
}

// What the planner needs to know of a part beside its value.
void Classify(const std::vector<Field>& fields, KeyTemplate::Part* part) {
  const Expression& expression = *part->expression;
  CollectFields(expression, part);
  std::sort(part->fields.begin(), part->fields.end());
  part->fields.erase(std::unique(part->fields.begin(), part->fields.end()), part->fields.end());
  if (expression.op == Operator::kBucket || expression.op == Operator::kSalt) {
    part->values = static_cast<uint64_t>(expression.arguments.back().number);
  } else if (expression.op == Operator::kRemainder && expression.arguments[1].op == Operator::kNumber &&
             expression.arguments[1].number > 0) {
    part->values = static_cast<uint64_t>(expression.arguments[1].number);
  }
  const bool is_field = expression.op == Operator::kField;
  const bool is_padded = expression.op == Operator::kPad && expression.arguments[0].op == Operator::kField;
  part->is_value =
      is_padded || (is_field && (expression.type != PropertyType::kDateTime || part->format.empty()));
  if (expression.op == Operator::kTicks) part->direction = 1;
  if (expression.op == Operator::kDescTicks) part->direction = -1;
  part->one_length = part->direction != 0;
  if (is_field && expression.type == PropertyType::kString) {
    part->direction = 1;
    part->one_length = fields[expression.field].HasOneLength();
  }
  ClassifyDigits(fields, part);
  if (!is_field || expression.type != PropertyType::kDateTime) return;
  part->is_time = part->one_length = true;
  part->direction = 1;
  if (part->format.empty()) return;
  int last = -1;
  for (size_t i = 0; i + 1 < part->format.size(); ++i) {
    if (part->format[i] != '%') continue;
    const int unit = static_cast<int>(kTimeUnits.find(part->format[++i]));
    if (last < 0) part->time_unit_first = unit;
    if (last >= 0 && unit != last + 1) part->direction = 0;
    last = unit;
  }
  part->time_unit_last = last;
}

Status CheckFormat(const Expression& expression, std::string_view format) {
  if (format.empty()) return Status();
  if (expression.type == PropertyType::kDateTime) {
    bool any = false;
    for (size_t i = 0; i < format.size(); ++i) {
      if (format[i] != '%') continue;
      if (i + 1 == format.size() || kTimeUnits.find(format[i + 1]) == std::string_view::npos) {
        return Status::InvalidArgument("a time's parts are %Y %m %d %H %M %S %f");
      }
      any = true;
      ++i;
    }
    return any ? Status() : Status::InvalidArgument("a time's parts are %Y %m %d %H %M %S %f");
  }
  if (expression.type != PropertyType::kInt64) {
    return Status::InvalidArgument("only times and whole numbers have a format");
  }
  if (format.back() == 'x' || format.back() == 'd') format.remove_suffix(1);
  const bool digits = std::all_of(format.begin(), format.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!digits || format.size() > 3 || (!format.empty() && format[0] != '0')) {
    return Status::InvalidArgument("a number's format is 0 and how many digits, then x or nothing: 06, 02x");
  }
  return Status();
}

void AppendNumber(std::string* out, int64_t number, std::string_view format) {
  const bool hexadecimal = format.ends_with('x');
  if (hexadecimal || format.ends_with('d')) format.remove_suffix(1);
  uint32_t digits = 0;
  std::from_chars(format.data(), format.data() + format.size(), digits);
  char text[72];
  if (number < 0) out->push_back('-');
  const uint64_t size = number < 0 ? 0 - static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
  const auto end = std::to_chars(text, text + sizeof(text), size, hexadecimal ? 16 : 10).ptr;
  const auto count = static_cast<uint32_t>(end - text);
  if (count < digits) out->append(digits - count, '0');
  out->append(text, count);
}

// Where the format begins in what stands in braces: behind a ':' outside of quotes.
size_t FormatAt(std::string_view inner) {
  bool quoted = false;
  for (size_t i = 0; i < inner.size(); ++i) {
    if (inner[i] == '\'') quoted = !quoted;
    if (inner[i] == ':' && !quoted) return i;
  }
  return inner.size();
}

Result<KeyTemplate::Part> ParsePart(std::string_view inner, const std::vector<Field>& fields, size_t* at) {
  const size_t colon = FormatAt(inner);
  PARTITA_ASSIGN(Expression expression, ParseKeyExpression(inner.substr(0, colon), fields, at));
  KeyTemplate::Part part;
  if (colon < inner.size()) part.format = inner.substr(colon + 1);
  *at = colon + 1;
  if (colon + 1 == inner.size()) return Status::InvalidArgument("a format is missing behind ':'");
  PARTITA_TRY(CheckFormat(expression, part.format));
  part.expression = std::make_shared<Expression>(std::move(expression));
  Classify(fields, &part);
  return part;
}

}  // namespace

Result<KeyTemplate> KeyTemplate::Parse(std::string_view text, const std::vector<Field>& fields) {
  KeyTemplate parsed;
  parsed.text_ = text;
  const auto wrong = [](size_t offset, const std::string& what) {
    return Status::InvalidArgument("character " + std::to_string(offset + 1) + ": " + what);
  };
  std::string literal;
  const auto end_literal = [&] {
    if (!literal.empty()) parsed.parts_.push_back({.literal = literal, .one_length = true});
    literal.clear();
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if ((c == '{' || c == '}') && i + 1 < text.size() && text[i + 1] == c) {
      literal.push_back(c);
      ++i;
      continue;
    }
    if (c == '}') return wrong(i, "'}' without '{'; a brace is written }}");
    if (c != '{') {
      literal.push_back(c);
      continue;
    }
    const size_t close = text.find('}', i);
    if (close == std::string_view::npos) return wrong(i, "'{' without '}'; a brace is written {{");
    end_literal();
    size_t at = 0;
    Result<Part> part = ParsePart(text.substr(i + 1, close - i - 1), fields, &at);
    if (!part.ok()) return wrong(i + 1 + at, part.status().message());
    parsed.parts_.push_back(std::move(*part));
    i = close;
  }
  end_literal();
  // Texts of several lengths do not keep their order when others follow.
  for (size_t i = 0; i + 1 < parsed.parts_.size(); ++i) {
    if (!parsed.parts_[i].one_length) parsed.parts_[i].direction = 0;
  }
  if (parsed.parts_.size() > kPartsMax) return wrong(0, "a key has at most 64 parts");
  return parsed;
}

bool KeyTemplate::uses(size_t field) const {
  return std::any_of(parts_.begin(), parts_.end(), [field](const Part& part) {
    return std::find(part.fields.begin(), part.fields.end(), field) != part.fields.end();
  });
}

void KeyTemplate::AppendPart(const Part& part, const Record& record, std::string* out) {
  if (part.expression == nullptr) {
    out->append(part.literal);
    return;
  }
  const PropertyValue value = part.expression->Of(record);
  if (part.format.empty()) {
    AppendKeyText(out, value);
  } else if (const DateTime* time = value.if_date_time()) {
    AppendKeyTime(out, *time, part.format);
  } else if (const int64_t* number = value.if_int64()) {
    AppendNumber(out, *number, part.format);
  }
}

void KeyTemplate::AppendValue(const Part& part, uint64_t k, std::string* out) {
  AppendNumber(out, static_cast<int64_t>(k), part.format);
}

void KeyTemplate::AppendTo(std::string* out, const Record& record) const {
  for (const Part& part : parts_) AppendPart(part, record, out);
}

}  // namespace partita::lab
