#pragma once
#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "api/async_database.h"
#include "api/http/answer.h"
#include "api/http/authorization.h"
#include "api/http/service_counters.h"
#include "api/http/service_error.h"
#include "api/http/service_request.h"
#include "api/http/stored_settings.h"
#include "api/http/table_service.h"

namespace partita::http {

class EntityFormat;

// What all operations work with: the inside of a TableService. Thread-safe as its parts are.
struct ServiceCore {
  ServiceCore(Database& db, const AccountSet& accounts, TableServiceOptions service_options)
      : options(std::move(service_options)),
        database(db),
        settings(database),
        authorizer(accounts, &settings, options.authorization) {}

  TableServiceOptions options;
  AsyncDatabase database;
  StoredSettings settings;
  Authorizer authorizer;
  ServiceCounters counters;
  // Bytes of text of the last large page (query_operations.cc). Only a hint.
  std::atomic<size_t> usual_page_bytes{0};
};

// One request on its way through an operation. The references outlive the operation's task.
struct Exchange {
  ServiceCore& core;
  ServiceRequest& request;
  const Grant& grant;
  const AnswerIdentity& identity;
  HttpResponse* response;
};

// The operations. Each fills in status, headers and body of the answer, but for the headers that every
// answer has, or refuses: then what the response holds does not matter. `exchange` outlives the task.
// The request has passed steps 1 to 7 of spec 10.9 and Grant::Check.
using Answer = std::optional<ServiceError>;

// The refusal of a large answer for which there is no room among the server's buffers.
inline ServiceError TooManyLargeAnswers() {
  return ServiceError(ErrorCode::kServerBusy, "The server holds too many large answers.");
}

// entity_operations.cc
Task<Answer> AnswerGetEntity(Exchange& exchange);
Task<Answer> AnswerEntityWrite(Exchange& exchange);
// query_operations.cc
Task<Answer> AnswerQueryEntities(Exchange& exchange);
// table_operations.cc
Task<Answer> AnswerCreateTable(Exchange& exchange);
Task<Answer> AnswerDeleteTable(Exchange& exchange);
Task<Answer> AnswerQueryTables(Exchange& exchange);
Task<Answer> AnswerGetTable(Exchange& exchange);
// acl_operations.cc
Task<Answer> AnswerGetTableAcl(Exchange& exchange);
Task<Answer> AnswerSetTableAcl(Exchange& exchange);
// service_operations.cc
Task<Answer> AnswerGetServiceProperties(Exchange& exchange);
Task<Answer> AnswerSetServiceProperties(Exchange& exchange);
Task<Answer> AnswerGetServiceStats(Exchange& exchange);
// batch_operations.cc
Task<Answer> AnswerBatch(Exchange& exchange);

// ---- What several of them share; entity_operations.cc.

// The table of the request. 400 for an ill-formed name, 404 TableNotFound; both early.
Answer FindTable(const ServiceCore& core, const Resource& resource, std::optional<AsyncTable>* table);

// Step 8 for names, values and sizes. The write asks it too; this is for who must know before, because
// another refusal would otherwise be told first.
Answer CheckEntityOf(const Write& write);

// What a write is to its client that breaks a rule of its own (kInvalidArgument).
ServiceError ErrorOfInvalid(const Write& write, const Status& status);

// What a refused write of `write` to `table` is to its client.
ServiceError ErrorOfWrite(const ServiceCore& core, const Resource& resource, const AsyncTable& table,
                          const Write& write, const Status& status);

// What was written; views.
struct WrittenEntity {
  WriteAction action = WriteAction::kInsert;
  std::string_view partition_key;
  std::string_view row_key;
  std::string_view url_start;  // Of its URL (AppendEntityUrlStart); empty: it is made for it alone.
  // Only where AnswersEntity.
  std::string_view record;
  const EntityFormat* format = nullptr;  // FormatOfInserted, of this request or one like it.
};
// Whether the answer to a write of this kind repeats the entity.
bool AnswersEntity(const ServiceRequest& request, WriteAction action);
EntityFormat FormatOfInserted(const ServiceRequest& request, const AsyncTable& table);
// Status, headers and body of a write that succeeded, but for Preference-Applied.
void AnswerWritten(const ServiceRequest& request, const AsyncTable& table, const WrittenEntity& written,
                   const WriteResult& result, HttpResponse* response);

}  // namespace partita::http
