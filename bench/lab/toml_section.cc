#include "bench/lab/toml_section.h"

#include <charconv>
#include <cmath>

#include "api/cli/nearest_name.h"
#include "bench/lab/experiment_keys.h"

namespace partita::lab {
namespace {

Finding At(const toml::source_region& source, std::string what) {
  return {.line = source.begin.line, .column = source.begin.column, .what = std::move(what)};
}

std::string Shown(double number) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof(digits), number).ptr};
}

}  // namespace

TomlSection::TomlSection(const toml::table& table, std::string_view section, std::vector<Finding>* findings)
    : table_(table), section_(section), findings_(findings) {
  const std::vector<std::string> known = KeysOfSection(section);
  for (const auto& [key, node] : table) {
    const std::string name(key.str());
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string of = section.empty() ? "" : " of " + section_;
    findings_->push_back(At(key.source(), "unknown key '" + name + "'" + of + DidYouMean(name, known)));
  }
}

void TomlSection::Wrong(const toml::node& node, std::string what) const {
  findings_->push_back(At(node.source(), std::move(what)));
}

void TomlSection::Wrong(std::string_view key, std::string what) const {
  const toml::node* node = Node(key);
  Wrong(node == nullptr ? static_cast<const toml::node&>(table_) : *node, std::string(key) + ": " + what);
}

void TomlSection::OnlyWith(bool has_effect, std::string_view what,
                           std::initializer_list<std::string_view> keys) const {
  for (const std::string_view key : keys) {
    if (!has_effect && Has(key)) Wrong(key, "has an effect with " + std::string(what) + " only");
  }
}

bool TomlSection::Require(std::string_view key) const {
  if (Has(key)) return true;
  Wrong(key, section_.empty() ? "is missing" : "is missing in this " + section_);
  return false;
}

void TomlSection::Text(std::string_view key, std::string* out) const {
  const toml::node* node = Node(key);
  if (node == nullptr) return;
  const auto text = node->value_exact<std::string>();
  if (!text) return Wrong(key, "takes a text");
  *out = *text;
}

void TomlSection::Whole(std::string_view key, uint64_t min, uint64_t max, uint64_t* out) const {
  const toml::node* node = Node(key);
  if (node == nullptr) return;
  const auto number = node->value_exact<int64_t>();
  if (!number || *number < 0 || static_cast<uint64_t>(*number) < min ||
      static_cast<uint64_t>(*number) > max) {
    return Wrong(key, "takes a whole number from " + std::to_string(min) + " to " + std::to_string(max));
  }
  *out = static_cast<uint64_t>(*number);
}

void TomlSection::Number(std::string_view key, double min, double max, double* out) const {
  const toml::node* node = Node(key);
  if (node == nullptr) return;
  const auto number = node->is_number() ? node->value<double>() : std::nullopt;
  if (!number || !(*number >= min && *number <= max)) {
    return Wrong(key, "takes a number from " + Shown(min) + " to " + Shown(max));
  }
  *out = *number;
}

void TomlSection::Flag(std::string_view key, bool* out) const {
  const toml::node* node = Node(key);
  if (node == nullptr) return;
  const auto flag = node->value_exact<bool>();
  if (!flag) return Wrong(key, "takes true or false");
  *out = *flag;
}

void TomlSection::Seconds(std::string_view key, double max_s, double* out) const {
  const toml::node* node = Node(key);
  if (node == nullptr) return;
  const auto text = node->value_exact<std::string>();
  const auto seconds = text ? ParseSeconds(*text) : std::nullopt;
  if (!seconds) return Wrong(key, "takes a time such as \"250ms\", \"10s\" or \"1h\"");
  if (*seconds > max_s) return Wrong(key, "is at most " + Shown(max_s / 86400) + "d");
  *out = *seconds;
}

void TomlSection::Texts(std::string_view key,
                        std::vector<std::pair<std::string, const toml::node*>>* out) const {
  const toml::node* node = Node(key);
  if (node == nullptr) return;
  const toml::array* array = node->as_array();
  if (array == nullptr) return Wrong(key, "takes a list of texts");
  for (const toml::node& element : *array) {
    if (const auto text = element.value_exact<std::string>()) {
      out->emplace_back(*text, &element);
    } else {
      Wrong(element, std::string(key) + " takes a list of texts");
    }
  }
}

void TomlSection::Numbers(std::string_view key, double min, double max, std::vector<double>* out) const {
  const toml::node* node = Node(key);
  if (node == nullptr) return;
  const auto add = [&](const toml::node& element) {
    const auto number = element.is_number() ? element.value<double>() : std::nullopt;
    if (!number || !(*number >= min && *number <= max)) {
      return Wrong(element, std::string(key) + " takes numbers from " + Shown(min) + " to " + Shown(max));
    }
    out->push_back(*number);
  };
  const toml::array* array = node->as_array();
  if (array == nullptr) return add(*node);
  for (const toml::node& element : *array) add(element);
}

void TomlSection::Choice(std::string_view key, const std::vector<std::string>& choices, size_t* out) const {
  const toml::node* node = Node(key);
  if (node == nullptr) return;
  const std::string text = node->value_exact<std::string>().value_or("");
  std::string all;
  for (size_t i = 0; i < choices.size(); ++i) {
    if (choices[i] == text) {
      *out = i;
      return;
    }
    all += (i == 0 ? "" : ", ") + choices[i];
  }
  const std::string advice = DidYouMean(text, choices);
  Wrong(key, advice.empty() ? "is one of " + all : "'" + text + "' is none" + advice);
}

void TomlSection::Section(std::string_view key, std::string_view section,
                          const std::function<void(const TomlSection&)>& read) const {
  const toml::node* node = Node(key);
  if (node == nullptr) return;
  const toml::table* table = node->as_table();
  if (table == nullptr) return Wrong(key, "is written as a table");
  read(TomlSection(*table, section, findings_));
}

void TomlSection::Sections(std::string_view key, std::string_view section,
                           const std::function<void(const TomlSection&)>& read) const {
  const toml::node* node = Node(key);
  if (node == nullptr) return;
  const toml::array* array = node->as_array();
  if (array == nullptr) return Wrong(key, "is written as [[" + std::string(section) + "]] sections");
  if (array->empty()) return Wrong(key, "needs at least one section");
  for (const toml::node& element : *array) {
    const toml::table* table = element.as_table();
    if (table == nullptr) {
      Wrong(element, std::string(key) + " is written as [[" + std::string(section) + "]] sections");
    } else {
      read(TomlSection(*table, section, findings_));
    }
  }
}

std::optional<double> ParseSeconds(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !(number >= 0) || number > 1e9) return std::nullopt;
  const std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  constexpr std::pair<std::string_view, double> kUnits[] = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1},
                                                            {"m", 60},    {"h", 3600},  {"d", 86400}};
  for (const auto& [name, seconds] : kUnits) {
    if (unit == name) return number * seconds;
  }
  return std::nullopt;
}

}  // namespace partita::lab
