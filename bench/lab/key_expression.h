#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bench/lab/key_template.h"
#include "bench/lab/record.h"
#include "engine/base/result.h"

namespace partita::lab {

// What stands in the braces of a key template, as a tree. Total: it has a value for each record.
struct KeyTemplate::Expression {
  enum class Op : uint8_t {
    kNumber,
    kText,
    kField,
    kAdd,
    kSubtract,
    kMultiply,
    kDivide,
    kRemainder,
    kHash,
    kBucket,
    kSalt,
    kTicks,
    kDescTicks,
    kPad,
    kLower,
    kConcat,
  };
  Op op = Op::kNumber;
  PropertyType type = PropertyType::kInt64;  // Of its values.
  int64_t number = 0;
  std::string text;
  size_t field = 0;
  std::vector<Expression> arguments;

  PropertyValue Of(const Record& record) const;
};

// kInvalidArgument: what is wrong; `*stopped_at` is then the offset in `text`.
Result<KeyTemplate::Expression> ParseKeyExpression(std::string_view text, const std::vector<Field>& fields,
                                                   size_t* stopped_at);

// The text of a value within a key: digits, or the text itself; a time in full, with its fraction.
void AppendKeyText(std::string* out, const PropertyValue& value);

// `format` of % letters, as the template's manual has them. REQUIRES: it was checked by KeyTemplate::Parse.
void AppendKeyTime(std::string* out, DateTime time, std::string_view format);

}  // namespace partita::lab
