#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/lab/record.h"
#include "engine/base/result.h"

namespace partita::lab {

struct Field;

// The text of a key, made of a record's fields:
//
//   {device}                          a field: numbers in digits, times as 2026-01-31T12:00:00.0000000Z
//   {ts:%Y-%m-%d}                     parts of a time, in UTC: %Y %m %d %H %M %S, and %f (100 ns, 7 digits)
//   {n:06}  {hash(device) % 16:02x}   a number with leading zeros, in hexadecimal with x
//   {{ }}                             braces
//
// Expressions have + - * / % on whole numbers, parentheses, numbers, 'text' and these functions:
//
//   hash(x, ...)  XXH3-64 with seed 0 of the text of the arguments, the top bit cleared: never negative
//   bucket(x, n)  hash(x) % n                    salt(n)      the record's number % n: nothing that a reader
//   knows ticks(t)      100 ns since 1601, 19 digits   desc_ticks(t)  the same counted down from the year
//   9999 pad(x, n)     the digits of x, at least n    lower(x)  concat(x, ...)
//
// Pure and total: each record has one text. Division by zero gives 0. Immutable, cheap to copy.
class KeyTemplate {
 public:
  struct Expression;
  // A piece of the text; in front of all others `literal`, if it has no expression.
  struct Part {
    std::string literal;
    std::shared_ptr<const Expression> expression;
    std::string format;

    // The fields that it is made of.
    std::vector<size_t> fields;
    bool salted = false;
    bool is_value = false;    // It is a field's value as it is, whole, or padded.
    bool one_length = false;  // All of its texts have the same.
    uint64_t values = 0;      // How many texts there are, when that is known without the fields: `% n`.
    // It rises (1) or falls (-1) with the one field it is made of, when that is known from the first on; 0:
    // not so. A time's part does within the unit above the first of those that it names, which are
    // `time_unit_first` to `time_unit_last`: 0 is the year, 6 the fraction of a second.
    int direction = 0;
    bool is_time = false;
    int time_unit_first = 0, time_unit_last = 6;
    // Of digits that rise with a field: from its smallest number to its largest, which all have as many. What
    // lies beyond has more of them, or a sign, and its text is in no order with theirs.
    std::optional<std::pair<int64_t, int64_t>> numbers;
  };

  // kInvalidArgument: what is wrong, and at which character (from 1), e.g. "character 9: no field 'devce'".
  static Result<KeyTemplate> Parse(std::string_view text, const std::vector<Field>& fields);

  const std::string& text() const { return text_; }
  const std::vector<Part>& parts() const { return parts_; }
  bool uses(size_t field) const;

  void AppendTo(std::string* out, const Record& record) const;
  std::string Of(const Record& record) const {
    std::string out;
    AppendTo(&out, record);
    return out;
  }
  static void AppendPart(const Part& part, const Record& record, std::string* out);
  // The k-th of `part.values` texts. REQUIRES: k < part.values.
  static void AppendValue(const Part& part, uint64_t k, std::string* out);

 private:
  std::string text_;
  std::vector<Part> parts_;
};

}  // namespace partita::lab
