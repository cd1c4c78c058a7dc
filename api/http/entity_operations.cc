#include <utility>

#include "api/entity_codec.h"
#include "api/etag.h"
#include "api/http/json_writer.h"
#include "api/http/selection.h"
#include "api/http/service_core.h"
#include "api/names.h"

// Operations on one entity (spec 10.4 to 10.7).

namespace partita::http {

namespace {

// The key that a forbidden character stands in.
ServiceError ForbiddenKey(const Entity& entity) {
  const bool partition = !CheckKey(KeyKind::kPartitionKey, entity.partition_key()).ok();
  return ErrorOfForbiddenKey(KeyKindName(partition ? KeyKind::kPartitionKey : KeyKind::kRowKey),
                             partition ? entity.partition_key() : entity.row_key());
}

// True when the table that the name means now is another one, or none.
bool TableIsGone(const ServiceCore& core, const Resource& resource, const AsyncTable& table) {
  Result<AsyncTable> now = core.database.FindTable(resource.account, resource.table);
  return !now.ok() || now->id() != table.id();
}

}  // namespace

ServiceError ErrorOfInvalid(const Write& write, const Status& status) {
  switch (ViolationOf(status)) {
    case Violation::kOutOfRangeInput:
      // A DateTime out of range was refused when the body was read.
      return ForbiddenKey(write.entity);
    case Violation::kPropertyValueTooLarge:
      // Under an over-long key nothing can be there to delete (recorded by a test suite).
      if (write.action == WriteAction::kDelete) return ServiceError(ErrorCode::kResourceNotFound);
      break;
    default:
      break;
  }
  return ErrorOfStatus(status, /*for_table=*/false);
}

Answer FindTable(const ServiceCore& core, const Resource& resource, std::optional<AsyncTable>* table) {
  Result<AsyncTable> found = core.database.FindTable(resource.account, resource.table);
  if (found.ok()) {
    table->emplace(std::move(found).value());
    return std::nullopt;
  }
  Status name = CheckTableName(resource.table);
  if (!name.ok()) return ErrorOfStatus(name, /*for_table=*/true).Early();
  if (found.code() == Code::kUnknown) return ErrorOfStatus(found.status(), /*for_table=*/true).Early();
  return ServiceError(ErrorCode::kTableNotFound).Early();
}

Answer CheckEntityOf(const Write& write) {
  if (write.action == WriteAction::kDelete) return std::nullopt;
  Status status = ValidateEntity(write.entity);
  if (status.ok()) return std::nullopt;
  return ErrorOfInvalid(write, status);
}

ServiceError ErrorOfWrite(const ServiceCore& core, const Resource& resource, const AsyncTable& table,
                          const Write& write, const Status& status) {
  if (status.code() == Code::kInvalidArgument) return ErrorOfInvalid(write, status);
  if (status.code() == Code::kNotFound && TableIsGone(core, resource, table)) {
    return ServiceError(ErrorCode::kTableNotFound).Early();
  }
  return ErrorOfStatus(status, /*for_table=*/false);
}

bool AnswersEntity(const ServiceRequest& request, WriteAction action) {
  return action == WriteAction::kInsert && request.preference != Preference::kNoContent;
}

EntityFormat FormatOfInserted(const ServiceRequest& request, const AsyncTable& table) {
  const Resource& resource = request.resource;
  return EntityFormat(EntityFormat::Shape::kLone, request.level, resource.base, resource.account,
                      table.name(), Selection());
}

void AnswerWritten(const ServiceRequest& request, const AsyncTable& table, const WrittenEntity& written,
                   const WriteResult& result, HttpResponse* response) {
  response->status = 204;
  if (written.action == WriteAction::kDelete) return;
  std::string* headers = &response->headers;
  if (written.action == WriteAction::kInsert) {
    if (AnswersEntity(request, written.action)) {
      response->status = 201;
      AppendJsonContentType(request.level, headers);
      written.format->AppendEntity(
          &response->body,
          {written.partition_key, written.row_key, result.timestamp_ticks, EntityRecordView(written.record)});
    }
    headers->append("Location: ");
    const size_t url = headers->size();
    headers->append(written.url_start);
    if (written.url_start.empty())
      AppendEntityUrlStart(headers, request.resource.base, table.name(), written.partition_key);
    AppendEntityUrlEnd(headers, written.row_key);
    const size_t url_size = headers->size() - url;
    headers->append("\r\n");
    if (request.preference == Preference::kNoContent) {
      headers->append("DataServiceId: ").append(*headers, url, url_size).append("\r\n");
    }
  }
  AppendHeader(headers, "ETag", result.etag);
}

Task<Answer> AnswerEntityWrite(Exchange& exchange) {
  const ServiceRequest& request = exchange.request;
  const Resource& resource = request.resource;
  Write write;
  std::optional<ServiceError> refused = CheckBody(request);
  if (!refused) refused = ReadWrite(request, &write);
  if (!refused) {
    refused = exchange.grant.CheckKey(*OperationOf(request.kind), write.entity.partition_key(),
                                      write.entity.row_key());
  }
  if (refused) co_return std::move(*refused);
  std::optional<AsyncTable> table;
  refused = FindTable(exchange.core, resource, &table);
  if (refused) {
    std::optional<ServiceError> entity_refused = CheckEntityOf(write);
    co_return entity_refused ? std::move(entity_refused) : std::move(refused);
  }
  WriteResult result = co_await table->Write(write);
  if (!result.ok()) co_return ErrorOfWrite(exchange.core, resource, *table, write, result.status);
  exchange.response->headers.append(kDataLines);
  AppendPreferenceApplied(request, &exchange.response->headers);
  std::string record;
  std::optional<EntityFormat> format;
  if (AnswersEntity(request, write.action)) {
    record = EncodeEntityContent(write.entity);
    format.emplace(FormatOfInserted(request, *table));
  }
  const WrittenEntity written{.action = write.action,
                              .partition_key = write.entity.partition_key(),
                              .row_key = write.entity.row_key(),
                              .url_start = {},
                              .record = record,
                              .format = format ? &*format : nullptr};
  AnswerWritten(request, *table, written, result, exchange.response);
  co_return std::nullopt;
}

namespace {

// Why a read found nothing.
ServiceError ErrorOfRead(const ServiceCore& core, const Resource& resource, const AsyncTable& table,
                         const Status& status) {
  // A key that no entity can have: nothing is there (spec 7.2).
  if (status.code() == Code::kInvalidArgument) return ServiceError(ErrorCode::kResourceNotFound);
  if (status.code() == Code::kNotFound && TableIsGone(core, resource, table)) {
    return ServiceError(ErrorCode::kTableNotFound).Early();
  }
  return ErrorOfStatus(status, /*for_table=*/false);
}

struct PointRead {
  Selection selection;
  std::optional<AsyncTable> table;
};

Answer PreparePointRead(Exchange& exchange, PointRead* read) {
  const ServiceRequest& request = exchange.request;
  const Resource& resource = request.resource;
  Answer refused = request.query.CheckSupported();
  if (!refused) refused = Selection::Parse(request.query.Find("$select"), &read->selection);
  if (!refused) refused = FindTable(exchange.core, resource, &read->table);
  if (!refused) {
    refused = exchange.grant.CheckKey(Operation::kGetEntity, resource.partition_key, resource.row_key);
  }
  return refused;
}

Answer AnswerFound(Exchange& exchange, const PointRead& read, const std::string& record, uint64_t ticks) {
  const ServiceRequest& request = exchange.request;
  const Resource& resource = request.resource;
  const EntityRecordView view(record);
  Status checked = view.Check();
  if (!checked.ok()) return ErrorOfStatus(checked, /*for_table=*/false);
  HttpResponse* response = exchange.response;
  response->status = 200;
  response->headers.append(kDataLines);
  AppendJsonContentType(request.level, &response->headers);
  AppendHeader(&response->headers, "ETag", FormatEtag(Version(ticks)));
  const EntityFormat format(EntityFormat::Shape::kLone, request.level, resource.base, resource.account,
                            read.table->name(), read.selection);
  format.AppendEntity(&response->body, {resource.partition_key, resource.row_key, ticks, view});
  return std::nullopt;
}

}  // namespace

Task<Answer> AnswerGetEntity(Exchange& exchange) {
  const Resource& resource = exchange.request.resource;
  PointRead read;
  Answer refused = PreparePointRead(exchange, &read);
  if (refused) co_return refused;
  std::string record;
  uint64_t ticks = 0;
  std::optional<Status> status =
      read.table->TryGetRecord(resource.partition_key, resource.row_key, &record, &ticks);
  if (!status) {
    status = co_await read.table->GetRecord(resource.partition_key, resource.row_key, &record, &ticks);
  }
  if (!status->ok()) co_return ErrorOfRead(exchange.core, resource, *read.table, *status);
  co_return AnswerFound(exchange, read, record, ticks);
}

}  // namespace partita::http
