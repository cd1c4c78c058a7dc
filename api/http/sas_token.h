#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "api/http/query_parameters.h"

namespace partita::http {

// The two kinds of shared access signature that reach tables: text level only, what it means is decided by
// authorization.h.
enum class SasKind : uint8_t {
  kTable,    // Spec 14.4: names one table with `tn`.
  kAccount,  // Spec 14.5: has `ss` and `srt`.
};

// The fields of a SAS, decoded; one that is absent is empty, which no signature can tell apart. Views into
// the query.
struct SasToken {
  SasKind kind = SasKind::kTable;
  std::string_view version;     // sv
  std::string_view permission;  // sp
  std::string_view start;       // st
  std::string_view expiry;      // se
  std::string_view source;      // sip
  std::string_view protocol;    // spr
  std::string_view signature;   // sig
  // Table.
  std::string_view table;                                                   // tn
  std::string_view policy;                                                  // si
  std::string_view lower_partition, lower_row, upper_partition, upper_row;  // spk, srk, epk, erk
  bool has_lower_partition = false, has_upper_partition = false;            // Given, maybe empty.
  // Account.
  std::string_view services;          // ss
  std::string_view resource_types;    // srt
  std::string_view encryption_scope;  // ses
};

// Nothing when the query holds no SAS that could be valid: its kind cannot be told, the version is no date
// or before the first that we sign for (2013-08-15 for tables, 2015-04-05 for accounts), or a field holds
// a control character. The last would let one signed text be cut into fields in two ways.
std::optional<SasToken> ReadSasToken(const QueryParameters& query);

// The string to sign. REQUIRES: of that kind.
std::string TableSasText(const SasToken& token, std::string_view account);
// From version 2020-12-06 on there is a line for the encryption scope, which one client leaves out (spec
// 14.5).
enum class EncryptionScopeLine : uint8_t { kByVersion, kLeftOut };
std::string AccountSasText(const SasToken& token, std::string_view account, EncryptionScopeLine line);

// True from the version on that has that line.
bool HasEncryptionScopeLine(const SasToken& token);

}  // namespace partita::http
