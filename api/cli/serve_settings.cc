#include "api/cli/serve_settings.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>

#include "api/cli/figures.h"
#include "api/cli/settings_file.h"
#include "api/names.h"

namespace partita {

namespace {

constexpr std::string_view kDefaultListen = "127.0.0.1:10002";
// What a server may hold open at most; beyond it descriptors and memory are the limit, not this number.
constexpr int64_t kConnectionsMax = 1'000'000;

bool IsLoopback(const std::string& ip) { return ip == "::1" || ip.starts_with("127."); }

// Splits at the colon before the port; brackets around IPv6 are taken off.
bool SplitHostPort(std::string_view text, std::string* host, std::string* port) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return false;
  *host = text.substr(0, colon);
  *port = text.substr(colon + 1);
  if (host->size() >= 2 && host->front() == '[' && host->back() == ']') {
    *host = host->substr(1, host->size() - 2);
  } else if (host->find(':') != std::string::npos) {
    return false;  // An IPv6 address without brackets: which colon is the port's?
  }
  return !port->empty() && port->size() <= 5 &&
         std::all_of(port->begin(), port->end(), [](char c) { return c >= '0' && c <= '9'; }) &&
         std::stoi(*port) <= 65535;
}

// Puts what the file says where nothing before it did.
template <typename T, typename U>
void TakeUnlessSet(std::optional<T>* to, const std::optional<U>& from) {
  if (!to->has_value() && from.has_value()) *to = static_cast<T>(*from);
}
void TakeIfEmpty(std::string* to, const std::optional<std::string>& from) {
  if (to->empty() && from.has_value()) *to = *from;
}

Result<Durability> ParseDurability(const std::string& text) {
  if (text == "power") return Durability::kPower;
  if (text == "process") return Durability::kProcess;
  if (text == "memory") return Durability::kMemory;
  return Status::InvalidArgument("durability '" + text + "' is none of power, process, memory");
}

Status TakeStore(const ServeFlags& flags, const SettingsFile& file, StoreFlags* store) {
  TakeIfEmpty(&store->directory, file.data);
  if (!flags.memory_given && file.memory) {
    Result<uint64_t> bytes = ParseBytes(*file.memory);
    if (!bytes.ok()) return bytes.status().WithContext("memory");
    store->memory_bytes = *bytes;
  }
  if (!flags.io_given && file.io) {
    if (*file.io != "uring" && *file.io != "threads") {
      return Status::InvalidArgument("io '" + *file.io + "' is none of uring, threads");
    }
    store->io_backend = *file.io == "threads" ? IoBackend::kThreads : IoBackend::kUring;
  }
  if (!store->durability && file.durability) {
    PARTITA_ASSIGN(store->durability, ParseDurability(*file.durability));
  }
  if (file.shards && (*file.shards < 1 || *file.shards > 256)) {
    return Status::InvalidArgument("shards is 1 to 256");
  }
  TakeUnlessSet(&store->shards, file.shards);
  store->allow_volatile_storage =
      store->allow_volatile_storage || file.allow_volatile_storage.value_or(false);
  return Status();
}

Status TakeListen(const ServeFlags& flags, const SettingsFile& file, ServeSettings* settings) {
  std::vector<std::string> texts = flags.listen.empty() ? file.listen : flags.listen;
  if (texts.empty()) texts.emplace_back(kDefaultListen);
  const bool tls = !settings->certificate_file.empty();
  for (const std::string& text : texts) {
    PARTITA_ASSIGN(ListenAddress address, ParseListenAddress(text, tls));
    if (address.tls && !tls) {
      return Status::InvalidArgument("listening on " + text + " needs --cert and --key-file");
    }
    settings->listen.push_back(std::move(address));
  }
  return Status();
}

// KEY, or KEY:KEY2 while one is being replaced.
std::vector<std::string> KeysOf(const std::string& text) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos) return {text};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

Status TakeAccounts(const ServeFlags& flags, const SettingsFile& file, std::string_view azurite_accounts,
                    ServeSettings* settings) {
  if (flags.accounts.size() != flags.keys.size()) {
    return Status::InvalidArgument("each --account NAME needs a --key KEY: there are " +
                                   std::to_string(flags.accounts.size()) + " and " +
                                   std::to_string(flags.keys.size()));
  }
  if (!flags.accounts.empty()) {
    for (size_t i = 0; i < flags.accounts.size(); ++i) {
      settings->accounts.push_back({.name = flags.accounts[i], .keys = KeysOf(flags.keys[i])});
    }
    settings->accounts_from = "the command line";
  } else if (!azurite_accounts.empty()) {
    Result<std::vector<http::AccountSettings>> accounts = http::ParseAccountsText(azurite_accounts);
    if (!accounts.ok()) return accounts.status().WithContext("AZURITE_ACCOUNTS");
    settings->accounts = std::move(*accounts);
    settings->accounts_from = "AZURITE_ACCOUNTS";
  } else if (!file.accounts.empty()) {
    settings->accounts = file.accounts;
    settings->accounts_from = "the settings file";
  }
  if (!settings->accounts.empty()) return Status();

  for (const ListenAddress& listen : settings->listen) {
    if (listen.loopback) continue;
    return Status::InvalidArgument(
        "no account is configured. On " + listen.address +
        " others could reach the development account, whose key everybody knows, so it is on by default "
        "only where every address is of this machine alone (127.0.0.1, ::1). Give --account NAME --key KEY, "
        "set AZURITE_ACCOUNTS=NAME:KEY, or write an [[account]] section; a new key: openssl rand -base64 64 "
        "| tr -d '\\n'");
  }
  settings->accounts = {http::DevelopmentAccount()};
  settings->accounts_are_default = true;
  settings->accounts_from = "the default for loopback addresses; its key is public";
  return Status();
}

