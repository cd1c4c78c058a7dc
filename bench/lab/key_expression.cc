#include "bench/lab/key_expression.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdio>

#include "api/cli/nearest_name.h"
#include "api/date_time.h"
#include "api/value_text.h"
#include "bench/lab/experiment.h"
#include "engine/base/checksum.h"

namespace partita::lab {
namespace {

using Expression = KeyTemplate::Expression;
using Operator = Expression::Op;

constexpr uint32_t kTicksDigits = 19;
// Bounds the depth of the tree, and so of every recursion over it.
constexpr uint32_t kStepsMax = 64;

int64_t WholeNumber(const PropertyValue& value) {
  if (const int64_t* number = value.if_int64()) return *number;
  if (const int32_t* number = value.if_int32()) return *number;
  if (const bool* flag = value.if_boolean()) return *flag ? 1 : 0;
  if (const DateTime* time = value.if_date_time()) return static_cast<int64_t>(time->ticks);
  if (const double* number = value.if_double()) {
    return static_cast<int64_t>(std::clamp(*number, -9e18, 9e18));
  }
  return 0;
}

std::string Padded(uint64_t number, uint32_t digits) {
  std::string text = std::to_string(number);
  if (text.size() < digits) text.insert(0, digits - text.size(), '0');
  return text;
}

int64_t HashOf(const std::vector<Expression>& arguments, size_t count, const Record& record) {
  std::string text;
  for (size_t i = 0; i < count; ++i) AppendKeyText(&text, arguments[i].Of(record));
  return static_cast<int64_t>(Hash64(text) >> 1);
}

int64_t Compute(Operator op, int64_t a, int64_t b) {
  // Overflow wraps: keys need one text for each record, not arithmetic that is right beyond 2^63.
  const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  switch (op) {
    case Operator::kAdd:
      return static_cast<int64_t>(x + y);
    case Operator::kSubtract:
      return static_cast<int64_t>(x - y);
    case Operator::kMultiply:
      return static_cast<int64_t>(x * y);
    case Operator::kDivide:
      return b == 0 || b == -1 ? 0 : a / b;
    default: {
      // With the sign of b, so that buckets count from 0.
      const int64_t rest = b == 0 || b == -1 ? 0 : a % b;
      return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
    }
  }
}

// A recursive descent over one expression.
class Parser {
 public:
  Parser(std::string_view text, const std::vector<Field>& fields) : text_(text), fields_(fields) {}

  Result<Expression> ParseAll() {
    PARTITA_ASSIGN(Expression all, ParseSum());
    SkipSpace();
    if (at_ < text_.size()) return Wrong("nothing more is expected here");
    return all;
  }
  size_t at() const { return at_; }

 private:
  Status Wrong(const std::string& what) { return Status::InvalidArgument(what); }
  void SkipSpace() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool Take(char c) {
    SkipSpace();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  Status CountStep() {
    if (++steps_ <= kStepsMax) return Status();
    return Wrong("at most " + std::to_string(kStepsMax) +
                 " operators, parentheses and functions stand in one");
  }

  Result<Expression> ParseSum() {
    return ParseChain("+-", [this] { return ParseProduct(); });
  }
  Result<Expression> ParseProduct() {
    return ParseChain("*/%", [this] { return ParseTerm(); });
  }

  template <typename Parse>
  Result<Expression> ParseChain(std::string_view operators, const Parse& parse) {
    PARTITA_ASSIGN(Expression left, parse());
    while (true) {
      SkipSpace();
      if (at_ >= text_.size() || operators.find(text_[at_]) == std::string_view::npos) return left;
      PARTITA_TRY(CountStep());
      const char sign = text_[at_++];
      const Operator op = sign == '+'   ? Operator::kAdd
                          : sign == '-' ? Operator::kSubtract
                          : sign == '*' ? Operator::kMultiply
                          : sign == '/' ? Operator::kDivide
                                        : Operator::kRemainder;
      PARTITA_ASSIGN(Expression right, parse());
      if (left.type != PropertyType::kInt64 || right.type != PropertyType::kInt64) {
        return Wrong(std::string("'") + sign + "' takes whole numbers");
      }
      Expression both{.op = op};
      both.arguments.push_back(std::move(left));
      both.arguments.push_back(std::move(right));
      left = std::move(both);
    }
  }

  Result<Expression> ParseTerm() {
    SkipSpace();
    if (at_ >= text_.size()) return Wrong("a field, number or function is missing");
    if (Take('(')) {
      PARTITA_TRY(CountStep());
      PARTITA_ASSIGN(Expression inner, ParseSum());
      if (!Take(')')) return Wrong("')' is missing");
      return inner;
    }
    if (text_[at_] == '\'') return ParseText();
    if (std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) return ParseNumber();
    return ParseName();
  }

  Result<Expression> ParseText() {
    const size_t end = text_.find('\'', at_ + 1);
    if (end == std::string_view::npos) return Wrong("the text has no end");
    Expression text{.op = Operator::kText, .type = PropertyType::kString};
    text.text = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return text;
  }

  Result<Expression> ParseNumber() {
    Expression number{.op = Operator::kNumber};
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), number.number);
    if (error != std::errc()) return Wrong("the number is too large");
    at_ = static_cast<size_t>(end - text_.data());
    return number;
  }

