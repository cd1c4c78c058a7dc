#include <utility>

#include "api/http/access_policies.h"
#include "api/http/service_core.h"

// Get and Set Table ACL (spec 15). Answers and errors are XML, without the headers of data answers.

namespace partita::http {

Task<Answer> AnswerGetTableAcl(Exchange& exchange) {
  const Resource& resource = exchange.request.resource;
  std::optional<AsyncTable> table;
  if (Answer refused = FindTable(exchange.core, resource, &table)) co_return refused;
  const Result<std::shared_ptr<const StoredPolicies>> found =
      exchange.core.settings.Policies(resource.account, resource.table);
  if (!found.ok()) co_return ErrorOfStatus(found.status(), /*for_table=*/true);
  const StoredPolicies* stored = found->get();
  AnswerXml(WriteAccessPolicies(stored == nullptr ? StoredPolicies() : *stored), exchange.response);
  co_return std::nullopt;
}

Task<Answer> AnswerSetTableAcl(Exchange& exchange) {
  const Resource& resource = exchange.request.resource;
  StoredPolicies policies;
  std::optional<AsyncTable> table;
  std::optional<ServiceError> refused = CheckBody(exchange.request);
  if (!refused) refused = ReadAccessPolicies(exchange.request.http.body, &policies);
  if (!refused) refused = FindTable(exchange.core, resource, &table);
  if (refused) co_return std::move(*refused);
  Status set =
      co_await exchange.core.settings.SetPolicies(resource.account, resource.table, std::move(policies));
  if (set.code() == Code::kNotFound) co_return ServiceError(ErrorCode::kTableNotFound);
  // "Busy" is the queue's here, never a table's deletion.
  if (!set.ok()) co_return ErrorOfStatus(set, /*for_table=*/false);
  exchange.response->status = 204;
  co_return std::nullopt;
}

}  // namespace partita::http
