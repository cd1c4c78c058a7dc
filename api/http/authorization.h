#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "api/http/access_policies.h"
#include "api/http/accounts.h"
#include "api/http/http_message.h"
#include "api/http/query_parameters.h"
#include "api/http/resource.h"
#include "api/http/service_error.h"
#include "engine/base/clock.h"

namespace partita::http {

// Who asks and what they may do (spec 14): SharedKey, SharedKeyLite, table SAS, account SAS.
//
//   1. Authorize verifies the signature, the dates, the source address and the protocol of a request, and
//      gives a Grant. For a transaction it is the outer request that is authorized.
//   2. Grant::Check decides each operation: once for a plain request, once for each part of a transaction.
//   3. What a query returns is cut to Grant::key_range().
//
// Nothing here asks whether a table exists: authentication precedes existence.

enum class Operation : uint8_t {
  kQueryEntities,
  kGetEntity,
  kInsertEntity,
  kUpdateEntity,  // Replace or merge with If-Match.
  kUpsertEntity,  // Insert-Or-Replace, Insert-Or-Merge: without If-Match.
  kDeleteEntity,
  kQueryTables,
  kCreateTable,
  kDeleteTable,
  kGetTableAcl,
  kSetTableAcl,
  kGetServiceProperties,
  kSetServiceProperties,
  kGetServiceStats,
};

// Where a table SAS that names a stored policy finds it. Thread-safe, must not block.
class PolicySource {
 public:
  virtual ~PolicySource() = default;
  // Null when there is no such table, or no policy on it. `table` in any case. kUnknown: whether there is
  // such a table is in doubt. kCorruption: what is stored cannot be read, as a newer version may have written
  // it.
  virtual Result<std::shared_ptr<const StoredPolicies>> Policies(std::string_view account,
                                                                 std::string_view table) = 0;
};

// The part of a table that a SAS opens. Both ends belong to it; order is that of UTF-16 code units, the
// order of OrderedText (engine/base/user_key.h). Keys are UTF-8.
struct KeyRange {
  std::optional<std::string> lower_partition;  // Nothing: from the beginning.
  std::optional<std::string> lower_row;        // Only with lower_partition; nothing: from its first row.
  std::optional<std::string> upper_partition;  // Nothing: to the end.
  std::optional<std::string> upper_row;        // Only with upper_partition; nothing: to its last row.

  bool bounded() const { return lower_partition.has_value() || upper_partition.has_value(); }
  bool Contains(std::string_view partition_key, std::string_view row_key) const;
};

// What one request may do: nothing, until Authorize has filled it in. A value.
class Grant {
 public:
  // Why `operation` on `table` (in any case; "" where there is none) is refused; nothing when it is allowed.
  // For entities this does not look at keys: also ask CheckKey, or cut to key_range().
  std::optional<ServiceError> Check(Operation operation, std::string_view table) const;

  // Why an operation on this one entity is refused, after Check: outside of the key range a get is
  // ResourceNotFound and a write AuthorizationFailure.
  std::optional<ServiceError> CheckKey(Operation operation, std::string_view partition_key,
                                       std::string_view row_key) const;

  // What queries are cut to; null: everything.
  const KeyRange* key_range() const { return range_.bounded() ? &range_ : nullptr; }

  // Signed with the account's key itself.
  bool is_owner() const { return kind_ == Kind::kAccountKey; }
  bool secondary() const { return secondary_; }

 private:
  friend class Authorizer;
  enum class Kind : uint8_t { kNothing, kAccountKey, kTableSas, kAccountSas };

  std::optional<ServiceError> CheckTableSas(Operation operation, std::string_view table) const;
  std::optional<ServiceError> CheckAccountSas(Operation operation) const;

  Kind kind_ = Kind::kNothing;
  bool secondary_ = false;       // Or of a store that is read only.
  uint32_t permissions_ = 0;     // A bit for each letter of `sp`.
  uint32_t resource_types_ = 0;  // A bit for each letter of `srt`.
  std::string table_;            // Of a table SAS, folded.
  KeyRange range_;
};

struct AuthorizationOptions {
  // How far the date of a Shared Key request may be from the server's clock, either way.
  uint64_t clock_window_ticks = 15 * 60 * kTicksPerSecond;
  // The store is opened so: who may write is told that he may not, as on a secondary.
  bool read_only = false;
};

// Thread-safe; `accounts` must outlive it, and `policies` too, which may be null: no table has any.
class Authorizer {
 public:
  using Options = AuthorizationOptions;
  Authorizer(const AccountSet& accounts, PolicySource* policies, Options options = {})
      : accounts_(accounts), policies_(policies), options_(options) {}

  // Fills in `*grant`, or refuses: with XML what is about the signature, its dates or the token itself, in
  // the format of the resource what a valid token does not allow. An account that does not exist answers
  // as a wrong signature does and takes the same work. Time is request.arrived_ticks. `resource` and
  // `query` are what ParseResource and QueryParameters read off the request's target.
  std::optional<ServiceError> Authorize(const HttpRequest& request, const Resource& resource,
                                        const QueryParameters& query, Grant* grant) const;

 private:
  std::optional<ServiceError> AuthorizeByHeader(const HttpRequest& request, std::string_view authorization,
                                                const Resource& resource, const QueryParameters& query,
                                                Grant* grant) const;
  std::optional<ServiceError> AuthorizeByToken(const HttpRequest& request, const Resource& resource,
                                               const QueryParameters& query, Grant* grant) const;

  const AccountSet& accounts_;
  PolicySource* policies_;
  Options options_;
};

}  // namespace partita::http
