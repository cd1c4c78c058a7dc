#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/cli/commands.h"
#include "api/http/accounts.h"
#include "engine/base/result.h"
#include "engine/base/throughput_targets.h"

namespace partita {

// One address that the service listens on.
struct ListenAddress {
  std::string address;  // "127.0.0.1:10002", "[::1]:0"
  bool tls = false;
  bool loopback = false;

  bool operator==(const ListenAddress&) const = default;
};

// At most, of those who administer it.
inline constexpr uint32_t kAdminConnectionsMax = 256;

// What `partita serve` runs with, everything decided and checked.
struct ServeSettings {
  StoreFlags store;
  bool create_store = true;
  std::vector<ListenAddress> listen;
  std::vector<http::AccountSettings> accounts;
  std::string accounts_from;          // For the start-up lines: "the command line" and so on.
  bool accounts_are_default = false;  // Nobody configured any.
  std::optional<ListenAddress> admin;
  bool admin_public = false;               // `admin` may be an address that others reach.
  std::vector<std::string> admin_hosts;    // Names it may be asked by, beside addresses and localhost.
  std::string certificate_file, key_file;  // Both or none.
  std::string access_log;                  // A file, "-" for standard output, or empty: none.
  std::vector<std::string> path_style_hosts = {"localhost"};
  uint32_t connections_max = 16'384;
  ThroughputTargets throughput;
};

// Joins the command line, the environment and the settings file; what stands first in this list wins.
//
// `azurite_accounts` is the variable AZURITE_ACCOUNTS, empty when it is not set. Accounts are taken whole
// from the first of the three that names any. Where none does, and every address is loopback, it is the
// development account, which everybody knows the key of.
//
// kInvalidArgument says what is wrong, where it stands and what would do; kNotFound: no settings file.
Result<ServeSettings> ResolveServeSettings(const StoreFlags& store, const ServeFlags& flags,
                                           std::string_view azurite_accounts);

// The throughput targets alone, for a service that runs and has `accounts`: the settings file is read anew.
// Errors as above.
Result<ThroughputTargets> ResolveThroughput(const ServeFlags& flags,
                                            const std::vector<http::AccountSettings>& accounts);

// Names of settings that differ, but for what a running service takes over: certificate and key, access log,
// throughput.
std::vector<std::string> SettingsOfNextStart(const ServeSettings& running, const ServeSettings& wanted);

// "127.0.0.1:10002", "[::1]:10002", "localhost:10002", each maybe behind http:// or https://; without a
// scheme TLS is as `tls` says. kInvalidArgument.
Result<ListenAddress> ParseListenAddress(std::string_view text, bool tls);

// What each address may have of the descriptors that the process may open.
struct ConnectionShare {
  uint32_t connections = 0, refused = 0;  // HttpServerOptions::connections_max, refused_max.
};
// So that connections leave the store the descriptors for its files, without which it takes no writes.
// `wanted`: connections_max of each of so many addresses. Of few descriptors each gets some nevertheless.
ConnectionShare ShareDescriptors(uint64_t descriptors, size_t addresses, uint32_t wanted);

// The text that table clients connect with.
std::string ConnectionString(const http::AccountSettings& account, const ListenAddress& listen);

}  // namespace partita
