#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "api/http/batch_reader.h"
#include "api/http/batch_writer.h"
#include "api/http/error_body.h"
#include "api/http/request_id.h"
#include "api/http/service_core.h"
#include "api/limits.h"

// Entity group transactions (spec 12). Nothing is applied before every part is known to be sound: a first
// pass understands and permits all parts, a second one reads their bodies, in order, and the engine decides
// the rest. What refuses one part is the answer's only part; what refuses the whole is a plain answer.

namespace partita::http {

namespace {

constexpr std::string_view kTooManyText =
    "The batch request operation exceeds the maximum 100 changes per change set.";

// Text of a body counts twice by the service's formula, so 4 MiB of JSON can hold more than 4 MiB of entity.
constexpr uint64_t kTransactionSizeMax = 64 << 20;

// Of the answer to an operation that was done.
constexpr size_t kUsualPartBytes = 512;

struct Failure {
  uint32_t operation = 0;
  ServiceError error;
};

struct Changeset {
  std::vector<ServiceRequest> requests;  // One for each part, in order.
  std::vector<Write> writes;             // Of the same index.
  std::optional<AsyncTable> table;
  std::optional<Failure> failure;  // The first part that fails, and why.
};

// What the outer request decides for its parts.
void InheritFrom(const HttpRequest& outer, HttpRequest* part) {
  part->secure = outer.secure;
  part->remote_address = outer.remote_address;
  part->arrived_ticks = outer.arrived_ticks;
  part->peer_gone = outer.peer_gone;
  part->buffers = outer.buffers;
}

Answer UnderstandPart(const Resource& outer, ServiceRequest* request) {
  Answer refused = ReadInnerAddress(outer, request);
  ReadFormat(request);
  if (!refused) refused = ReadKind(request);
  return refused;
}

// First pass. Returns a refusal of the whole: a part that is not permitted. What repeats a part that was
// understood and permitted is so too.
Answer PermitParts(Exchange& exchange, Batch* batch, Changeset* changeset) {
  changeset->requests.reserve(batch->parts.size());
  for (size_t i = 0; i < batch->parts.size(); ++i) {
    HttpRequest& part = batch->parts[i];
    InheritFrom(exchange.request.http, &part);
    if (batch->repeats[i] && !changeset->failure) {
      changeset->requests.emplace_back(part, changeset->requests[i - 1]);
      continue;
    }
    ServiceRequest& request = changeset->requests.emplace_back(part);
    Answer refused = UnderstandPart(exchange.request.resource, &request);
    if (!refused) {
      if (IsEntityWrite(request.kind)) {
        Answer denied = exchange.grant.Check(*OperationOf(request.kind), request.resource.table);
        if (denied) return denied;
      } else {
        refused = ServiceError(ErrorCode::kInvalidInput);  // A query, or an operation on a table.
      }
    }
    if (refused && !changeset->failure) {
      changeset->failure =
          Failure{static_cast<uint32_t>(changeset->requests.size() - 1), std::move(*refused)};
    }
  }
  if (batch->too_many_parts) {
    changeset->failure = Failure{static_cast<uint32_t>(kTransactionOperationsMax - 1),
                                 ServiceError(ErrorCode::kInvalidInput, std::string(kTooManyText))};
  }
  return std::nullopt;
}

// What operation `i` breaks together with those before it.
Answer CheckTogether(const Changeset& changeset, size_t i, std::unordered_set<std::string_view>* rows) {
  const Entity& entity = changeset.writes[i].entity;
  const ServiceRequest& first = changeset.requests[0];
  // The code is unconfirmed.
  if (!SameHeaderName(changeset.requests[i].resource.table, first.resource.table)) {
    return ServiceError(ErrorCode::kInvalidInput);
  }
  if (entity.partition_key() != changeset.writes[0].entity.partition_key()) {
    return ServiceError(ErrorCode::kCommandsInBatchActOnDifferentPartitions).Early();
  }
  if (!rows->insert(entity.row_key()).second) return ServiceError(ErrorCode::kInvalidDuplicateRow);
  return std::nullopt;
}

// The first failing part is told. Before a failure that was found while reading, an entity may break rules
// that the write alone would find.
void FindEarlierFailure(Changeset* changeset) {
  for (size_t i = 0; i < changeset->writes.size() && i < changeset->failure->operation; ++i) {
    Answer refused = CheckEntityOf(changeset->writes[i]);
    if (!refused) continue;
    changeset->failure = Failure{static_cast<uint32_t>(i), std::move(*refused)};
    return;
  }
}

// Second pass, up to the failure that is known. Returns a refusal of the whole: a key that is not permitted.
Answer ReadParts(Exchange& exchange, const Batch& batch, Changeset* changeset) {
  const size_t count = changeset->failure ? changeset->failure->operation : changeset->requests.size();
  changeset->writes.reserve(count);  // `rows` views the keys in it.
  std::unordered_set<std::string_view> rows;
  rows.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    ServiceRequest& request = changeset->requests[i];
    Write& write = changeset->writes.emplace_back();
    Answer refused;
    if (batch.repeats[i]) {
      CopyHeaders(changeset->requests[i - 1], &request);  // Which were in order: nothing failed so far.
    } else {
      refused = ReadHeaders(&request);
    }
    if (!refused) refused = CheckBody(request);
    if (!refused) refused = ReadWrite(request, &write);
    if (!refused) {
      Answer denied = exchange.grant.CheckKey(*OperationOf(request.kind), write.entity.partition_key(),
                                              write.entity.row_key());
      if (denied) return denied;
      refused = CheckTogether(*changeset, i, &rows);
    }
    if (refused) {
      changeset->failure = Failure{static_cast<uint32_t>(i), std::move(*refused)};
      return std::nullopt;
    }
  }
  return std::nullopt;
}

void AppendContentId(const ServiceRequest& request, std::string* headers) {
  std::optional<std::string_view> id = request.http.Header("Content-ID");
  if (id) AppendHeader(headers, "Content-ID", *id);
}

void AddErrorPart(const ServiceRequest& request, const Failure& failure, const AnswerIdentity& identity,
                  BatchWriter* writer) {
  std::string headers;
  AppendContentId(request, &headers);
  headers.append(kNoSniffLine);
  if (!failure.error.early) headers.append(kNoCacheLine);
  AppendPreferenceApplied(request, failure.error, &headers);
  AppendHeader(&headers, "DataServiceVersion", "3.0;");
  AppendJsonContentType(request.level, &headers);
  std::string body;
  AppendJsonError(&body, failure.error, {identity.request_id, identity.time_ticks, failure.operation});
  writer->AddPart(failure.error.status, headers, body);
}

// `answer` is scratch: it keeps its memory from part to part.
void AddWrittenPart(const ServiceRequest& request, const AsyncTable& table, const Write& write,
                    const WriteResult& result, HttpResponse* answer, BatchWriter* writer) {
  answer->Clear();
  AppendContentId(request, &answer->headers);
  answer->headers.append(kNoSniffLine).append(kNoCacheLine);
  AppendPreferenceApplied(request, &answer->headers);
  AppendHeader(&answer->headers, "DataServiceVersion",
               write.action == WriteAction::kInsert ? "3.0;" : "1.0;");
  AnswerWritten(request, table, write, result, answer);
  writer->AddPart(answer->status, answer->headers, answer->body);
}

void FinishBatch(const BatchWriter& writer, HttpResponse* response) {
  response->status = 202;
  response->headers.append(kNoSniffLine).append(kNoCacheLine);
  AppendHeader(&response->headers, "Content-Type", writer.content_type());
}

// Of a changeset that was applied whole or not at all.
void AnswerChangeset(Exchange& exchange, const Changeset& changeset, const WriteResult& result) {
  const RequestId batch_id;
  const RequestId changeset_id;
  BatchWriter writer(&exchange.response->body, batch_id.text(), changeset_id.text());
  writer.BeginChangeset();
  if (changeset.failure) {
    AddErrorPart(changeset.requests[changeset.failure->operation], *changeset.failure, exchange.identity,
                 &writer);
  } else {
    exchange.response->body.reserve(changeset.writes.size() * kUsualPartBytes);
    HttpResponse answer;
    for (size_t i = 0; i < changeset.writes.size(); ++i) {
      AddWrittenPart(changeset.requests[i], *changeset.table, changeset.writes[i], result, &answer, &writer);
    }
  }
  writer.End();
  FinishBatch(writer, exchange.response);
}

Task<Answer> RunChangeset(Exchange& exchange, Batch& batch) {
  Changeset changeset;
  Answer denied = PermitParts(exchange, &batch, &changeset);
  if (!denied) denied = ReadParts(exchange, batch, &changeset);
  if (denied) co_return denied;
  if (changeset.failure && !batch.too_many_parts) FindEarlierFailure(&changeset);
  if (!changeset.failure) {
    Answer refused = FindTable(exchange.core, changeset.requests[0].resource, &changeset.table);
    if (refused) changeset.failure = Failure{0, std::move(*refused)};
  }
  WriteResult result;
  if (!changeset.failure) {
    BatchOptions options;
    options.bytes_max = kTransactionSizeMax;
    result = co_await changeset.table->Transact(changeset.writes, options);
  }
  if (!result.ok()) {
    const uint32_t operation =
        std::min(result.failed_operation, static_cast<uint32_t>(changeset.writes.size() - 1));
    ServiceError error = ErrorOfWrite(exchange.core, changeset.requests[operation].resource, *changeset.table,
                                      changeset.writes[operation], result.status);
    // No part's fault: a plain answer, so that a client tries the whole again.
    if (error.status >= 500) co_return error;
    changeset.failure = Failure{operation, std::move(error)};
  }
  AnswerChangeset(exchange, changeset, result);
  co_return std::nullopt;
}

// The one query of a batch without changeset.
Task<Answer> RunQueryPart(Exchange& exchange, HttpRequest& part) {
  InheritFrom(exchange.request.http, &part);
  ServiceRequest request(part);
  Answer refused = UnderstandPart(exchange.request.resource, &request);
  const bool query = request.kind == RequestKind::kGetEntity || request.kind == RequestKind::kQueryEntities;
  if (!refused && !query) refused = ServiceError(ErrorCode::kInvalidInput);
  if (!refused) {
    Answer denied = exchange.grant.Check(*OperationOf(request.kind), request.resource.table);
    if (denied) co_return denied;
    refused = ReadHeaders(&request);
  }
  HttpResponse answer;
  if (!refused) {
    Exchange inner{exchange.core, request, exchange.grant, exchange.identity, &answer};
    Task<Answer> run =
        request.kind == RequestKind::kGetEntity ? AnswerGetEntity(inner) : AnswerQueryEntities(inner);
    refused = co_await std::move(run);
    if (refused && refused->status >= 500) co_return refused;
  }
  const RequestId batch_id;
  BatchWriter writer(&exchange.response->body, batch_id.text(), "");
  if (refused) {
    AddErrorPart(request, Failure{0, std::move(*refused)}, exchange.identity, &writer);
  } else {
    std::string headers;
    AppendContentId(request, &headers);
    headers.append(answer.headers);
    AppendHeader(&headers, "DataServiceVersion", "3.0;");
    writer.AddPart(answer.status, headers, answer.body);
  }
  writer.End();
  FinishBatch(writer, exchange.response);
  co_return std::nullopt;
}

}  // namespace

Task<Answer> AnswerBatch(Exchange& exchange) {
  const HttpRequest& http = exchange.request.http;
  Batch batch;
  Answer refused = CheckBody(exchange.request);
  if (!refused) refused = ReadBatch(http.Header("Content-Type").value_or(""), http.body, &batch);
  if (refused) co_return refused;
  exchange.core.counters.CountBatchOperations(batch.parts.size());
  if (batch.query) co_return co_await RunQueryPart(exchange, batch.parts[0]);
  co_return co_await RunChangeset(exchange, batch);
}

}  // namespace partita::http
