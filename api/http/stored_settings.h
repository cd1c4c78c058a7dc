#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "api/async_database.h"
#include "api/http/access_policies.h"
#include "api/http/authorization.h"
#include "api/http/service_properties.h"
#include "engine/base/async_mutex.h"
#include "engine/base/status.h"
#include "engine/base/task.h"

namespace partita::http {

// The stored policies of tables and the service properties of accounts: read from memory, parsed once for
// each change, changed durably.
//
// Thread-safe. What is parsed is kept under the address of the bytes that it came from, which the entry
// keeps alive, so an entry is never stale; a cache that is full starts anew.
class StoredSettings : public PolicySource {
 public:
  explicit StoredSettings(AsyncDatabase database) : database_(database) {}

  Result<std::shared_ptr<const StoredPolicies>> Policies(std::string_view account,
                                                         std::string_view table) override;
  // Replaces all policies; an empty list clears. Durable on return. kNotFound: no such table.
  Task<Status> SetPolicies(std::string account, std::string table, StoredPolicies policies);

  // Null while none were ever set: the defaults. Cheap then, as every answer asks for CORS. kCorruption: what
  // is stored cannot be read, as a newer version may have written it.
  Result<std::shared_ptr<const ServiceProperties>> ReadProperties(std::string_view account);
  // The same for CORS, which nobody is granted by what cannot be read.
  std::shared_ptr<const ServiceProperties> Properties(std::string_view account) {
    const Result<std::shared_ptr<const ServiceProperties>> read = ReadProperties(account);
    return read.ok() ? *read : nullptr;
  }
  // Merges the document into what is stored (service_properties.h). Durable on return. Nothing when all
  // is well; a refusal of the store by ErrorOfStatus, which keeps what cannot be read. `xml` must outlive the
  // task.
  Task<std::optional<ServiceError>> UpdateProperties(std::string account, std::string_view xml);

 private:
  using Bytes = std::shared_ptr<const std::string>;
  template <typename T>
  struct Cache {
    struct Entry {
      Bytes source;
      std::shared_ptr<const T> parsed;
    };
    std::mutex mutex;  // Held for a look-up or an insertion.
    std::unordered_map<const std::string*, Entry> entries;

    std::shared_ptr<const T> Find(const Bytes& bytes);
    void Add(const Bytes& bytes, std::shared_ptr<const T> parsed);
  };

  AsyncDatabase database_;
  Cache<StoredPolicies> policies_;
  Cache<ServiceProperties> properties_;
  AsyncMutex updating_;  // Of properties: read, merge, write.
};

}  // namespace partita::http
