#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "api/encoded_batch.h"
#include "api/http/batch_reader.h"
#include "api/http/batch_writer.h"
#include "api/http/error_body.h"
#include "api/http/json_writer.h"
#include "api/http/request_id.h"
#include "api/http/service_core.h"
#include "api/limits.h"
#include "api/row_keys.h"
#include "engine/base/executor.h"

// Entity group transactions (spec 12). Nothing is applied before every part is known to be sound: a first
// pass understands and permits all parts, a second one reads their bodies, in order, and the engine decides
// the rest. What refuses one part is the answer's only part; what refuses the whole is a plain answer.
//
// Four MiB take milliseconds to read, and to encode. Between two parts others of the worker get their turn,
// where so many bytes were read or written that it is worth a look at the clock.

namespace partita::http {

namespace {

constexpr std::string_view kTooManyText =
    "The batch request operation exceeds the maximum 100 changes per change set.";

// A batch becomes one log record, of 64 MiB at most (AsyncTable::Transact). A property of six bytes of JSON
// takes 17 of it, longer ones less for a byte.
static_assert(kRequestBodyMax <= 16 << 20);

// Of the answer to an operation that was done.
constexpr size_t kUsualPartBytes = 768;

// Some 20 us of work.
constexpr size_t kBytesBetweenLooks = 16 << 10;

// Around the headers and the body of a part: boundaries, a status line.
constexpr size_t kPartFrameBytes = 512;

struct Failure {
  uint32_t operation = 0;
  ServiceError error;
};

// What parts with one head have in common.
struct Head {
  explicit Head(const HttpRequest& http) : request(http) {}

  ServiceRequest request;
  WriteAction action = WriteAction::kInsert;
  // Of the answer to each of them that was done: the headers that do not differ, and how its entity looks
  // where it has one.
  std::string lines;
  std::string url_start;  // Of an insert.
  std::optional<EntityFormat> format;
};

struct Changeset {
  std::vector<Head> heads;  // Of the same index as the batch's.
  std::optional<AsyncTable> table;
  std::optional<EncodedBatch> encoded;  // All parts so far. For `table`; nothing without one.
  std::string partition_key;
  RowKeys rows;
  std::optional<Failure> failure;  // The first part that fails, and why.
  // What the write alone would find in the parts that were read: the first operation that breaks a rule of
  // its own, and the first with an entity, which counts before a failure of a later part too.
  std::optional<Failure> broken;
  std::optional<Failure> broken_entity;

