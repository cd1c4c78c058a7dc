#include "api/cli/expected_packages.h"

#include "api/cli/debian_index_check.h"

namespace partita {

namespace {

std::string ArchitectureOf(std::string_view stanza) {
  const std::map<std::string, std::string> properties = ExpectedDebianProperties(stanza);
  const auto found = properties.find("Architecture");
  return found == properties.end() ? "" : found->second.substr(2);
}

bool IsBlank(std::string_view line) { return line.find_first_not_of(" \t\r\n") == std::string_view::npos; }

}  // namespace

ExpectedPackages ExpectedPackages::Parse(std::string_view text,
                                         const std::unordered_set<uint64_t>& bad_lines) {
  ExpectedPackages expected;
  uint64_t line_number = 0, first_line = 0;
  size_t begin = 0;
  bool inside = false;
  for (size_t at = 0; at < text.size();) {
    const size_t feed = text.find('\n', at);
    const size_t end = feed == std::string_view::npos ? text.size() : feed + 1;
    const bool blank = IsBlank(text.substr(at, end - at));
    ++line_number;
    if (blank && inside && !bad_lines.contains(first_line)) expected.Add(text.substr(begin, at - begin));
    if (!blank && !inside) {
      begin = at;
      first_line = line_number;
    }
    inside = !blank;
    at = end;
  }
  if (inside && !bad_lines.contains(first_line)) expected.Add(text.substr(begin));
  return expected;
}

// The first stanza of a key keeps it; one of another Architecture is another row; one of the same
// Architecture is the same package again, and the last one stays.
void ExpectedPackages::Add(std::string_view stanza) {
  const std::string base = ExpectedDebianKeys(stanza);
  const auto [first, is_first] = first_.try_emplace(base, stanza);
  std::string key = base;
  if (!is_first) {
    const std::string architecture = ArchitectureOf(stanza);
    if (architecture != ArchitectureOf(first->second)) key += "_" + architecture;
  }
  const auto [row, is_new] = stanzas_.insert_or_assign(key, stanza);
  if (is_new) ++partition_sizes_[key.substr(0, key.find('|'))];
}

std::vector<std::string> ExpectedPackages::RowsOf(const std::string& partition_key) const {
  std::vector<std::string> rows;
  const std::string prefix = partition_key + "|";
  for (auto it = stanzas_.lower_bound(prefix); it != stanzas_.end() && it->first.starts_with(prefix); ++it) {
    rows.push_back(it->first.substr(prefix.size()));
  }
  return rows;
}

std::string ExpectedPackages::LargestPartition() const {
  std::string largest;
  uint64_t most = 0;
  for (const auto& [partition, size] : partition_sizes_) {
    if (size > most) largest = partition;
    most = size > most ? size : most;
  }
  return largest;
}

}  // namespace partita
