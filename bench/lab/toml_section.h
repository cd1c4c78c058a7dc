#pragma once
#include <toml++/toml.h>

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/lab/experiment_file.h"

namespace partita::lab {

// One table of an experiment file: gives the values of its keys and notes everything that is wrong with them.
// Keys that experiment_keys.h does not list for the section are noted at once. Used by one thread.
class TomlSection {
 public:
  TomlSection(const toml::table& table, std::string_view section, std::vector<Finding>* findings);

  bool Has(std::string_view key) const { return table_.contains(key); }
  const toml::node* Node(std::string_view key) const { return table_.get(key); }

  // Each leaves `out` as it is where the key is missing, or wrong, which is noted.
  void Text(std::string_view key, std::string* out) const;
  void Whole(std::string_view key, uint64_t min, uint64_t max, uint64_t* out) const;
  void Number(std::string_view key, double min, double max, double* out) const;
  void Flag(std::string_view key, bool* out) const;
  // From 0 to `max_s`.
  void Seconds(std::string_view key, double max_s, double* out) const;
  void Texts(std::string_view key, std::vector<std::pair<std::string, const toml::node*>>* out) const;
  void Numbers(std::string_view key, double min, double max, std::vector<double>* out) const;
  // The index of the text in `choices`.
  void Choice(std::string_view key, const std::vector<std::string>& choices, size_t* out) const;
  void Section(std::string_view key, std::string_view section,
               const std::function<void(const TomlSection&)>& read) const;
  void Sections(std::string_view key, std::string_view section,
                const std::function<void(const TomlSection&)>& read) const;

  TomlSection Inner(const toml::table& table, std::string_view section) const {
    return TomlSection(table, section, findings_);
  }

  // Notes those of the keys that are there, where they would have no effect.
  void OnlyWith(bool has_effect, std::string_view what, std::initializer_list<std::string_view> keys) const;
  // Notes that a key is missing; false then.
  bool Require(std::string_view key) const;
  void Wrong(const toml::node& node, std::string what) const;
  // At the key's value, or the section where it is missing.
  void Wrong(std::string_view key, std::string what) const;
  const toml::table& table() const { return table_; }
  // Whether nothing was found wrong so far, in the whole file.
  bool sound() const { return findings_->empty(); }

 private:
  const toml::table& table_;
  const std::string section_;
  std::vector<Finding>* findings_;
};

// Longer than any run: bounds each time that concerns one.
inline constexpr double kRunSecondsMax = 7 * 86400;
// A century: bounds steps of clocks and conditions on them.
inline constexpr double kClockSecondsMax = 36'500.0 * 86400;

// "250ms", "1.5s", "1h" in seconds: us, ms, s, m, h, d.
std::optional<double> ParseSeconds(std::string_view text);

}  // namespace partita::lab
