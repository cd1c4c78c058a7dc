#include "api/http/sas_token.h"

#include <algorithm>
#include <initializer_list>

#include "api/ascii.h"
#include "engine/base/assert.h"
#include "engine/catalog.h"

namespace partita::http {

namespace {

// Versions are dates of one form, so their order is that of the text.
constexpr std::string_view kTableSasMin = "2013-08-15";
constexpr std::string_view kAccountSasMin = "2015-04-05";
constexpr std::string_view kTablePrefixMin = "2015-02-21";
constexpr std::string_view kSourceAndProtocolMin = "2015-04-05";
constexpr std::string_view kEncryptionScopeMin = "2020-12-06";

bool IsVersion(std::string_view text) {
  if (text.size() != kTableSasMin.size() || text[4] != '-' || text[7] != '-') return false;
  return std::count_if(text.begin(), text.end(), IsAsciiDigit) == 8;
}

bool HasAnyControlCharacter(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; });
}

// The items with a newline between them.
std::string Lines(std::initializer_list<std::string_view> items) {
  std::string text;
  for (const std::string_view item : items) text.append(item).push_back('\n');
  text.pop_back();
  return text;
}

}  // namespace

std::optional<SasToken> ReadSasToken(const QueryParameters& query) {
  SasToken token;
  const std::pair<std::string_view, std::string_view*> fields[] = {
      {"sv", &token.version},         {"sp", &token.permission},
      {"st", &token.start},           {"se", &token.expiry},
      {"sip", &token.source},         {"spr", &token.protocol},
      {"sig", &token.signature},      {"tn", &token.table},
      {"si", &token.policy},          {"spk", &token.lower_partition},
      {"srk", &token.lower_row},      {"epk", &token.upper_partition},
      {"erk", &token.upper_row},      {"ss", &token.services},
      {"srt", &token.resource_types}, {"ses", &token.encryption_scope},
  };
  for (const auto& [name, field] : fields) {
    *field = query.Get(name);
    if (HasAnyControlCharacter(*field)) return std::nullopt;
  }
  token.has_lower_partition = query.Has("spk");
  token.has_upper_partition = query.Has("epk");
  const bool of_account = !token.services.empty() || !token.resource_types.empty();
  if (of_account == !token.table.empty()) return std::nullopt;  // Both, or neither.
  token.kind = of_account ? SasKind::kAccount : SasKind::kTable;
  if (!IsVersion(token.version)) return std::nullopt;
  if (token.version < (of_account ? kAccountSasMin : kTableSasMin)) return std::nullopt;
  return token;
}

std::string TableSasText(const SasToken& token, std::string_view account) {
  PARTITA_ASSERT(token.kind == SasKind::kTable);
  std::string resource = token.version >= kTablePrefixMin ? "/table/" : "/";
  resource.append(account).append("/").append(FoldCase(token.table));
  if (token.version < kSourceAndProtocolMin) {
    return Lines({token.permission, token.start, token.expiry, resource, token.policy, token.version,
                  token.lower_partition, token.lower_row, token.upper_partition, token.upper_row});
  }
  return Lines({token.permission, token.start, token.expiry, resource, token.policy, token.source,
                token.protocol, token.version, token.lower_partition, token.lower_row, token.upper_partition,
                token.upper_row});
}

bool HasEncryptionScopeLine(const SasToken& token) { return token.version >= kEncryptionScopeMin; }

std::string AccountSasText(const SasToken& token, std::string_view account, EncryptionScopeLine line) {
  PARTITA_ASSERT(token.kind == SasKind::kAccount);
  std::string text = Lines({account, token.permission, token.services, token.resource_types, token.start,
                            token.expiry, token.source, token.protocol, token.version, ""});
  if (line == EncryptionScopeLine::kByVersion && HasEncryptionScopeLine(token)) {
    text.append(token.encryption_scope).push_back('\n');
  }
  return text;
}

}  // namespace partita::http
