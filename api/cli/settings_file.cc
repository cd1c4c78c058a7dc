#include "api/cli/settings_file.h"

#include <toml++/toml.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <string_view>

#include "api/cli/nearest_name.h"
#include "api/cli/whole_stream.h"

namespace partita {

namespace {

// Reads one file; remembers the first thing that is wrong with it.
class Reader {
 public:
  explicit Reader(const std::string& name) : name_(name) {}

  Result<SettingsFile> Read(const toml::table& table);

 private:
  using Handler = std::function<void(const toml::node&, const std::string& key)>;
  struct Key {
    std::string name;
    Handler read;
  };

  std::vector<Key> Keys();
  void Refuse(const toml::node& node, const std::string& what);
  void ReadTable(const toml::table& table, const std::vector<Key>& keys, const std::string& where);
  void ReadStrings(const toml::node& node, const std::string& key, std::vector<std::string>* out);
  void ReadAccounts(const toml::node& node, const std::string& key);
  void ReadRules(const toml::node& node, const std::string& key);

  Handler Text(std::optional<std::string>* out);
  Handler Number(std::optional<int64_t>* out);
  Handler Flag(std::optional<bool>* out);
  Handler Texts(std::vector<std::string>* out);

  const std::string name_;
  SettingsFile file_;
  Status wrong_;
};

void Reader::Refuse(const toml::node& node, const std::string& what) {
  if (!wrong_.ok()) return;
  wrong_ = Status::InvalidArgument(name_ + ":" + std::to_string(node.source().begin.line) + ": " + what);
}

void Reader::ReadTable(const toml::table& table, const std::vector<Key>& keys, const std::string& where) {
  std::vector<std::string> known;
  for (const Key& key : keys) known.push_back(key.name);
  for (const auto& [name, node] : table) {
    const std::string text(name.str());
    bool found = false;
    for (const Key& key : keys) {
      if (key.name != text) continue;
      key.read(node, text);
      found = true;
    }
    if (found) continue;
    Refuse(node, "unknown setting '" + text + "'" + where + DidYouMean(text, known));
  }
}

Reader::Handler Reader::Text(std::optional<std::string>* out) {
  return [this, out](const toml::node& node, const std::string& key) {
    *out = node.value_exact<std::string>();
    if (!*out) Refuse(node, key + " takes a text, such as " + key + " = \"...\"");
  };
}

Reader::Handler Reader::Number(std::optional<int64_t>* out) {
  return [this, out](const toml::node& node, const std::string& key) {
    *out = node.value_exact<int64_t>();
    if (!*out) Refuse(node, key + " takes a whole number");
  };
}

Reader::Handler Reader::Flag(std::optional<bool>* out) {
  return [this, out](const toml::node& node, const std::string& key) {
    *out = node.value_exact<bool>();
    if (!*out) Refuse(node, key + " takes true or false");
  };
}

Reader::Handler Reader::Texts(std::vector<std::string>* out) {
  return [this, out](const toml::node& node, const std::string& key) { ReadStrings(node, key, out); };
}

void Reader::ReadStrings(const toml::node& node, const std::string& key, std::vector<std::string>* out) {
  if (const auto one = node.value_exact<std::string>()) {
    out->push_back(*one);
    return;
  }
  const toml::array* array = node.as_array();
  if (array == nullptr) return Refuse(node, key + " takes a text or a list of texts");
  for (const toml::node& element : *array) {
    const auto text = element.value_exact<std::string>();
    if (!text) return Refuse(element, key + " takes texts");
    out->push_back(*text);
  }
}

void Reader::ReadAccounts(const toml::node& node, const std::string& key) {
  const toml::array* array = node.as_array();
  if (array == nullptr) return Refuse(node, "accounts are written as [[account]] sections");
  for (const toml::node& element : *array) {
    const toml::table* table = element.as_table();
    if (table == nullptr) return Refuse(element, "accounts are written as [[account]] sections");
    std::optional<std::string> name;
    std::vector<std::string> keys;
    std::optional<bool> disabled;
    ReadTable(*table, {{"name", Text(&name)}, {"keys", Texts(&keys)}, {"disabled", Flag(&disabled)}},
              " of an account");
    if (!name) Refuse(element, "an account needs a name");
    if (keys.empty()) Refuse(element, "an account needs keys = [\"...\"], one or two");
    file_.accounts.push_back(
        {.name = name.value_or(""), .keys = std::move(keys), .disabled = disabled.value_or(false)});
  }
}

void Reader::ReadRules(const toml::node& node, const std::string& key) {
  const toml::array* array = node.as_array();
  if (array == nullptr) return Refuse(node, "throughput rules are written as [[throughput-rule]] sections");
  for (const toml::node& element : *array) {
    const toml::table* table = element.as_table();
    if (table == nullptr) {
      return Refuse(element, "throughput rules are written as [[throughput-rule]] sections");
    }
    std::optional<std::string> account, of_table, prefix;
    std::optional<int64_t> partition_rate, account_rate, total_rate;
    ReadTable(*table,
              {{"account", Text(&account)},
               {"table", Text(&of_table)},
               {"partition-prefix", Text(&prefix)},
               {"partition-rate", Number(&partition_rate)},
               {"account-rate", Number(&account_rate)},
               {"total-rate", Number(&total_rate)}},
              " of a throughput rule");
    if (partition_rate.value_or(0) < 0 || account_rate.value_or(0) < 0 || total_rate.value_or(0) < 0) {
      Refuse(element, "a rate is 0 (no limit) or more entities a second");
    }
    ThroughputRule rule{.account = account.value_or(""),
                        .table = of_table.value_or(""),
                        .partition_prefix = prefix.value_or("")};
    if (partition_rate) rule.partition_rate = static_cast<uint64_t>(*partition_rate);
    if (account_rate) rule.account_rate = static_cast<uint64_t>(*account_rate);
    if (total_rate) rule.total_rate = static_cast<uint64_t>(*total_rate);
    file_.throughput_rules.push_back(std::move(rule));
  }
}

std::vector<Reader::Key> Reader::Keys() {
  return {
      {"data", Text(&file_.data)},
      {"listen", Texts(&file_.listen)},
      {"memory", Text(&file_.memory)},
      {"shards", Number(&file_.shards)},
      {"durability", Text(&file_.durability)},
      {"io", Text(&file_.io)},
      {"create", Flag(&file_.create)},
      {"allow-volatile-storage", Flag(&file_.allow_volatile_storage)},
      {"admin", Text(&file_.admin)},
      {"admin-public", Flag(&file_.admin_public)},
      {"admin-hosts", Texts(&file_.admin_hosts)},
      {"cert", Text(&file_.cert)},
      {"key-file", Text(&file_.key_file)},
      {"access-log", Text(&file_.access_log)},
      {"path-style-hosts", Texts(&file_.path_style_hosts)},
      {"connections-max", Number(&file_.connections_max)},
      {"throughput", Text(&file_.throughput)},
      {"throughput-rule", [this](const toml::node& node, const std::string& key) { ReadRules(node, key); }},
      {"account", [this](const toml::node& node, const std::string& key) { ReadAccounts(node, key); }}};
}

Result<SettingsFile> Reader::Read(const toml::table& table) {
  ReadTable(table, Keys(), "");
  if (!wrong_.ok()) return wrong_;
  return std::move(file_);
}

}  // namespace

Result<SettingsFile> ParseSettings(const std::string& text, const std::string& name) {
  // The one place where toml++ throws.
  try {
    return Reader(name).Read(toml::parse(text, name));
  } catch (const toml::parse_error& error) {
    return Status::InvalidArgument(name + ":" + std::to_string(error.source().begin.line) + ": " +
                                   std::string(error.description()));
  }
}

Result<SettingsFile> ReadSettingsFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    const std::string what = "settings file " + path + ": " + std::strerror(errno);
    return errno == ENOENT ? Status::NotFound(what) : Status::IoError(what);
  }
  std::string text;
  errno = 0;
  if (!ReadWhole(in, &text)) {
    const std::string why = errno == 0 ? "reading failed" : std::strerror(errno);
    return Status::IoError("settings file " + path + ": " + why);
  }
  return ParseSettings(text, path);
}

}  // namespace partita
