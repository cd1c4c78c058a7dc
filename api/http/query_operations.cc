#include <algorithm>
#include <charconv>
#include <utility>

#include "api/entity_codec.h"
#include "api/http/explain_headers.h"
#include "api/http/json_writer.h"
#include "api/http/query_options.h"
#include "api/http/selection.h"
#include "api/http/service_core.h"
#include "api/limits.h"
#include "api/query.h"
#include "api/query_token.h"
#include "engine/base/clock.h"

// Query Entities (spec 11): one page straight from the rows to the body of the answer.

namespace partita::http {

namespace {

// A page ends when its text has so many bytes. The page's own limit counts what is stored; absent properties
// that are selected, or escapes, can be many times as much.
constexpr size_t kPageTextMax = 8 << 20;
constexpr size_t kUncountedText = 16 << 10;  // Most pages are small.

// What a page is given at once when it is not small: as much as the last such page had, so that it is not
// copied at each doubling.
constexpr size_t kUsualTextMax = 256 << 10;

// Writes each row where it lies. Queries take turns on a worker, so that many pages grow at once: what they
// hold is counted while they do, and when all hold too much each ends where it is (spec 17.2: better than to
// refuse).
class JsonSink : public QueryRowSink {
 public:
  // `usual_text`: what such a page is given at once; 0: nothing.
  JsonSink(const EntityFormat& format, BufferBudget* buffers, size_t usual_text, HttpResponse* response)
      : format_(format), usual_text_(usual_text), body_(&response->body), share_(&response->body_share) {
    *share_ = BufferShare(buffers);
    const bool all_hold_much = buffers != nullptr && buffers->held() > buffers->bytes_max() / 2;
    if (all_hold_much) usual_text_ = 0;
  }

  bool Add(const QueryRow& row) override {
    const EntityRecordView record(row.content);
    status_ = CheckEntityKeys(row.partition_key, row.row_key);
    if (status_.ok()) status_ = record.Check();
    if (!status_.ok()) return false;
    const size_t before = body_->size();
    format_.AppendListEntity(body_, {row.partition_key, row.row_key, row.version.value, record});
    if (std::exchange(first_, false) && !share_->Set(Counted(body_->capacity()))) {
      // A large row that finds no room would be held beyond it all the same.
      status_ = Status::ResourceExhausted("the server holds too many large answers");
      return false;
    }
    return body_->size() < kPageTextMax && MakeRoom(body_->size() - before);
  }

  const Status& status() const { return status_; }

  // Where the last page was not the like of this one, what is held in vain is not held until it is sent.
  void GiveBackRest() {
    if (body_->capacity() <= kUncountedText || body_->capacity() / 2 <= body_->size()) return;
    body_->shrink_to_fit();
    share_->Set(Counted(body_->capacity()));
  }

 private:
  static size_t Counted(size_t held) { return held - std::min(held, kUncountedText); }

  // Memory for another row such as the last, counted before it is taken; false when there is none.
  bool MakeRoom(size_t row_bytes) {
    const size_t wanted = body_->size() + row_bytes;
    const size_t doubled = std::min(2 * body_->size(), kPageTextMax + row_bytes);
    size_t room = wanted <= body_->capacity() ? body_->capacity() : std::max(wanted, doubled);
    const bool like_the_last = room > kUncountedText && room > body_->capacity() && room < usual_text_;
    if (like_the_last && share_->TrySet(Counted(usual_text_))) {
      room = usual_text_;
    } else if (!share_->TrySet(Counted(room))) {
      return false;
    }
    body_->reserve(room);
    return true;
  }

