#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/http/service_error.h"
#include "engine/base/property_value.h"

namespace partita::http {

// The stored access policies of one table: its ACL (spec 15).

inline constexpr size_t kStoredPoliciesMax = 5;
inline constexpr size_t kStoredPolicyIdUnitsMax = 64;  // UTF-16 units.

struct StoredPolicy {
  std::string id;
  std::optional<DateTime> start;
  std::optional<DateTime> expiry;
  std::string permission;  // Letters as given; empty: none given.

  friend bool operator==(const StoredPolicy&, const StoredPolicy&) = default;
};

struct StoredPolicies {
  std::vector<StoredPolicy> policies;

  const StoredPolicy* Find(std::string_view id) const;  // Null when there is none. Ids compare exactly.
};

// A moment as a SAS gives it: `YYYY-MM-DD`, `YYYY-MM-DDThh:mmZ`, `YYYY-MM-DDThh:mm:ssZ`, with up to seven
// digits of fraction. Nothing for anything else.
std::optional<DateTime> ParseSasTime(std::string_view text);

// From the body of Set Table ACL; an empty one clears. Its moments may have an offset, and become UTC.
// InvalidXmlDocument for anything malformed or over a limit.
std::optional<ServiceError> ReadAccessPolicies(std::string_view xml, StoredPolicies* policies);

// The body of Get Table ACL, from its byte order mark on. Also the form that is stored.
std::string WriteAccessPolicies(const StoredPolicies& policies);

}  // namespace partita::http