  Head& HeadOf(const Batch& batch, size_t part) { return heads[batch.parts[part].head]; }
};

// What the outer request decides for its parts.
void InheritFrom(const HttpRequest& outer, HttpRequest* part) {
  part->secure = outer.secure;
  part->remote_address = outer.remote_address;
  part->remote_is_local = outer.remote_is_local;
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

// First pass, head by head: parts that share one are understood and permitted together. Returns a refusal of
// the whole: a part that is not permitted.
Answer PermitParts(Exchange& exchange, Batch* batch, Changeset* changeset) {
  changeset->heads.reserve(batch->heads.size());
  for (size_t i = 0; i < batch->parts.size(); ++i) {
    if (!batch->IsFirstOfHead(i)) continue;
    HttpRequest& part = batch->RequestOf(i);
    InheritFrom(exchange.request.http, &part);
    ServiceRequest& request = changeset->heads.emplace_back(part).request;
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
      changeset->failure = Failure{static_cast<uint32_t>(i), std::move(*refused)};
    }
  }
  if (batch->too_many_parts) {
    changeset->failure = Failure{static_cast<uint32_t>(kTransactionOperationsMax - 1),
                                 ServiceError(ErrorCode::kInvalidInput, std::string(kTooManyText))};
  }
  return std::nullopt;
}

// What operation `i` breaks together with those before it.
Answer CheckTogether(const Batch& batch, size_t i, const Entity& entity, Changeset* changeset) {
  const ServiceRequest& first = changeset->heads[0].request;
  // The code is unconfirmed.
  if (!SameHeaderName(changeset->HeadOf(batch, i).request.resource.table, first.resource.table)) {
    return ServiceError(ErrorCode::kInvalidInput);
  }
  if (i == 0) changeset->partition_key = entity.partition_key();
  if (entity.partition_key() != changeset->partition_key) {
    return ServiceError(ErrorCode::kCommandsInBatchActOnDifferentPartitions).Early();
  }
  if (!changeset->rows.Add(entity.row_key())) return ServiceError(ErrorCode::kInvalidDuplicateRow);
  return std::nullopt;
}

// Encodes operation `i`, as long as none before it broke a rule: then its entity is only looked at.
void Encode(const Write& write, size_t i, Changeset* changeset) {
  const bool has_entity = write.action != WriteAction::kDelete;
  if (changeset->encoded && !changeset->broken) {
    Status added = changeset->encoded->Add(write);
    if (added.ok()) return;
    changeset->broken = Failure{static_cast<uint32_t>(i), ErrorOfInvalid(write, added)};
    if (has_entity && !changeset->broken_entity) changeset->broken_entity = changeset->broken;
    return;
  }
  if (changeset->broken_entity || !has_entity) return;
  Status valid = ValidateEntity(write.entity);
  if (!valid.ok()) {
    changeset->broken_entity = Failure{static_cast<uint32_t>(i), ErrorOfInvalid(write, valid)};
  }
}

Answer ReadPart(Batch* batch, size_t i, Changeset* changeset, Write* write) {
  batch->RequestOf(i);  // From here on the head's request has this part's body.
  Head& head = changeset->HeadOf(*batch, i);
  Answer refused;
  if (batch->IsFirstOfHead(i)) refused = ReadHeaders(&head.request);
  if (!refused) refused = CheckBody(head.request);
  if (!refused) refused = ReadWrite(head.request, write);
  head.action = write->action;
  return refused;
}

// Second pass, up to the failure that is known; of too many parts none is looked at. Returns a refusal of the
// whole: a key that is not permitted.
Task<Answer> ReadParts(Exchange& exchange, Batch* batch, Changeset* changeset) {
  if (batch->too_many_parts) {
    // Only for the preference that its answer echoes.
    (void)ReadHeaders(&changeset->HeadOf(*batch, kTransactionOperationsMax - 1).request);
    co_return std::nullopt;
  }
  const size_t count = changeset->failure ? changeset->failure->operation : batch->parts.size();
  // Text in JSON is as long as encoded, or longer.
  if (changeset->encoded) changeset->encoded->Reserve(count, exchange.request.http.body.size());
  Write write;  // Of one part after the other: its memory is filled again.
  size_t read_bytes = 0;
  for (size_t i = 0; i < count; ++i) {
    Answer refused = ReadPart(batch, i, changeset, &write);
    if (!refused) {
      Answer denied = exchange.grant.CheckKey(*OperationOf(changeset->HeadOf(*batch, i).request.kind),
                                              write.entity.partition_key(), write.entity.row_key());
      if (denied) co_return denied;
      refused = CheckTogether(*batch, i, write.entity, changeset);
    }
    if (refused) {
      changeset->failure = Failure{static_cast<uint32_t>(i), std::move(*refused)};
      co_return std::nullopt;
    }
    Encode(write, i, changeset);
    read_bytes += kPartFrameBytes + changeset->HeadOf(*batch, i).request.http.body.size();
    if (read_bytes < kBytesBetweenLooks) continue;
    read_bytes = 0;
    co_await YieldIfDue();
  }
  co_return std::nullopt;
}

void AppendContentId(const ServiceRequest& request, std::string* headers) {
  std::optional<std::string_view> id = request.http.Header("Content-ID");
  if (id) AppendHeader(headers, "Content-ID", *id);
}

void AddErrorPart(const ServiceRequest& request, const Failure& failure, const AnswerIdentity& identity,
                  BatchWriter* writer) {
  std::string headers;
  AppendContentId(request, &headers);
  headers.append(failure.error.early ? kNoSniffLine : kDataLines);
  AppendPreferenceApplied(request, failure.error, &headers);
  AppendHeader(&headers, "DataServiceVersion", "3.0;");
  AppendJsonContentType(request.level, &headers);
  std::string body;
  AppendJsonError(&body, failure.error, {identity.request_id, identity.time_ticks, failure.operation});
  writer->AddPart(failure.error.status, headers, body);
}

// What does not differ between the answers to the parts of one head.
void PrepareAnswers(const AsyncTable& table, std::string_view partition_key, Head* head) {
  if (AnswersEntity(head->request, head->action))
    head->format.emplace(FormatOfInserted(head->request, table));
  AppendContentId(head->request, &head->lines);
  head->lines.append(kDataLines);
  AppendPreferenceApplied(head->request, &head->lines);
  const bool insert = head->action == WriteAction::kInsert;
  AppendHeader(&head->lines, "DataServiceVersion", insert ? "3.0;" : "1.0;");
  if (insert)
    AppendEntityUrlStart(&head->url_start, head->request.resource.base, table.name(), partition_key);
}

void FinishBatch(const BatchWriter& writer, HttpResponse* response) {
  response->status = 202;
  response->headers.append(kDataLines);
  AppendHeader(&response->headers, "Content-Type", writer.content_type());
}

// Of a changeset that was applied whole or not at all.
Task<void> AnswerChangeset(Exchange& exchange, const Batch& batch, Changeset& changeset,
                           const WriteResult& result) {
  const RequestId batch_id;
  const RequestId changeset_id;
  BatchWriter writer(&exchange.response->body, batch_id.text(), changeset_id.text());
  writer.BeginChangeset();
  if (changeset.failure) {
    AddErrorPart(changeset.HeadOf(batch, changeset.failure->operation).request, *changeset.failure,
                 exchange.identity, &writer);
  } else {
    exchange.response->body.reserve(std::min(batch.parts.size() * kUsualPartBytes, HttpResponse::kLargeBody));
    HttpResponse answer;  // Keeps its memory from part to part.
    size_t looked_at = 0;
    for (size_t i = 0; i < batch.parts.size(); ++i) {
      Head& head = changeset.HeadOf(batch, i);
      if (batch.IsFirstOfHead(i)) PrepareAnswers(*changeset.table, changeset.partition_key, &head);
      answer.Clear();
      answer.headers.append(head.lines);
      const WrittenEntity written{.action = head.action,
                                  .partition_key = changeset.partition_key,
                                  .row_key = changeset.rows.at(i),
                                  .url_start = head.url_start,
                                  .record = changeset.encoded->record(i),
                                  .format = head.format ? &*head.format : nullptr};
      AnswerWritten(head.request, *changeset.table, written, result, &answer);
      writer.AddPart(answer.status, answer.headers, answer.body);
      if (exchange.response->body.size() < looked_at + kBytesBetweenLooks) continue;
      looked_at = exchange.response->body.size();
      co_await YieldIfDue();
    }
  }
  writer.End();
  FinishBatch(writer, exchange.response);
}

// Whose part refused the write, and what that is to its client.
Failure FailureOf(const ServiceCore& core, const Batch& batch, Changeset& changeset,
                  const WriteResult& result) {
  const uint32_t operation = std::min(result.failed_operation, static_cast<uint32_t>(batch.parts.size() - 1));
  const Head& head = changeset.HeadOf(batch, operation);
  Write write;
  write.action = head.action;
  write.entity = Entity(changeset.partition_key, std::string(changeset.rows.at(operation)));
  return {operation, ErrorOfWrite(core, head.request.resource, *changeset.table, write, result.status)};
}

Task<Answer> RunChangeset(Exchange& exchange, Batch& batch) {
  Changeset changeset;
  Answer denied = PermitParts(exchange, &batch, &changeset);
  if (denied) co_return denied;
  Answer no_table = FindTable(exchange.core, changeset.heads[0].request.resource, &changeset.table);
  if (!no_table) changeset.encoded.emplace(changeset.table->id());
  denied = co_await ReadParts(exchange, &batch, &changeset);
  if (denied) co_return denied;
  // No part's fault: a plain answer, so that a client tries the whole again.
  if (no_table && no_table->status >= 500) co_return no_table;
  // The first failing part is told, but for too many of them.
  if (changeset.failure && changeset.broken_entity) changeset.failure = changeset.broken_entity;
  const bool first_failed = changeset.failure && (changeset.failure->operation == 0 || batch.too_many_parts);
  if (no_table && !first_failed) changeset.failure = Failure{0, std::move(*no_table)};
  if (!changeset.failure) changeset.failure = changeset.broken;
  WriteResult result;
  if (!changeset.failure) result = co_await changeset.table->Transact(*changeset.encoded);
  if (!result.ok()) {
    Failure failure = FailureOf(exchange.core, batch, changeset, result);
    if (failure.error.status >= 500) co_return std::move(failure.error);
    changeset.failure = std::move(failure);
  }
  co_await AnswerChangeset(exchange, batch, changeset, result);
  co_return std::nullopt;
}

// Makes the answer to a query a part. Both are held for a moment: where they are large they are counted
// together, and false is the answer when they find no room; then what the response holds does not matter.
bool AddQueryPart(HttpResponse answer, const std::string& headers, BufferBudget* buffers, BatchWriter* writer,
                  HttpResponse* response) {
  const bool large = answer.body.size() > HttpResponse::kLargeBody;
  const size_t whole = response->body.size() + headers.size() + answer.body.size() + kPartFrameBytes;
  if (large) {
    // A page has counted itself.
    const bool counted = answer.body_share.bytes() > 0;
    response->body_share = counted ? std::move(answer.body_share) : BufferShare(buffers);
    if (!response->body_share.TrySet(answer.body.capacity() + whole)) return false;
  }
  response->body.reserve(whole);
  writer->AddPart(answer.status, headers, answer.body);
  if (!large) return true;
  std::string().swap(answer.body);
  response->body_share.Set(response->body.capacity());
  return true;
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
    // Who waits for the whole waits no longer for its part.
    request.timeout_seconds = std::min(request.timeout_seconds, exchange.request.timeout_seconds);
  }
  HttpResponse answer;
  if (!refused) {
    Exchange inner{exchange.core, request, exchange.grant, exchange.identity, &answer};
    Task<Answer> run =
        request.kind == RequestKind::kGetEntity ? AnswerGetEntity(inner) : AnswerQueryEntities(inner);
    refused = co_await std::move(run);
    // What the part asks for and is not there is the part's own answer (spec 12.4).
    const bool of_whole = refused && refused->status >= 500 && refused->code != ErrorCode::kNotImplemented;
    if (of_whole) co_return refused;
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
    const bool fits = AddQueryPart(std::move(answer), headers, part.buffers, &writer, exchange.response);
    if (!fits) co_return TooManyLargeAnswers();
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
  if (batch.query) co_return co_await RunQueryPart(exchange, batch.RequestOf(0));
  co_return co_await RunChangeset(exchange, batch);
}

}  // namespace partita::http