  Result<Expression> ParseName() {
    const size_t begin = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_')) {
      ++at_;
    }
    const std::string name(text_.substr(begin, at_ - begin));
    if (name.empty()) return Wrong("a field, number or function is missing");
    if (Take('(')) {
      PARTITA_TRY(CountStep());
      return ParseCall(name, begin);
    }
    std::vector<std::string> names;
    for (size_t i = 0; i < fields_.size(); ++i) {
      if (fields_[i].name != name) {
        names.push_back(fields_[i].name);
        continue;
      }
      const PropertyType type = fields_[i].type();
      // Numbers of both widths are one kind here.
      return Expression{.op = Operator::kField,
                        .type = type == PropertyType::kInt32 ? PropertyType::kInt64 : type,
                        .field = i};
    }
    at_ = begin;
    return Wrong("no field '" + name + "'" + DidYouMean(name, names));
  }

  Result<Expression> ParseCall(const std::string& name, size_t begin) {
    struct Function {
      const char* name;
      Operator op;
      PropertyType type;
      size_t arguments_min, arguments_max;
    };
    static constexpr Function kFunctions[] = {
        {"hash", Operator::kHash, PropertyType::kInt64, 1, 8},
        {"bucket", Operator::kBucket, PropertyType::kInt64, 2, 2},
        {"salt", Operator::kSalt, PropertyType::kInt64, 1, 1},
        {"ticks", Operator::kTicks, PropertyType::kString, 1, 1},
        {"desc_ticks", Operator::kDescTicks, PropertyType::kString, 1, 1},
        {"pad", Operator::kPad, PropertyType::kString, 2, 2},
        {"lower", Operator::kLower, PropertyType::kString, 1, 1},
        {"concat", Operator::kConcat, PropertyType::kString, 1, 8},
    };
    std::vector<std::string> names;
    for (const Function& function : kFunctions) {
      names.emplace_back(function.name);
      if (name != function.name) continue;
      Expression call{.op = function.op, .type = function.type};
      do {
        PARTITA_ASSIGN(Expression argument, ParseSum());
        call.arguments.push_back(std::move(argument));
      } while (Take(','));
      if (!Take(')')) return Wrong("')' is missing");
      if (call.arguments.size() < function.arguments_min || call.arguments.size() > function.arguments_max) {
        return Wrong(name + " takes " + std::to_string(function.arguments_min) + " argument(s)");
      }
      PARTITA_TRY(CheckCall(call, name));
      return call;
    }
    at_ = begin;
    return Wrong("no function '" + name + "'" + DidYouMean(name, names));
  }

  Status CheckCall(const Expression& call, const std::string& name) {
    const Expression& last = call.arguments.back();
    if (call.op == Operator::kBucket || call.op == Operator::kSalt || call.op == Operator::kPad) {
      if (last.op != Operator::kNumber || last.number < 1 || last.number > 1'000'000) {
        return Wrong(name + " takes a number from 1 to 1000000 at its end");
      }
    }
    const PropertyType first = call.arguments.front().type;
    if ((call.op == Operator::kTicks || call.op == Operator::kDescTicks) &&
        first != PropertyType::kDateTime) {
      return Wrong(name + " takes a time");
    }
    if (call.op == Operator::kPad && first != PropertyType::kInt64) return Wrong("pad takes a whole number");
    if (call.op == Operator::kLower && first != PropertyType::kString) return Wrong("lower takes a text");
    return Status();
  }

