#include "api/http/stored_settings.h"

#include <utility>

namespace partita::http {

namespace {

// Entries beyond any number of tables with policies in use at once; then it starts anew.
constexpr size_t kCacheEntriesMax = 4096;

// To go on as if there were none would at the next change be for ever.
Status Unreadable(const std::string& what) {
  return Status::Corruption("the stored " + what + " cannot be read");
}

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
  if (ReadAccessPolicies(*bytes, parsed.get()))
    return Unreadable("access policies of table " + std::string(table));
  policies_.Add(bytes, parsed);
  return Policies(std::move(parsed));
}

Task<Status> StoredSettings::SetPolicies(std::string account, std::string table, StoredPolicies policies) {
  std::string bytes = policies.policies.empty() ? std::string() : WriteAccessPolicies(policies);
  co_return co_await database_.SetTableAttributes(std::move(account), std::move(table), std::move(bytes));
}

Result<std::shared_ptr<const ServiceProperties>> StoredSettings::ReadProperties(std::string_view account) {
  using Properties = std::shared_ptr<const ServiceProperties>;
  const Bytes bytes = database_.AccountAttributes(account);
  if (bytes == nullptr) return Properties();
  if (Properties known = properties_.Find(bytes)) return known;
  auto parsed = std::make_shared<ServiceProperties>();
  if (UpdateServiceProperties(*bytes, parsed.get()))
    return Unreadable("service properties of account " + std::string(account));
  properties_.Add(bytes, parsed);
  return Properties(std::move(parsed));
}

Task<std::optional<ServiceError>> StoredSettings::UpdateProperties(std::string account,
                                                                   std::string_view xml) {
  AsyncMutex::Guard updating = co_await updating_.Lock();
  const Result<std::shared_ptr<const ServiceProperties>> present = ReadProperties(account);
  if (!present.ok()) co_return ErrorOfStatus(present.status(), /*for_table=*/true).AsXml();
  ServiceProperties properties = *present == nullptr ? ServiceProperties() : **present;
  std::optional<ServiceError> refused = UpdateServiceProperties(xml, &properties);
  if (refused) co_return refused;
  std::string bytes = properties == ServiceProperties() ? std::string() : WriteServiceProperties(properties);
  Status saved = co_await database_.SetAccountAttributes(std::move(account), std::move(bytes));
  if (!saved.ok()) co_return ErrorOfStatus(saved, /*for_table=*/true).AsXml();
  co_return std::nullopt;
}

}  // namespace partita::http