Status TakeAdmin(const ServeFlags& flags, const SettingsFile& file, ServeSettings* settings) {
  settings->admin_public = flags.admin_public || file.admin_public.value_or(false);
  std::string text = flags.admin;
  TakeIfEmpty(&text, file.admin);
  if (text.empty()) return Status();
  PARTITA_ASSIGN(ListenAddress address, ParseListenAddress(text, /*tls=*/false));
  if (address.tls) return Status::InvalidArgument("the admin address speaks plain HTTP only: " + text);
  if (!address.loopback && !settings->admin_public) {
    return Status::InvalidArgument("the admin address " + text +
                                   " can be reached from other machines and asks nobody who he is; if that "
                                   "is meant, add --admin-public");
  }
  settings->admin = std::move(address);
  settings->admin_hosts = file.admin_hosts;
  return Status();
}

// A rule for an account that nothing names is a slip. One that only the file names is none: the command line
// or the environment has others this time, or the file got it since the start.
Status CheckAccountsOfRules(const ThroughputTargets& targets, const SettingsFile& file,
                            const std::vector<http::AccountSettings>& served) {
  std::vector<std::string> known;
  for (const std::vector<http::AccountSettings>* accounts : {&served, &file.accounts}) {
    for (const http::AccountSettings& account : *accounts) {
      if (std::find(known.begin(), known.end(), account.name) == known.end()) known.push_back(account.name);
    }
  }
  for (size_t i = 0; i < targets.rules.size(); ++i) {
    const std::string& wanted = targets.rules[i].account;
    if (wanted.empty() || std::find(known.begin(), known.end(), wanted) != known.end()) continue;
    std::string names;
    for (const std::string& name : known) names += (names.empty() ? "" : ", ") + name;
    return Status::InvalidArgument("throughput rule " + std::to_string(i + 1) + ": account '" + wanted +
                                   "' is none of those that are served or stand in the settings file: " +
                                   names + ". Accounts are read at the start only");
  }
  return Status();
}

Result<ThroughputTargets> ThroughputOf(const ServeFlags& flags, const SettingsFile& file,
                                       const std::vector<http::AccountSettings>& accounts) {
  std::string text = flags.throughput;
  TakeIfEmpty(&text, file.throughput);
  ThroughputTargets targets;
  if (!text.empty()) {
    PARTITA_ASSIGN(targets, ParseThroughputTargets(text));
  }
  targets.rules = file.throughput_rules;
  PARTITA_TRY(CheckThroughputTargets(targets));
  PARTITA_TRY(CheckThroughputNames(targets));
  PARTITA_TRY(CheckAccountsOfRules(targets, file, accounts));
  return targets;
}

}  // namespace

Result<ThroughputTargets> ResolveThroughput(const ServeFlags& flags,
                                            const std::vector<http::AccountSettings>& accounts) {
  SettingsFile file;
  if (!flags.settings_file.empty()) {
    PARTITA_ASSIGN(file, ReadSettingsFile(flags.settings_file));
  }
  return ThroughputOf(flags, file, accounts);
}

Result<ListenAddress> ParseListenAddress(std::string_view text, bool tls) {
  ListenAddress result{.tls = tls};
  std::string_view rest = text;
  if (rest.starts_with("https://")) {
    result.tls = true;
    rest.remove_prefix(8);
  } else if (rest.starts_with("http://")) {
    result.tls = false;
    rest.remove_prefix(7);
  }
  if (rest.ends_with('/')) rest.remove_suffix(1);
  std::string host, port;
  const auto refuse = [&] {
    return Status::InvalidArgument("'" + std::string(text) +
                                   "' is no address to listen on; it is IP:PORT, such as 127.0.0.1:10002, "
                                   "0.0.0.0:10002 or [::1]:10002; port 0 takes a free one");
  };
  if (!SplitHostPort(rest, &host, &port)) return refuse();
  if (host == "localhost") host = "127.0.0.1";
  std::array<unsigned char, sizeof(in6_addr)> ignored{};
  if (inet_pton(AF_INET, host.c_str(), ignored.data()) == 1) {
    result.address = host + ":" + port;
  } else if (inet_pton(AF_INET6, host.c_str(), ignored.data()) == 1) {
    result.address = "[" + host + "]:" + port;
  } else {
    return refuse();
  }
  result.loopback = IsLoopback(host);
  return result;
}

