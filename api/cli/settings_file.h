#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/http/accounts.h"
#include "engine/base/result.h"
#include "engine/base/throughput_targets.h"

namespace partita {

// The settings file of `partita serve`, as it stands; what is unset is not in the file.
//
//   data = "/var/lib/partita"
//   listen = ["127.0.0.1:10002", "https://0.0.0.0:10003"]
//   memory = "4G"
//   cert = "/etc/partita/cert.pem"
//   key-file = "/etc/partita/key.pem"
//
//   throughput = "storage"
//
//   [[account]]
//   name = "contoso"
//   keys = ["...", "..."]
//
//   [[throughput-rule]]
//   account = "contoso"
//   table = "Orders"
//   partition-prefix = "eu-"
//   partition-rate = 500
struct SettingsFile {
  std::optional<std::string> data, memory, durability, io;
  std::optional<int64_t> shards, connections_max;
  std::optional<bool> create, admin_public, allow_volatile_storage;
  std::vector<std::string> listen;
  std::optional<std::string> admin, cert, key_file, access_log;
  std::vector<std::string> path_style_hosts, admin_hosts;
  std::vector<http::AccountSettings> accounts;
  std::optional<std::string> throughput;
  std::vector<ThroughputRule> throughput_rules;
};

// kNotFound, kIoError: the file cannot be read. kInvalidArgument: it is no TOML, a value is of the wrong
// kind, or a key is unknown (the message names the nearest one); with file and line.
Result<SettingsFile> ReadSettingsFile(const std::string& path);
// The same of a text; `name` stands in messages.
Result<SettingsFile> ParseSettings(const std::string& text, const std::string& name);

}  // namespace partita
