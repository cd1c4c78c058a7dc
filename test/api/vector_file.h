#pragma once
#include <gtest/gtest.h>
#include <simdjson.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "test/support/paths.h"

namespace partita {

// A JSON value of a vector file. Strings keep lone surrogates as the three bytes of generalized
// UTF-8, since some vectors are about them.
struct JsonValue {
  enum class Kind { kNull, kBoolean, kNumber, kString, kArray, kObject };
  Kind kind = Kind::kNull;
  bool boolean = false;
  double number = 0;
  std::string text;
  std::vector<std::string> names;  // Of an object's members.
  std::vector<JsonValue> items;    // Of an array, or the values of `names`.

  bool Has(std::string_view name) const { return std::find(names.begin(), names.end(), name) != names.end(); }
  // The member of that name; a null value when there is none.
  const JsonValue& operator[](std::string_view name) const {
    static const JsonValue kNothing;
    const auto it = std::find(names.begin(), names.end(), name);
    return it == names.end() ? kNothing : items[static_cast<size_t>(it - names.begin())];
  }
};

// Text of a JSON string token that simdjson refuses because of a lone surrogate: each \\uXXXX becomes
// the bytes of generalized UTF-8.
inline std::string UnescapeLoneSurrogates(std::string_view token) {
  std::string text;
  token = token.substr(1, token.rfind('"') - 1);
  while (!token.empty()) {
    if (!token.starts_with("\\u")) {
      text.push_back(token[0]);
      token.remove_prefix(1);
      continue;
    }
    const auto unit = static_cast<unsigned>(std::stoul(std::string(token.substr(2, 4)), nullptr, 16));
    for (const unsigned byte : {0xE0u | unit >> 12, 0x80u | (unit >> 6 & 0x3Fu), 0x80u | (unit & 0x3Fu)}) {
      text.push_back(static_cast<char>(static_cast<uint8_t>(byte)));
    }
    token.remove_prefix(6);
  }
  return text;
}

inline JsonValue ToJsonValue(simdjson::ondemand::value value) {
  using simdjson::ondemand::json_type;
  JsonValue out;
  switch (json_type(value.type())) {
    case json_type::string:
      out.kind = JsonValue::Kind::kString;
      if (std::string_view text; value.get_string().get(text) == simdjson::SUCCESS) {
        out.text = std::string(text);
      } else {
        out.text = UnescapeLoneSurrogates(value.raw_json_token());
      }
      break;
    case json_type::number:
      out.kind = JsonValue::Kind::kNumber;
      out.number = double(value.get_double());
      break;
    case json_type::boolean:
      out.kind = JsonValue::Kind::kBoolean;
      out.boolean = bool(value.get_bool());
      break;
    case json_type::array:
      out.kind = JsonValue::Kind::kArray;
      for (auto item : value.get_array()) out.items.push_back(ToJsonValue(item.value()));
      break;
    case json_type::object:
      out.kind = JsonValue::Kind::kObject;
      for (auto field : value.get_object()) {
        out.names.emplace_back(std::string_view(field.unescaped_key()));
        out.items.push_back(ToJsonValue(field.value()));
      }
      break;
    default:
      EXPECT_TRUE(bool(value.is_null()));
  }
  return out;
}

// Reads test/vectors/<name>, copies of the service's behaviour tables.
inline JsonValue LoadVectors(const std::string& name) {
  const std::string path = std::string(kSourceDirectory) + "/test/vectors/" + name;
  simdjson::padded_string json;
  EXPECT_EQ(simdjson::padded_string::load(path).get(json), simdjson::SUCCESS) << path;
  simdjson::ondemand::parser parser;
  simdjson::ondemand::document document = parser.iterate(json);
  return ToJsonValue(document.get_value());
}

// Of json-values.json: v51 expects eight digits of a fraction to be refused. That is a rule of the reference
// alone, and a recording outranks it (api/date_time.cc).
inline bool IsOutrankedValue(const JsonValue& vector) { return vector["id"].text == "v51"; }

// A key or name given as text, or in parts of text repeated so many times.
inline std::string TextOrParts(const JsonValue& vector, std::string_view name) {
  if (vector.Has(name)) return vector[name].text;
  std::string text;
  for (const JsonValue& part : vector[std::string(name) + "_parts"].items) {
    for (int i = 0; i < part["times"].number; ++i) text += part["text"].text;
  }
  return text;
}

}  // namespace partita
