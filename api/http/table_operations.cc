#include <utility>

#include "api/filter.h"
#include "api/http/json_reader.h"
#include "api/http/json_writer.h"
#include "api/http/query_options.h"
#include "api/http/service_core.h"
#include "api/names.h"
#include "api/query.h"
#include "api/query_token.h"

// Operations on tables (spec 10.1 to 10.3).

namespace partita::http {

namespace {

// Of a table that could not be found: it is not there, or that is in doubt.
ServiceError NoTableError(const Status& status) {
  if (status.code() == Code::kUnknown) return ErrorOfStatus(status, /*for_table=*/true);
  return ServiceError(ErrorCode::kResourceNotFound);
}

}  // namespace

Task<Answer> AnswerCreateTable(Exchange& exchange) {
  const ServiceRequest& request = exchange.request;
  const Resource& resource = request.resource;
  std::string name;
  std::optional<ServiceError> refused = CheckBody(request);
  if (!refused) refused = JsonBodyReader::OfThisThread().ReadTableName(request.http.body, &name);
  if (refused) co_return std::move(*refused);
  Status created = co_await exchange.core.database.CreateTable(resource.account, name);
  if (!created.ok()) co_return ErrorOfStatus(created, /*for_table=*/true);

  HttpResponse* response = exchange.response;
  response->headers.append(kDataLines);
  AppendPreferenceApplied(request, &response->headers);
  std::string url;
  AppendTableUrl(&url, resource.base, name);
  AppendHeader(&response->headers, "Location", url);
  if (request.preference == Preference::kNoContent) {
    response->status = 204;
    AppendHeader(&response->headers, "DataServiceId", url);
    co_return std::nullopt;
  }
  response->status = 201;
  AppendJsonContentType(request.level, &response->headers);
  AppendTable(&response->body, request.level, resource.base, resource.account, name);
  co_return std::nullopt;
}

Task<Answer> AnswerDeleteTable(Exchange& exchange) {
  const Resource& resource = exchange.request.resource;
  const AsyncDatabase& database = exchange.core.database;
  // An ill-formed name is no table's either: 404 (recorded). Raw tables are not of this service.
  if (!CheckTableName(resource.table).ok()) co_return ServiceError(ErrorCode::kResourceNotFound);
  if (Result<AsyncTable> table = database.FindTable(resource.account, resource.table); !table.ok()) {
    co_return NoTableError(table.status());
  }
  Status deleted = co_await database.DeleteTable(resource.account, resource.table);
  if (!deleted.ok()) co_return ErrorOfStatus(deleted, /*for_table=*/true);
  exchange.response->status = 204;
  exchange.response->headers.append(kDataLines);
  co_return std::nullopt;
}

Task<Answer> AnswerQueryTables(Exchange& exchange) {
  const ServiceRequest& request = exchange.request;
  const Resource& resource = request.resource;
  Filter filter;
  std::optional<uint32_t> top;
  Answer refused = request.query.CheckSupported();
  if (!refused) refused = ReadFilter(request.query, &filter);
  if (!refused) refused = ReadTop(request.query, &top);
  if (refused) co_return refused;
  std::string from;
  if (std::optional<std::string_view> token = request.query.Find("NextTableName")) {
    Result<std::string> key = DecodeKeyToken(*token);
    if (!key.ok()) co_return ServiceError(ErrorCode::kInvalidInput).Early();
    from = std::move(key).value();
  }
  const auto list = [&](std::string_view begin, size_t limit) {
    return exchange.core.database.ListTables(resource.account, begin, limit);
  };
  const TablePage page = QueryTables(list, filter, top, from);

  HttpResponse* response = exchange.response;
  response->status = 200;
  response->headers.append(kDataLines);
  AppendJsonContentType(request.level, &response->headers);
  if (page.next) {
    AppendHeader(&response->headers, "x-ms-continuation-NextTableName", EncodeKeyToken(*page.next));
  }
  AppendTableListStart(&response->body, request.level, resource.base);
  for (const std::string& name : page.names) {
    AppendListTable(&response->body, request.level, resource.base, resource.account, name);
  }
  AppendListEnd(&response->body);
  co_return std::nullopt;
}

Task<Answer> AnswerGetTable(Exchange& exchange) {
  const ServiceRequest& request = exchange.request;
  const Resource& resource = request.resource;
  Answer refused = request.query.CheckSupported();
  if (refused) co_return refused;
  if (!CheckTableName(resource.table).ok()) co_return ServiceError(ErrorCode::kResourceNotFound);
  Result<AsyncTable> table = exchange.core.database.FindTable(resource.account, resource.table);
  if (!table.ok()) co_return NoTableError(table.status());
  HttpResponse* response = exchange.response;
  response->status = 200;
  response->headers.append(kDataLines);
  AppendJsonContentType(request.level, &response->headers);
  AppendTable(&response->body, request.level, resource.base, resource.account, table->name());
  co_return std::nullopt;
}

}  // namespace partita::http
