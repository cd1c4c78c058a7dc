#pragma once
#include <simdjson.h>

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "api/http/json_text.h"
#include "engine/inspect_text.h"

// The few forms of JSON that the admin address and the commands which ask it have in common.

namespace partita {

// ---- There. Fields of an object, or items of a list, that `out` is in the midst of.

inline void AppendNumber(std::string* out, double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof(text), value, std::chars_format::general, 6).ptr;
  out->append(text, end);
}

inline void AppendLabel(std::string* out, std::string_view name) {
  if (out->back() != '{' && out->back() != '[') out->push_back(',');
  out->append("\"").append(name).append("\":");
}

inline void AppendText(std::string* out, std::string_view name, std::string_view text) {
  AppendLabel(out, name);
  http::AppendJsonString(out, SafeText(text));
}

inline void AppendNumber(std::string* out, std::string_view name, double value) {
  AppendLabel(out, name);
  AppendNumber(out, value);
}

inline void AppendCount(std::string* out, std::string_view name, uint64_t value) {
  AppendLabel(out, name);
  out->append(std::to_string(value));
}

inline void BeginItem(std::string* out) { out->append(out->back() == '[' ? "{" : ",{"); }

// ---- And back: simdjson without exceptions, and one place that notes that anything was missing or of
// another type.
class JsonFields {
 public:
  using element = simdjson::dom::element;

  bool ok() const { return ok_; }
  element Member(element from, std::string_view name) { return Take(from[name], element()); }
  std::string Text(element from, std::string_view name) {
    return std::string(Take(from[name].get_string(), std::string_view()));
  }
  double Number(element from, std::string_view name) { return Take(from[name].get_double(), 0.0); }
  uint64_t LongCount(element from, std::string_view name) {
    return Take(from[name].get_uint64(), uint64_t{0});
  }
  uint32_t Count(element from, std::string_view name) {
    const uint64_t count = LongCount(from, name);
    ok_ = ok_ && count <= UINT32_MAX;
    return static_cast<uint32_t>(count);
  }
  bool Flag(element from, std::string_view name) { return Take(from[name].get_bool(), false); }
  simdjson::dom::array List(element from, std::string_view name) {
    return Take(from[name].get_array(), simdjson::dom::array());
  }
  void Require(bool holds) { ok_ = ok_ && holds; }

 private:
  template <typename T>
  T Take(simdjson::simdjson_result<T> result, T otherwise) {
    T value = otherwise;
    if (ok_ && std::move(result).get(value) != simdjson::SUCCESS) ok_ = false;
    return ok_ ? value : otherwise;
  }
  bool ok_ = true;
};

}  // namespace partita
