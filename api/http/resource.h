#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/http/service_error.h"

namespace partita::http {

// What the address of a request means (spec 2).

enum class ResourceKind : uint8_t {
  kService,    // `/`: service properties and statistics.
  kTables,     // `/Tables`, `/Tables()`: the collection of tables.
  kTable,      // `/Tables('t')`.
  kEntities,   // `/t`, `/t()`; with `comp=acl` the table's access list.
  kPartition,  // `/t(PartitionKey='a')`: served as a query of that partition.
  kEntity,     // `/t(PartitionKey='a',RowKey='b')`.
  kBatch,      // `/$batch`.
  kMetadata,   // `/$metadata`.
};

// Where the account's name stands. Path style (`/ACCOUNT/...`) when the host is an IP address, a name
// without a dot, or one of `path_style_hosts`; otherwise host style: the first label of the host.
struct AddressRules {
  // Compared ignoring ASCII case, without port.
  std::vector<std::string> path_style_hosts = {"localhost"};
};

// The part of answers' URLs that the request decides: SCHEME://HOST and the account's prefix, without a
// slash at the end. Views into the request.
struct UrlBase {
  bool secure = false;
  std::string_view host;            // As sent, with its port. Only letters, digits and `.-_:[]`.
  std::string_view account_prefix;  // Path style: "/ACCOUNT" as sent; host style: "".
};
void AppendUrlBase(std::string* out, const UrlBase& base);

// Behind an account's name: its read-only copy.
inline constexpr std::string_view kSecondarySuffix = "-secondary";

// Views are into the request's target and Host header, which must outlive this.
struct Resource {
  ResourceKind kind = ResourceKind::kService;
  bool secondary = false;  // Addressed as ACCOUNT-secondary.
  bool path_style = false;
  std::string
      account;  // Without `-secondary`; maybe unknown or no legal name at all. Host style: lower case.

  // Decoded. The table's name is as asked, in any case, and unchecked: which code a bad one gets depends
  // on the operation (CheckTableName in api/names.h; spec 7.1). Set for kTable, kEntities, kPartition,
  // kEntity.
  std::string table;
  // Decoded: valid UTF-8 without a forbidden character; maybe too long (spec 7.2). Set for kEntity;
  // partition_key also for kPartition.
  std::string partition_key;
  std::string row_key;

  std::string_view path;   // As sent, percent-encoding and account prefix included: what is signed.
  std::string_view query;  // As sent, without the `?`.
  UrlBase base;

  bool HasKeys() const { return kind == ResourceKind::kEntity; }
};

// Parses a request's target (origin form or absolute form) with the value of its Host header; the host of
// an absolute target replaces the header's. `secure`: came over TLS.
//
// Refusals, all 400 and early: HostInformationNotPresent without a usable host; InvalidUri for a path that
// is none of the above, a bad percent sequence, or no account in path style; InvalidInput for bad key
// syntax, text that is no UTF-8, and `/` or `\` in a key; OutOfRangeInput for another forbidden character.
std::optional<ServiceError> ParseResource(std::string_view target, std::optional<std::string_view> host,
                                          bool secure, const AddressRules& rules, Resource* resource);

// Parses the URL of a batch part: absolute with any host, or relative with or without the leading slash;
// with or without the account's path. Account, style and base are those of `outer`. Refusals as above;
// also a path of another account (InvalidInput).
std::optional<ServiceError> ParseInnerResource(std::string_view url, const Resource& outer,
                                               Resource* resource);

// True when the host (without port) means path style.
bool IsPathStyleHost(std::string_view host, const AddressRules& rules);

// Appends `text` with each %XX replaced by its byte; false, with `out` in part, at a bad sequence.
enum class PlusSign : uint8_t { kPlus, kSpace };
bool AppendPercentDecoded(std::string* out, std::string_view text, PlusSign plus);

}  // namespace partita::http