Result<ServeSettings> ResolveServeSettings(const StoreFlags& store, const ServeFlags& flags,
                                           std::string_view azurite_accounts) {
  SettingsFile file;
  if (!flags.settings_file.empty()) {
    PARTITA_ASSIGN(file, ReadSettingsFile(flags.settings_file));
  }
  ServeSettings settings{.store = store};
  PARTITA_TRY(TakeStore(flags, file, &settings.store));
  if (settings.store.directory.empty()) {
    return Status::InvalidArgument(
        "which store? Name its directory with --data DIR, PARTITA_DATA, or data = \"DIR\" in the settings "
        "file");
  }
  settings.create_store = !flags.no_create && file.create.value_or(true);
  settings.certificate_file = flags.certificate_file;
  settings.key_file = flags.key_file;
  TakeIfEmpty(&settings.certificate_file, file.cert);
  TakeIfEmpty(&settings.key_file, file.key_file);
  if (settings.certificate_file.empty() != settings.key_file.empty()) {
    return Status::InvalidArgument("TLS needs both --cert and --key-file");
  }
  settings.access_log = flags.access_log;
  TakeIfEmpty(&settings.access_log, file.access_log);
  for (const std::string& host : file.path_style_hosts) settings.path_style_hosts.push_back(host);
  std::optional<int64_t> connections = flags.connections_max;
  TakeUnlessSet(&connections, file.connections_max);
  if (connections && (*connections < 1 || *connections > kConnectionsMax)) {
    return Status::InvalidArgument("connections-max is 1 to " + std::to_string(kConnectionsMax));
  }
  if (connections) settings.connections_max = static_cast<uint32_t>(*connections);
  PARTITA_TRY(TakeListen(flags, file, &settings));
  PARTITA_TRY(TakeAccounts(flags, file, azurite_accounts, &settings));
  PARTITA_ASSIGN(settings.throughput, ThroughputOf(flags, file, settings.accounts));
  PARTITA_TRY(TakeAdmin(flags, file, &settings));
  // Names and keys are checked here, before a store is opened.
  Result<http::AccountSet> checked = http::AccountSet::Create(settings.accounts);
  if (!checked.ok()) return checked.status().WithContext("accounts from " + settings.accounts_from);
  return settings;
}

std::vector<std::string> SettingsOfNextStart(const ServeSettings& running, const ServeSettings& wanted) {
  std::vector<std::string> names;
  const auto compare = [&names](const char* name, const auto& runs, const auto& is_wanted) {
    if (runs != is_wanted) names.emplace_back(name);
  };
  compare("data", running.store.directory, wanted.store.directory);
  compare("create", running.create_store, wanted.create_store);
  compare("memory", running.store.memory_bytes, wanted.store.memory_bytes);
  compare("shards", running.store.shards, wanted.store.shards);
  compare("durability", running.store.durability, wanted.store.durability);
  compare("io", running.store.io_backend, wanted.store.io_backend);
  compare("allow-volatile-storage", running.store.allow_volatile_storage,
          wanted.store.allow_volatile_storage);
  compare("listen", running.listen, wanted.listen);
  compare("accounts", running.accounts, wanted.accounts);
  compare("admin", running.admin, wanted.admin);
  compare("admin-public", running.admin_public, wanted.admin_public);
  compare("admin-hosts", running.admin_hosts, wanted.admin_hosts);
  compare("path-style-hosts", running.path_style_hosts, wanted.path_style_hosts);
  compare("connections-max", running.connections_max, wanted.connections_max);
  // Whether there is one at all.
  compare("cert", running.certificate_file.empty(), wanted.certificate_file.empty());
  compare("access-log", running.access_log.empty(), wanted.access_log.empty());
  return names;
}

ConnectionShare ShareDescriptors(uint64_t descriptors, size_t addresses, uint32_t wanted) {
  // Tables, logs, the ring, and the admin address.
  constexpr uint64_t kOthers = 2048 + 2 * kAdminConnectionsMax;
  constexpr uint64_t kLeast = 64, kRefusedMost = 1024;
  const uint64_t room = (descriptors - std::min(descriptors, kOthers)) / std::max<size_t>(addresses, 1);
  const uint64_t refused = std::min(room / 16, kRefusedMost);
  return {.connections = static_cast<uint32_t>(std::min<uint64_t>(wanted, std::max(room - refused, kLeast))),
          .refused = static_cast<uint32_t>(refused)};
}

std::string ConnectionString(const http::AccountSettings& account, const ListenAddress& listen) {
  const std::string scheme = listen.tls ? "https" : "http";
  // Nobody can connect to "any address": the loopback address stands for it.
  std::string address = listen.address;
  if (address.starts_with("0.0.0.0:")) address.replace(0, 7, "127.0.0.1");
  if (address.starts_with("[::]:")) address.replace(0, 4, "[::1]");
  return "DefaultEndpointsProtocol=" + scheme + ";AccountName=" + account.name +
         ";AccountKey=" + account.keys.front() + ";TableEndpoint=" + scheme + "://" + address + "/" +
         account.name + ";";
}

}  // namespace partita