  const EntityFormat& format_;
  size_t usual_text_;
  std::string* body_;
  BufferShare* share_;
  bool first_ = true;
  Status status_;
};

partita::KeyRange RangeOf(const KeyRange* granted) {
  partita::KeyRange range;
  if (granted == nullptr) return range;
  if (granted->lower_partition) range.start = {*granted->lower_partition, granted->lower_row};
  if (granted->upper_partition) range.end = {*granted->upper_partition, granted->upper_row};
  return range;
}

struct EntityQuery {
  Query query;
  Selection selection;
  std::optional<AsyncTable> table;
};

Answer PrepareQuery(Exchange& exchange, EntityQuery* entity_query) {
  const ServiceRequest& request = exchange.request;
  const QueryParameters& parameters = request.query;
  Query& query = entity_query->query;
  Answer refused = parameters.CheckSupported();
  if (!refused) refused = Selection::Parse(parameters.Find("$select"), &entity_query->selection);
  if (!refused) refused = ReadFilter(parameters, &query.filter);
  if (!refused) refused = ReadTop(parameters, &query.top);
  if (refused) return refused;
  Result<std::optional<QueryPosition>> from =
      DecodePosition(parameters.Find("NextPartitionKey"), parameters.Find("NextRowKey"));
  if (!from.ok()) return ServiceError(ErrorCode::kInvalidInput).Early();
  query.from = std::move(from).value();
  query.range = RangeOf(exchange.grant.key_range());
  query.limits.nanos = std::min(query.limits.nanos, request.timeout_seconds * kNanosPerSecond);
  query.cancelled = request.http.peer_gone;
  if (request.resource.kind == ResourceKind::kPartition) {
    Filter partition =
        Filter::Comparison("PartitionKey", ComparisonOp::kEqual, request.resource.partition_key);
    query.filter = query.filter.empty() ? std::move(partition)
                                        : Filter::And(std::move(partition), std::move(query.filter));
  }
  return FindTable(exchange.core, request.resource, &entity_query->table);
}

ServiceError ErrorOfQuery(const Status& status) {
  if (status.code() == Code::kNotFound) return ServiceError(ErrorCode::kTableNotFound).Early();
  return ErrorOfStatus(status, /*for_table=*/false);
}

}  // namespace

std::optional<ServiceError> ReadFilter(const QueryParameters& query, Filter* filter) {
  std::optional<std::string_view> text = query.Find("$filter");
  if (!text) return std::nullopt;
  Result<Filter> parsed = ParseFilter(*text);
  if (!parsed.ok()) {
    const bool not_run = parsed.code() == Code::kUnsupported;
    return ServiceError(not_run ? ErrorCode::kNotImplemented : ErrorCode::kInvalidInput,
                        parsed.status().message())
        .Early();
  }
  *filter = std::move(parsed).value();
  return std::nullopt;
}

std::optional<ServiceError> ReadTop(const QueryParameters& query, std::optional<uint32_t>* top) {
  std::optional<std::string_view> text = query.Find("$top");
  if (!text) return std::nullopt;
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size() || value > kPageEntitiesMax) {
    return ServiceError(ErrorCode::kInvalidInput).Early();
  }
  *top = value;
  return std::nullopt;
}

Task<Answer> AnswerQueryEntities(Exchange& exchange) {
  const ServiceRequest& request = exchange.request;
  EntityQuery entity_query;
  Answer refused = PrepareQuery(exchange, &entity_query);
  if (refused) co_return refused;

  HttpResponse* response = exchange.response;
  const AsyncTable& table = *entity_query.table;
  const EntityFormat format(EntityFormat::Shape::kList, request.level, request.resource.base,
                            request.resource.account, table.name(), entity_query.selection);
  format.AppendListStart(&response->body);
  std::atomic<size_t>& usual_text = exchange.core.usual_page_bytes;
  const size_t usual = usual_text.load(std::memory_order_relaxed);
  JsonSink sink(format, request.http.buffers, usual, response);
  const QueryPlan plan = PlanQuery(entity_query.query.filter, entity_query.query.range);
  Result<QueryPage> page = co_await RunPlannedQuery(table, plan, entity_query.query, &sink);
  if (!page.ok()) co_return ErrorOfQuery(page.status());
  exchange.core.counters.CountScanned(page->scanned);
  if (!sink.status().ok()) co_return ErrorOfQuery(sink.status());
  AppendListEnd(&response->body);
  sink.GiveBackRest();
  const size_t size = response->body.size();
  const size_t alike = std::min(size + size / 8, kUsualTextMax);  // With room for a last row that is larger.
  if (size > kUncountedText && alike != usual) usual_text.store(alike, std::memory_order_relaxed);

  response->status = 200;
  response->headers.append(kDataLines);
  AppendJsonContentType(request.level, &response->headers);
  if (page->next) {
    AppendHeader(&response->headers, "x-ms-continuation-NextPartitionKey",
                 EncodeKeyToken(page->next->partition_key));
    AppendHeader(&response->headers, "x-ms-continuation-NextRowKey", EncodeKeyToken(page->next->row_key));
  }
  if (AsksForExplanation(request.http)) AppendExplanation(plan, *page, &response->headers);
  co_return std::nullopt;
}

}  // namespace partita::http
