#include "api/http/stored_settings.h"

#include <utility>

namespace partita::http {

namespace {

// Entries beyond any number of tables with policies in use at once; then it starts anew.
constexpr size_t kCacheEntriesMax = 4096;

}  // namespace

template <typename T>
std::shared_ptr<const T> StoredSettings::Cache<T>::Find(const Bytes& bytes) {
  std::lock_guard lock(mutex);
  const auto it = entries.find(bytes.get());
  return it == entries.end() ? nullptr : it->second.parsed;
}

template <typename T>
void StoredSettings::Cache<T>::Add(const Bytes& bytes, std::shared_ptr<const T> parsed) {
  std::lock_guard lock(mutex);
  if (entries.size() >= kCacheEntriesMax) entries.clear();
  entries[bytes.get()] = {bytes, std::move(parsed)};
}

Result<std::shared_ptr<const StoredPolicies>> StoredSettings::Policies(std::string_view account,
                                                                       std::string_view table) {
  using Policies = std::shared_ptr<const StoredPolicies>;
  const Bytes bytes = database_.TableAttributes(account, table);
  if (bytes == nullptr) {
    Status found = database_.FindTable(account, table).status();
    if (found.code() == Code::kUnknown) return found;
    return Policies();
  }
  if (Policies known = policies_.Find(bytes)) return known;
  auto parsed = std::make_shared<StoredPolicies>();
  // What was written by WriteAccessPolicies reads back. Were it not so, no token that names a policy
  // would be let in.
  if (ReadAccessPolicies(*bytes, parsed.get())) return Policies();
  policies_.Add(bytes, parsed);
  return Policies(std::move(parsed));
}

Task<Status> StoredSettings::SetPolicies(std::string account, std::string table, StoredPolicies policies) {
  std::string bytes = policies.policies.empty() ? std::string() : WriteAccessPolicies(policies);
  co_return co_await database_.SetTableAttributes(std::move(account), std::move(table), std::move(bytes));
}

std::shared_ptr<const ServiceProperties> StoredSettings::Properties(std::string_view account) {
  const Bytes bytes = database_.AccountAttributes(account);
  if (bytes == nullptr) return nullptr;
  if (auto known = properties_.Find(bytes)) return known;
  auto parsed = std::make_shared<ServiceProperties>();
  if (UpdateServiceProperties(*bytes, parsed.get())) return nullptr;
  properties_.Add(bytes, parsed);
  return parsed;
}

Task<std::optional<ServiceError>> StoredSettings::UpdateProperties(std::string account,
                                                                   std::string_view xml) {
  AsyncMutex::Guard updating = co_await updating_.Lock();
  std::shared_ptr<const ServiceProperties> present = Properties(account);
  ServiceProperties properties = present == nullptr ? ServiceProperties() : *present;
  std::optional<ServiceError> refused = UpdateServiceProperties(xml, &properties);
  if (refused) co_return refused;
  std::string bytes = properties == ServiceProperties() ? std::string() : WriteServiceProperties(properties);
  Status saved = co_await database_.SetAccountAttributes(std::move(account), std::move(bytes));
  if (!saved.ok()) co_return ErrorOfStatus(saved, /*for_table=*/true).AsXml();
  co_return std::nullopt;
}

}  // namespace partita::http
