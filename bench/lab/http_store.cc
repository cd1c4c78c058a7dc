#include "bench/lab/http_store.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <random>
#include <set>
#include <thread>

#include "api/date_time.h"
#include "api/http/admin_client.h"
#include "api/http/http_date.h"
#include "api/http/json_text.h"
#include "api/limits.h"
#include "bench/lab/entity_json.h"
#include "bench/lab/server_text.h"
#include "engine/io/system_clock.h"

namespace partita::lab {
namespace {

constexpr const char* kVersion = "2019-02-02";
// Behind the name of each table that a run makes, with 16 hexadecimal digits: nobody else's names end so.
constexpr std::string_view kTableMark = "partitalab";
constexpr size_t kRandomWordSize = kTableMark.size() + 16;
constexpr int kLoadTriesMax = 200;
constexpr std::chrono::milliseconds kLoadPause{100};
constexpr int kDeleteTriesMax = 4;
constexpr std::chrono::milliseconds kDeletePauseMin{200}, kDeletePauseMax{2'000};
constexpr std::chrono::seconds kDeletePatience{10};
constexpr int kMakeTriesMax = 8;
// In which the buckets of partita serve fill up (engine/token_bucket.h), and a little more.
constexpr std::chrono::milliseconds kBucketsFill{2'100};
constexpr uint64_t kLoadBytesMax = 2u << 20;  // JSON is longer than what is stored, and 4 MiB is the limit.

std::string EntityResource(const std::string& table, const std::string& partition_key,
                           const std::string& row_key) {
  std::string resource = table + "(PartitionKey='";
  http::AppendUrlKey(&resource, partition_key);
  resource += "',RowKey='";
  http::AppendUrlKey(&resource, row_key);
  return resource + "')";
}

// Empty where all properties are wanted.
std::string SelectParameter(const std::vector<std::string>& select) {
  std::string names;
  for (const std::string& name : select) names += (names.empty() ? "" : ",") + name;
  return names.empty() ? "" : "$select=" + http::EncodeParameter(names);
}

// The wait of an answer that refuses: milliseconds where they are told, else seconds; a date, which the
// service does not send, is a second.
uint64_t WaitOf(const HttpAnswer& answer) {
  const bool is_exact = !answer.retry_after_ms.empty();
  const std::string& text = is_exact ? answer.retry_after_ms : answer.retry_after;
  double wait = is_exact ? 1'000 : 1;
  std::from_chars(text.data(), text.data() + text.size(), wait);
  return static_cast<uint64_t>(std::clamp(is_exact ? wait * 1e-3 : wait, 0.0, 60.0) * 1e6);
}

// The value of a header in the text of an answer's part; empty: it has none.
std::string HeaderIn(std::string_view part, std::string_view name) {
  part = part.substr(0, part.find("\r\n\r\n"));
  const auto alike = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
  };
  const std::string wanted = "\r\n" + std::string(name) + ":";
  const auto found = std::search(part.begin(), part.end(), wanted.begin(), wanted.end(), alike);
  if (found == part.end()) return "";
  std::string_view value = part.substr(static_cast<size_t>(found - part.begin()) + wanted.size());
  value = value.substr(0, value.find("\r\n"));
  value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
  return std::string(value);
}

// A part that is refused tells its wait itself.
HttpAnswer WithPartsWait(const HttpAnswer& answer, std::string_view part) {
  HttpAnswer told{.retry_after = answer.retry_after, .retry_after_ms = answer.retry_after_ms};
  const std::string seconds = HeaderIn(part, "Retry-After"), millis = HeaderIn(part, "x-ms-retry-after-ms");
  if (!seconds.empty()) told.retry_after = seconds;
  if (!millis.empty()) told.retry_after_ms = millis;
  return told;
}

// `status` and `text` are those of an answer or of a part of one. 503 is how the service throttles, 429 how
// others do.
Status StatusOf(int status, std::string_view text, uint64_t wait_us, const std::string& sas) {
  if (status >= 200 && status < 300) return Status();
  const std::string said = "the service answered " + std::to_string(status) + ": " + ServerText(text, sas);
  if (status == 503 || status == 429) return Status::Throttled(said, wait_us);
  // An entity that is not there is an answer; a table that is gone is not.
  if (status == 404 && text.find("TableNotFound") == text.npos) return Status::NotFound(said);
  if (status == 409) return Status::AlreadyExists(said);
  if (status == 412) return Status::PreconditionFailed(said);
  return Status::InvalidArgument(said);
}

// Nothing: the service does not say, as all do but ours.
std::optional<uint64_t> ScannedOf(const std::string& cost) {
  const std::string_view name = "scanned=";
  const size_t at = cost.find(name);
  if (at == std::string::npos) return std::nullopt;
  uint64_t scanned = 0;
  const char* digits = cost.data() + at + name.size();
  const auto read = std::from_chars(digits, cost.data() + cost.size(), scanned);
  return read.ec == std::errc() ? std::optional(scanned) : std::nullopt;
}

std::string RandomWord() {
  std::random_device source;
  char digits[24];
  std::snprintf(digits, sizeof(digits), "%08x%08x", source(), source());
  return std::string(kTableMark) + digits;
}

// What a batch may hold.
class LoadBatch {
 public:
  bool Takes(const Write& write) const {
    return writes.empty() || (writes.size() < kTransactionOperationsMax &&
                              bytes_ + EntitySizeBytes(write.entity) <= kLoadBytesMax &&
                              !rows_.contains(write.entity.row_key()));
  }
  void Add(Write write) {
    bytes_ += EntitySizeBytes(write.entity);
    rows_.insert(write.entity.row_key());
    writes.push_back(std::move(write));
  }
  std::vector<Write> writes;

 private:
  uint64_t bytes_ = 0;
  std::set<std::string> rows_;
};

}  // namespace

bool IsLabTable(const std::string& name) {
  if (name.size() <= kRandomWordSize) return false;
  const std::string_view word = std::string_view(name).substr(name.size() - kRandomWordSize);
  return word.starts_with(kTableMark) &&
         word.substr(kTableMark.size()).find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

Status CheckRemoteTable(const std::string& name) {
  if (name.size() + kRandomWordSize <= kTableNameSizeMax) return Status();
  return Status::InvalidArgument(
      "table " + name + ": a service takes names of 63 characters, and " + std::to_string(kRandomWordSize) +
      " are added for each run: " + std::to_string(kTableNameSizeMax - kRandomWordSize) + " are left");
}

Result<std::unique_ptr<HttpStore>> HttpStore::Make(const Connection& connection,
                                                   const std::vector<Field>& fields,
                                                   std::function<void(const std::string&)> warn,
                                                   UnfinishedRun* unfinished) {
  std::unique_ptr<HttpStore> store(new HttpStore(connection, fields, std::move(warn), unfinished));
  if (!connection.key_base64.empty()) {
    PARTITA_ASSIGN(store->key_, http::SigningKey::FromBase64(connection.key_base64));
  }
  return store;
}

HttpStore::~HttpStore() {
  for (const auto& [name, there] : names_) {
    const Status deleted = DeleteTable(there);
    if (deleted.ok()) {
      if (unfinished_ != nullptr) unfinished_->TableIsGone({connection_.Endpoint(), there});
      continue;
    }
    warn_("table " + there + " of " + connection_.Endpoint() +
          " could not be deleted and is left behind: " + deleted.ToString());
  }
}

Status HttpStore::DeleteTable(const std::string& there) {
  const auto started = std::chrono::steady_clock::now();
  for (int attempt = 1;; ++attempt) {
    const Result<HttpAnswer> answer = Ask(
        {.method = "DELETE", .resource = "Tables('" + there + "')", .query = {}, .body = {}, .headers = {}});
    Status status = answer.status();
    if (answer.ok()) status = StatusOf(answer->status, answer->body, WaitOf(*answer), connection_.sas);
    if (status.ok() || status.code() == Code::kNotFound || (answer.ok() && answer->status == 404)) {
      return Status();
    }
    const bool may_pass = !answer.ok() || answer->status >= 500 || status.code() == Code::kThrottled;
    if (!may_pass || attempt == kDeleteTriesMax ||
        std::chrono::steady_clock::now() - started > kDeletePatience) {
      return status;
    }
    std::this_thread::sleep_for(std::clamp<std::chrono::microseconds>(
        std::chrono::microseconds(status.retry_after_us()), kDeletePauseMin, kDeletePauseMax));
  }
}

// SharedKey of the table service: verb, MD5, type, date, and the path behind the account; no query counts.
std::string HttpStore::Signature(const Request& request, const std::string& date) const {
  const std::string type = request.body.empty() ? "" : request.content_type;
  return key_->Sign(request.method + "\n\n" + type + "\n" + date + "\n/" + connection_.account +
                    UrlOf(request));
}

std::string HttpStore::TextOf(const Request& request) const {
  std::string query = request.query;
  if (!connection_.sas.empty()) query += (query.empty() ? "" : "&") + connection_.sas;
  std::string text = request.method + " " + UrlOf(request) + (query.empty() ? "" : "?" + query) +
                     " HTTP/1.1\r\nHost: " + connection_.Place() + "\r\nx-ms-version: " + kVersion +
                     "\r\nDataServiceVersion: 3.0\r\nAccept: application/json;odata=nometadata\r\n";
  const std::string date = http::FormatHttpDate(DateTime{SystemClock().WallTicks()});
  text += "x-ms-date: " + date + "\r\n";
  if (key_.has_value()) {
    text += "Authorization: SharedKey " + connection_.account + ":" + Signature(request, date) + "\r\n";
  }
  if (!request.body.empty()) text += "Content-Type: " + request.content_type + "\r\n";
  if (request.method != "GET") text += "Content-Length: " + std::to_string(request.body.size()) + "\r\n";
  return text + request.headers + "\r\n" + request.body;
}

Result<HttpAnswer> HttpStore::Ask(const Request& request) {
  std::unique_ptr<HttpLink> link;
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      link = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (link == nullptr) link = std::make_unique<HttpLink>(connection_);
  Result<HttpAnswer> answer = link->Ask(TextOf(request));
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(link));
  return answer;
}

Status HttpStore::MakeTable(const std::string& name, const std::vector<std::string>&) {
  const std::string there = name + RandomWord();
  // Known before it is asked for: where the answer is lost it may be there all the same.
  if (unfinished_ != nullptr) PARTITA_TRY(unfinished_->NoteTable({connection_.Endpoint(), there}));
  names_[name] = there;
  for (int attempt = 1;; ++attempt) {
    const Result<HttpAnswer> answer = Ask({.method = "POST",
                                           .resource = "Tables",
                                           .query = {},
                                           .body = "{\"TableName\":\"" + there + "\"}",
                                           .headers = "Prefer: return-no-content\r\n"});
    // Nobody else has its name: it is one that an earlier try made.
    if (answer.ok() && answer->status == 409 && attempt > 1) return Status();
    const Status status = answer.ok()
                              ? StatusOf(answer->status, answer->body, WaitOf(*answer), connection_.sas)
                              : answer.status();
    if (status.code() == Code::kThrottled && attempt < kMakeTriesMax) {
      std::this_thread::sleep_for(std::clamp<std::chrono::microseconds>(
          std::chrono::microseconds(status.retry_after_us()), kDeletePauseMin, kDeletePauseMax));
      continue;
    }
    const bool refused = answer.ok() && answer->status >= 400 && answer->status < 500;
    if (refused || answer.status().detail() == static_cast<uint16_t>(LinkTrouble::kNotConnected)) {
      names_.erase(name);
      if (unfinished_ != nullptr) unfinished_->TableIsGone({connection_.Endpoint(), there});
    }
    return status;
  }
}

Status HttpStore::Settle(const ThroughputTargets&, const GoesOn& goes_on) {
  if (!has_loaded_ || SlicedWait(kBucketsFill, goes_on)) return Status();
  return Status::Cancelled("stopped while loading");
}

Result<std::vector<std::string>> HttpStore::LabTables() {
  std::vector<std::string> tables;
  std::string query;
  do {
    PARTITA_ASSIGN(const HttpAnswer answer,
                   Ask({.method = "GET", .resource = "Tables", .query = query, .body = {}, .headers = {}}));
    PARTITA_TRY(StatusOf(answer.status, answer.body, WaitOf(answer), connection_.sas));
    PARTITA_ASSIGN(const std::vector<std::string> names, ReadTableNames(answer.body));
    std::copy_if(names.begin(), names.end(), std::back_inserter(tables), &IsLabTable);
    query = answer.continuation_table.empty()
                ? ""
                : "NextTableName=" + http::EncodeParameter(answer.continuation_table);
  } while (!query.empty());
  return tables;
}

Status HttpStore::Load(const std::string& table, std::vector<Write> writes, const GoesOn& goes_on) {
  has_loaded_ |= !writes.empty();
  const Status stopped = Status::Cancelled("stopped while loading");
  const auto send = [&](const std::vector<Write>& batch) -> Status {
    for (int attempt = 1;; ++attempt) {
      if (!goes_on()) return stopped;
      const Status status = Transact(table, batch);
      if (status.code() != Code::kThrottled || attempt == kLoadTriesMax) return status;
      const auto wait =
          std::max<std::chrono::microseconds>(kLoadPause, std::chrono::microseconds(status.retry_after_us()));
      if (!SlicedWait(wait, goes_on)) return stopped;
    }
  };
  std::map<std::string, LoadBatch> batches;
  for (Write& write : writes) {
    LoadBatch& batch = batches[write.entity.partition_key()];
    if (!batch.Takes(write)) {
      PARTITA_TRY(send(batch.writes));
      batch = {};
    }
    batch.Add(std::move(write));
  }
  for (const auto& [partition_key, batch] : batches) PARTITA_TRY(send(batch.writes));
  return Status();
}

Result<Entity> HttpStore::Get(const std::string& table, const std::string& partition_key,
                              const std::string& row_key) {
  return GetSelected(table, partition_key, row_key, {});
}

Result<Entity> HttpStore::GetSelected(const std::string& table, const std::string& partition_key,
                                      const std::string& row_key, const std::vector<std::string>& select) {
  PARTITA_ASSIGN(const HttpAnswer answer,
                 Ask({.method = "GET",
                      .resource = EntityResource(names_.at(table), partition_key, row_key),
                      .query = SelectParameter(select),
                      .body = {},
                      .headers = {}}));
  PARTITA_TRY(StatusOf(answer.status, answer.body, WaitOf(answer), connection_.sas));
  return ReadEntity(answer.body, fields_);
}

Result<TableStore::Answer> HttpStore::Query(const std::string& table, const Question& question) {
  const std::string filter = question.filter.whole();
  std::string query = filter.empty() ? "" : "$filter=" + http::EncodeParameter(filter);
  const auto add = [&](const std::string& parameter) { query += (query.empty() ? "" : "&") + parameter; };
  if (question.top > 0) add("$top=" + std::to_string(std::min<uint64_t>(question.top, kPageEntitiesMax)));
  if (!question.select.empty()) add(SelectParameter(question.select));
  if (!question.continuation.empty()) add(question.continuation);
  // Ours alone knows the last header; others ignore it.
  PARTITA_ASSIGN(const HttpAnswer answer, Ask({.method = "GET",
                                               .resource = names_.at(table) + "()",
                                               .query = query,
                                               .body = {},
                                               .headers = "x-partita-explain: true\r\n"}));
  PARTITA_TRY(StatusOf(answer.status, answer.body, WaitOf(answer), connection_.sas));
  Answer found;
  PARTITA_ASSIGN(found.entities, ReadEntities(answer.body, fields_, question.wants_properties));
  found.bytes = answer.body.size();
  found.scanned = ScannedOf(answer.cost);
  if (!answer.continuation_partition.empty()) {
    found.continuation = "NextPartitionKey=" + http::EncodeParameter(answer.continuation_partition);
    if (!answer.continuation_row.empty()) {
      found.continuation += "&NextRowKey=" + http::EncodeParameter(answer.continuation_row);
    }
  }
  return found;
}

HttpStore::Request HttpStore::RequestOf(const std::string& table, const Write& write) const {
  const std::string& there = names_.at(table);
  Request request{.method = "PUT",
                  .resource = EntityResource(there, write.entity.partition_key(), write.entity.row_key()),
                  .query = {},
                  .body = EntityJson(write.entity),
                  .headers = {}};
  switch (write.action) {
    case WriteAction::kInsert:
      request.method = "POST";
      request.resource = there;
      request.headers = "Prefer: return-no-content\r\n";
      break;
    case WriteAction::kMerge:
      request.headers = "If-Match: " + (write.if_match.empty() ? "*" : write.if_match) + "\r\n";
      [[fallthrough]];
    case WriteAction::kInsertOrMerge:
      request.method = "MERGE";
      break;
    case WriteAction::kDelete:
      request.method = "DELETE";
      request.body.clear();
      [[fallthrough]];
    case WriteAction::kReplace:
      request.headers = "If-Match: " + (write.if_match.empty() ? "*" : write.if_match) + "\r\n";
      break;
    default:
      break;
  }
  return request;
}

Status HttpStore::Transact(const std::string& table, const std::vector<Write>& writes) {
  if (writes.size() != 1) return Batch(table, writes);
  PARTITA_ASSIGN(const HttpAnswer answer, Ask(RequestOf(table, writes[0])));
  return StatusOf(answer.status, answer.body, WaitOf(answer), connection_.sas);
}

Status HttpStore::Batch(const std::string& table, const std::vector<Write>& writes) {
  std::string body = "--batch_lab\r\nContent-Type: multipart/mixed; boundary=changeset_lab\r\n\r\n";
  for (const Write& write : writes) {
    const Request request = RequestOf(table, write);
    body += "--changeset_lab\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n" +
            request.method + " " + connection_.Endpoint() + "/" + request.resource +
            " HTTP/1.1\r\nAccept: application/json;odata=nometadata\r\nDataServiceVersion: 3.0\r\n" +
            request.headers;
    if (!request.body.empty()) {
      body +=
          "Content-Type: application/json\r\nContent-Length: " + std::to_string(request.body.size()) + "\r\n";
    }
    body += "\r\n" + request.body + "\r\n";
  }
  body += "--changeset_lab--\r\n--batch_lab--\r\n";
  PARTITA_ASSIGN(const HttpAnswer answer, Ask({.method = "POST",
                                               .resource = "$batch",
                                               .query = {},
                                               .body = std::move(body),
                                               .content_type = "multipart/mixed; boundary=batch_lab",
                                               .headers = {}}));
  PARTITA_TRY(StatusOf(answer.status, answer.body, WaitOf(answer), connection_.sas));
  // All of its parts succeeded, or one alone stands there and tells why none was done.
  const std::string_view line = "HTTP/1.1 ";
  const size_t at = answer.body.find(line);
  if (at == std::string::npos) return Status::IoError("the answer to a batch holds no answer");
  int status = 0;
  const char* digits = answer.body.data() + at + line.size();
  std::from_chars(digits, answer.body.data() + answer.body.size(), status);
  const std::string_view part = std::string_view(answer.body).substr(at);
  return StatusOf(status, part, WaitOf(WithPartsWait(answer, part)), connection_.sas);
}

}  // namespace partita::lab