  const std::string_view text_;
  const std::vector<Field>& fields_;
  size_t at_ = 0;
  uint32_t steps_ = 0;
};

}  // namespace

PropertyValue Expression::Of(const Record& record) const {
  switch (op) {
    case Operator::kNumber:
      return number;
    case Operator::kText:
      return text;
    case Operator::kField:
      if (const int32_t* narrow = record.values[field].if_int32()) return int64_t{*narrow};
      return record.values[field];
    case Operator::kHash:
      return HashOf(arguments, arguments.size(), record);
    case Operator::kBucket:
      return HashOf(arguments, 1, record) % arguments[1].number;
    case Operator::kSalt:
      return static_cast<int64_t>(record.number % static_cast<uint64_t>(arguments[0].number));
    case Operator::kTicks:
      return Padded(static_cast<uint64_t>(WholeNumber(arguments[0].Of(record))), kTicksDigits);
    case Operator::kDescTicks: {
      const auto ticks = static_cast<uint64_t>(WholeNumber(arguments[0].Of(record)));
      return Padded(kDateTimeTicksMax - std::min(ticks, kDateTimeTicksMax), kTicksDigits);
    }
    case Operator::kPad: {
      const int64_t value = WholeNumber(arguments[0].Of(record));
      const std::string digits =
          Padded(value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value),
                 static_cast<uint32_t>(arguments[1].number));
      return value < 0 ? "-" + digits : digits;
    }
    case Operator::kLower:
    case Operator::kConcat: {
      std::string joined;
      for (const Expression& argument : arguments) AppendKeyText(&joined, argument.Of(record));
      if (op == Operator::kLower) {
        for (char& c : joined) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
      }
      return joined;
    }
    default:
      return Compute(op, WholeNumber(arguments[0].Of(record)), WholeNumber(arguments[1].Of(record)));
  }
}

Result<Expression> ParseKeyExpression(std::string_view text, const std::vector<Field>& fields,
                                      size_t* stopped_at) {
  Parser parser(text, fields);
  Result<Expression> parsed = parser.ParseAll();
  *stopped_at = parser.at();
  return parsed;
}

void AppendKeyText(std::string* out, const PropertyValue& value) {
  if (const std::string* text = value.if_string()) {
    out->append(*text);
  } else if (const DateTime* time = value.if_date_time()) {
    AppendKeyTime(out, *time, "%Y-%m-%dT%H:%M:%S.%fZ");
  } else if (const double* number = value.if_double()) {
    char digits[32];
    out->append(digits, std::to_chars(digits, digits + sizeof(digits), *number).ptr);
  } else if (value.if_boolean() != nullptr || value.if_guid() != nullptr || value.if_binary() != nullptr) {
    AppendValueText(out, value);
  } else {
    char digits[24];
    out->append(digits, std::to_chars(digits, digits + sizeof(digits), WholeNumber(value)).ptr);
  }
}

void AppendKeyTime(std::string* out, DateTime time, std::string_view format) {
  char text[kDateTimeTextMax];
  // 2026-01-31T12:00:00.1234567Z, with trailing zeros of the fraction left out: the fraction is made here.
  WriteDateTime(text, DateTime{time.ticks - time.ticks % 10'000'000});
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      out->push_back(format[i]);
      continue;
    }
    switch (format[++i]) {
      case 'Y':
        out->append(text, 4);
        break;
      case 'm':
        out->append(text + 5, 2);
        break;
      case 'd':
        out->append(text + 8, 2);
        break;
      case 'H':
        out->append(text + 11, 2);
        break;
      case 'M':
        out->append(text + 14, 2);
        break;
      case 'S':
        out->append(text + 17, 2);
        break;
      default:
        out->append(Padded(time.ticks % 10'000'000, 7));
    }
  }
}

}  // namespace partita::lab
