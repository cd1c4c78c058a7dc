#include <chrono>
#include <cstdlib>
#include <optional>

#include "api/cli/commands.h"
#include "api/cli/figures.h"
#include "api/date_time.h"
#include "api/http/accounts.h"
#include "api/http/admin_client.h"
#include "api/http/sas_token.h"
#include "api/names.h"
#include "engine/base/clock.h"

namespace partita {

namespace {

using http::SasKind;
using http::SasToken;

// The protocol version that all clients in use sign for.
constexpr std::string_view kVersion = "2019-02-02";
constexpr std::string_view kDefaultExpiry = "1h";
constexpr uint64_t kSecondsPerDay = 86'400;

void AppendParameter(std::string* out, std::string_view name, std::string_view value) {
  if (value.empty()) return;
  if (!out->empty()) out->push_back('&');
  out->append(name).append("=").append(http::EncodeParameter(value));
}

uint64_t NowTicks() {
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  const int64_t now = std::chrono::duration_cast<std::chrono::seconds>(since_1970).count();
  return kUnixEpochTicks + static_cast<uint64_t>(now) * kTicksPerSecond;
}

// `text`: a time, or how long from `now_ticks` on.
Result<uint64_t> ExpiryTicks(const std::string& text, uint64_t now_ticks) {
  if (const std::optional<int64_t> seconds = ParseDuration(text)) {
    const uint64_t left_seconds = (kDateTimeTicksMax - now_ticks) / kTicksPerSecond;
    if (static_cast<uint64_t>(*seconds) <= left_seconds) {
      return now_ticks + static_cast<uint64_t>(*seconds) * kTicksPerSecond;
    }
    const std::string most = std::to_string(left_seconds / kSecondsPerDay) + "d";
    return Status::InvalidArgument(
        "--expiry " + text + " ends after the year 9999, the last that a time can name; the most is " + most);
  }
  const Result<DateTime> time = ParseDateTime(text);
  if (time.ok()) return time->ticks;
  return Status::InvalidArgument(
      "--expiry takes a time, such as 2030-01-01T00:00:00Z, or how long from now: 90m, 12h, 7d; not '" +
      text + "'");
}

Result<std::string> ExpiryText(const std::string& text) {
  const uint64_t now_ticks = NowTicks();
  PARTITA_ASSIGN(const uint64_t expiry_ticks, ExpiryTicks(text, now_ticks));
  if (expiry_ticks > now_ticks) return FormatDateTime(DateTime{expiry_ticks});
  return Status::InvalidArgument("--expiry " + text + " is not in the future: the token would never work");
}

Status CheckPermissions(std::string_view given, std::string_view allowed) {
  for (const char c : given) {
    if (allowed.find(c) == std::string_view::npos) {
      return Status::InvalidArgument("permission '" + std::string(1, c) + "' is none of " +
                                     std::string(allowed));
    }
  }
  return Status();
}

// In the order of `allowed`, as the service wants them.
std::string InOrder(std::string_view given, std::string_view allowed) {
  std::string ordered;
  for (const char c : allowed) {
    if (given.find(c) != std::string_view::npos) ordered.push_back(c);
  }
  return ordered;
}

// The key to sign with: given, or that of AZURITE_ACCOUNTS, or the public one of the development account.
Result<std::string> KeyOf(const std::string& account, const std::string& given) {
  if (!given.empty()) return given;
  if (const char* text = std::getenv("AZURITE_ACCOUNTS")) {
    PARTITA_ASSIGN(const std::vector<http::AccountSettings> accounts, http::ParseAccountsText(text));
    for (const http::AccountSettings& one : accounts) {
      if (one.name == account) return one.keys.front();
    }
  }
  if (account == http::kDevelopmentAccount) return std::string(http::kDevelopmentKey);
  return Status::InvalidArgument("which key does account '" + account +
                                 "' have? Give --key KEY, or set AZURITE_ACCOUNTS=" + account + ":KEY");
}

Result<std::string> TableToken(const SasFlags& flags, const std::string& expiry, const std::string& account,
                               const http::SigningKey& key) {
  constexpr std::string_view kAllowed = "raud";
  PARTITA_TRY(CheckTableName(flags.table));
  if (!flags.partition.empty()) PARTITA_TRY(CheckKey(KeyKind::kPartitionKey, flags.partition));
  const std::string permissions = flags.permissions.empty() ? "r" : flags.permissions;
  PARTITA_TRY(CheckPermissions(permissions, kAllowed));
  const std::string ordered = InOrder(permissions, kAllowed);
  SasToken token{.kind = SasKind::kTable, .version = kVersion, .permission = ordered, .expiry = expiry};
  token.table = flags.table;
  token.lower_partition = token.upper_partition = flags.partition;
  token.has_lower_partition = token.has_upper_partition = !flags.partition.empty();
  std::string text;
  AppendParameter(&text, "sv", token.version);
  AppendParameter(&text, "tn", token.table);
  AppendParameter(&text, "sp", token.permission);
  AppendParameter(&text, "se", token.expiry);
  AppendParameter(&text, "spk", flags.partition);
  AppendParameter(&text, "epk", flags.partition);
  AppendParameter(&text, "sig", key.Sign(http::TableSasText(token, account)));
  return text;
}

Result<std::string> AccountToken(const SasFlags& flags, const std::string& expiry, const std::string& account,
                                 const http::SigningKey& key) {
  constexpr std::string_view kAllowed = "rwdlacup";
  if (!flags.partition.empty()) return Status::InvalidArgument("--partition needs --table");
  const std::string permissions = flags.permissions.empty() ? "rl" : flags.permissions;
  PARTITA_TRY(CheckPermissions(permissions, kAllowed));
  const std::string ordered = InOrder(permissions, kAllowed);
  SasToken token{.kind = SasKind::kAccount, .version = kVersion, .permission = ordered, .expiry = expiry};
  token.services = "t";
  token.resource_types = "sco";
  std::string text;
  AppendParameter(&text, "sv", token.version);
  AppendParameter(&text, "ss", token.services);
  AppendParameter(&text, "srt", token.resource_types);
  AppendParameter(&text, "sp", token.permission);
  AppendParameter(&text, "se", token.expiry);
  AppendParameter(&text, "sig",
                  key.Sign(http::AccountSasText(token, account, http::EncryptionScopeLine::kByVersion)));
  return text;
}

Result<std::string> MakeToken(const StoreFlags& store, const SasFlags& flags) {
  std::string account = flags.account.empty() ? store.account : flags.account;
  if (account.empty()) account = http::kDevelopmentAccount;
  PARTITA_TRY(CheckAccountName(account));
  PARTITA_ASSIGN(const std::string key_text, KeyOf(account, flags.key));
  PARTITA_ASSIGN(const http::SigningKey key, http::SigningKey::FromBase64(key_text));
  PARTITA_ASSIGN(const std::string expiry,
                 ExpiryText(flags.expiry.empty() ? std::string(kDefaultExpiry) : flags.expiry));
  return flags.table.empty() ? AccountToken(flags, expiry, account, key)
                             : TableToken(flags, expiry, account, key);
}

}  // namespace

ExitCode RunSas(const StoreFlags& store, const SasFlags& flags, Console& console) {
  const Result<std::string> token = MakeToken(store, flags);
  if (!token.ok()) return Fail(console, token.status());
  console.out << *token << "\n";
  return ExitCode::kOk;
}

}  // namespace partita
