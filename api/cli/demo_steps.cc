#include <algorithm>
#include <chrono>

#include "api/cli/debian_index_check.h"
#include "api/cli/demo.h"
#include "api/cli/figures.h"

// The demo's reads and writes, each with the answer that is right.

namespace partita {

namespace {

constexpr size_t kPointReads = 20'000;
constexpr size_t kPointsCompared = 500;
constexpr size_t kTransactionSize = 100;
constexpr int64_t kLargePackage = 1'000'000;  // Bytes.
constexpr const char* kMark = "Demo_mark";

Status Wrong(const std::string& what) { return Status::Corruption("wrong answer: " + what); }

std::string KeyOf(const Entity& entity) { return entity.partition_key() + "|" + entity.row_key(); }

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Ok when the operation was refused with this code.
Status ExpectRefusal(const Status& status, Code code, const std::string& what) {
  if (status.code() == code) return Status();
  return Wrong(what + " should be refused with " + std::string(CodeName(code)) +
               ", but: " + status.ToString());
}

std::vector<Write> Merges(const std::vector<Entity>& entities, const std::string& mark) {
  std::vector<Write> writes;
  for (const Entity& entity : entities) {
    Entity patch(entity.partition_key(), entity.row_key());
    patch.Set(kMark, mark);
    writes.push_back({WriteAction::kMerge, std::move(patch), entity.etag()});
  }
  return writes;
}

}  // namespace

Result<std::vector<Entity>> Demo::ScanAll(ScanOptions options) const {
  std::vector<Entity> all;
  do {
    PARTITA_ASSIGN(Page page, table_->Scan(options));
    std::move(page.entities.begin(), page.entities.end(), std::back_inserter(all));
    options.continuation = page.continuation;
  } while (!options.continuation.empty());
  return all;
}

Status Demo::ExpectRows(const std::vector<Entity>& found, const std::vector<std::string>& rows) const {
  if (found.size() != rows.size()) {
    return Wrong(std::to_string(found.size()) + " entities, expected " + std::to_string(rows.size()));
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    if (found[i].partition_key() != partition_ || found[i].row_key() != rows[i]) {
      return Wrong("entity " + std::to_string(i) + " is '" + KeyOf(found[i]) + "', expected '" + partition_ +
                   "|" + rows[i] + "'");
    }
    const std::string difference =
        CompareWithStanza(found[i], expected_.stanzas().at(partition_ + "|" + rows[i]));
    if (!difference.empty()) return Wrong(KeyOf(found[i]) + ": " + difference);
  }
  return Status();
}

Result<std::string> Demo::ReadPoints() {
  std::vector<std::pair<std::string, std::string>> keys;
  for (const auto& [key, stanza] : expected_.stanzas()) {
    const size_t bar = key.find('|');
    keys.emplace_back(key.substr(0, bar), key.substr(bar + 1));
  }
  std::shuffle(keys.begin(), keys.end(), random_);
  keys.resize(std::min(keys.size(), kPointReads));
  for (size_t i = 0; i < std::min(keys.size(), kPointsCompared); ++i) {
    PARTITA_ASSIGN(Entity entity, table_->Get(keys[i].first, keys[i].second));
    const std::string difference = CompareWithStanza(entity, expected_.stanzas().at(KeyOf(entity)));
    if (!difference.empty()) return Wrong(KeyOf(entity) + ": " + difference);
  }
  PARTITA_TRY(
      ExpectRefusal(table_->Get(partition_, "no such package").status(), Code::kNotFound, "a missing row"));
  const auto started = std::chrono::steady_clock::now();
  std::string record;
  uint64_t timestamp = 0;
  for (const auto& [partition_key, row_key] : keys) {
    PARTITA_TRY(table_->GetRecord(partition_key, row_key, &record, &timestamp));
  }
  const double seconds = SecondsSince(started);
  return FormatCount(keys.size()) + " random keys from one thread, " +
         FormatRate(static_cast<double>(keys.size()), seconds, "reads") + "; " +
         FormatCount(std::min(keys.size(), kPointsCompared)) + " compared";
}

Result<std::string> Demo::ReadRowRange() {
  std::vector<std::string> rows = expected_.RowsOf(partition_);
  if (rows.size() < 4)
    return Wrong("partition '" + partition_ + "' has only " + std::to_string(rows.size()) + " rows");
  ScanOptions options;
  options.partition = partition_;
  options.row_lower = rows[rows.size() / 4];
  options.row_upper = rows[rows.size() / 2];
  rows = {rows.begin() + static_cast<ptrdiff_t>(rows.size() / 4),
          rows.begin() + static_cast<ptrdiff_t>(rows.size() / 2)};
  PARTITA_ASSIGN(std::vector<Entity> forward, ScanAll(options));
  PARTITA_TRY(ExpectRows(forward, rows));
  options.order = ScanOrder::kDescending;
  PARTITA_ASSIGN(std::vector<Entity> backward, ScanAll(options));
  std::reverse(rows.begin(), rows.end());
  PARTITA_TRY(ExpectRows(backward, rows));
  return FormatCount(rows.size()) + " rows of '" + partition_ + "' from '" + *options.row_lower + "' to '" +
         *options.row_upper + "'";
}

Result<std::string> Demo::ReadPartition() {
  ScanOptions options;
  options.partition = partition_;
  const auto started = std::chrono::steady_clock::now();
  PARTITA_ASSIGN(std::vector<Entity> found, ScanAll(options));
  const double seconds = SecondsSince(started);
  PARTITA_TRY(ExpectRows(found, expected_.RowsOf(partition_)));
  return FormatCount(found.size()) + " entities of '" + partition_ + "', read with " +
         FormatRate(static_cast<double>(found.size()), seconds, "entities") + ", all right";
}

Result<std::string> Demo::Count() {
  PARTITA_ASSIGN(uint64_t count, table_->Count({}));
  if (count != expected_.stanzas().size()) {
    return Wrong(FormatCount(count) + " entities, expected " + FormatCount(expected_.stanzas().size()));
  }
  return FormatCount(count) + " entities, as many as were imported";
}

Result<std::string> Demo::FilterByProperties() {
  uint64_t expected = 0;
  for (const auto& [key, stanza] : expected_.stanzas()) {
    const std::map<std::string, std::string> properties = ExpectedDebianProperties(stanza);
    const auto size = properties.find("Size");
    const auto architecture = properties.find("Architecture");
    if (size == properties.end() || architecture == properties.end()) continue;
    const bool large = size->second.starts_with("n:") && std::stoll(size->second.substr(2)) > kLargePackage;
    if (large && architecture->second == "s:all") ++expected;
  }
  QueryOptions options;
  options.filter = "Architecture eq 'all' and Size gt " + std::to_string(kLargePackage) + "L";
  options.select = {"Package", "Size", "Architecture"};
  PARTITA_ASSIGN(const Explanation plan, table_->Explain(options));
  if (plan.kind != "table-scan") return Wrong("the plan is '" + plan.kind + "', expected 'table-scan'");
  uint64_t found = 0;
  bool right = true;
  PARTITA_ASSIGN(const QueryCost cost, table_->ForEach(options, [&](const Entity& entity) {
    const int64_t* size = entity.GetInt64("Size");
    ++found;
    right =
        right && entity.property_count() == options.select.size() && size != nullptr && *size > kLargePackage;
    return true;
  }));
  PARTITA_ASSIGN(const AggregateAnswer totals,
                 table_->Aggregate({{AggregateKind::kMax, "Size"}, {AggregateKind::kSum, "Size"}}, options));
  if (!right || found != expected || totals.count != expected) {
    return Wrong(FormatCount(found) + " found and " + FormatCount(totals.count) + " counted, expected " +
                 FormatCount(expected));
  }
  return "'" + options.filter + "': " + plan.kind + ", " + FormatCount(cost.scanned) + " looked at, " +
         FormatCount(found) + " found, as expected";
}

Result<std::string> Demo::UpdateByEtag() {
  const std::vector<std::string> rows = expected_.RowsOf(partition_);
  const std::string row = rows[rows.size() / 3];
  PARTITA_ASSIGN(const Entity original, table_->Get(partition_, row));
  Entity changed = original;
  changed.Set("Description", "changed by the demo");
  const WriteResult first = table_->Replace(changed, original.etag());
  PARTITA_TRY(first.status);
  const WriteResult stale = table_->Replace(changed, original.etag());
  PARTITA_TRY(ExpectRefusal(stale.status, Code::kPreconditionFailed, "an update with a stale ETag"));
  PARTITA_ASSIGN(Entity read, table_->Get(partition_, row));
  if (!(read == changed) || read.etag() != first.etag) return Wrong("the update is not what a read shows");
  const WriteResult restored = table_->Replace(original, first.etag);
  PARTITA_TRY(restored.status);
  PARTITA_ASSIGN(Entity again, table_->Get(partition_, row));
  if (!(again == original)) return Wrong("the restored entity differs from the original");
  return "'" + row + "' updated, the stale ETag refused, restored with the right one";
}

Result<std::vector<Entity>> Demo::HundredEntities() const {
  ScanOptions options;
  options.partition = partition_;
  options.limit = kTransactionSize;
  options.bytes_limit = 64u << 20;
  PARTITA_ASSIGN(Page page, table_->Scan(options));
  if (page.entities.size() != kTransactionSize) {
    return Wrong("a page of " + std::to_string(page.entities.size()) + " entities, expected 100");
  }
  return std::move(page.entities);
}

Result<std::string> Demo::Transact() {
  PARTITA_ASSIGN(std::vector<Entity> before, HundredEntities());
  const auto started = std::chrono::steady_clock::now();
  const WriteResult marked = table_->Transact(Merges(before, "all or nothing"));
  const double seconds = SecondsSince(started);
  PARTITA_TRY(marked.status);
  PARTITA_ASSIGN(std::vector<Entity> during, HundredEntities());
  std::vector<Write> restoring;
  for (size_t i = 0; i < before.size(); ++i) {
    Entity wanted = before[i];
    wanted.Set(kMark, "all or nothing");
    if (!(during[i] == wanted) || during[i].etag() != marked.etag) {
      return Wrong("'" + KeyOf(before[i]) + "' is not as the transaction left it");
    }
    restoring.push_back({WriteAction::kReplace, before[i], marked.etag});
  }
  PARTITA_TRY(table_->Transact(restoring).status);
  PARTITA_ASSIGN(std::vector<Entity> after, HundredEntities());
  if (after != before) return Wrong("restoring the 100 entities did not give them back");
  return "100 entities of '" + partition_ + "' merged under one ETag in " + FormatSeconds(seconds) +
         ", restored";
}

Result<std::string> Demo::RefuseTransaction() {
  PARTITA_ASSIGN(std::vector<Entity> before, HundredEntities());
  std::vector<Write> writes = Merges(before, "must not be seen");
  writes.back().if_match = "W/\"datetime'2001-01-01T00%3A00%3A00Z'\"";
  const WriteResult refused = table_->Transact(writes);
  PARTITA_TRY(
      ExpectRefusal(refused.status, Code::kPreconditionFailed, "a transaction with a failing condition"));
  if (refused.failed_operation != kTransactionSize - 1) {
    return Wrong("operation " + std::to_string(refused.failed_operation) + " is named, expected 99");
  }
  PARTITA_ASSIGN(std::vector<Entity> after, HundredEntities());
  for (size_t i = 0; i < before.size(); ++i) {
    if (!(after[i] == before[i]) || after[i].etag() != before[i].etag()) {
      return Wrong("'" + KeyOf(before[i]) + "' was changed by a refused transaction");
    }
  }
  return std::string("operation 99 had a stale ETag: refused, and none of the 100 entities changed");
}

Result<std::string> Demo::CompareAll() {
  std::map<std::string, std::string_view> missing = expected_.stanzas();
  uint64_t properties = 0;
  ScanOptions options;
  do {
    PARTITA_ASSIGN(Page page, table_->Scan(options));
    for (const Entity& entity : page.entities) {
      const auto stanza = missing.find(KeyOf(entity));
      if (stanza == missing.end()) return Wrong("'" + KeyOf(entity) + "' is not in the index, or came twice");
      const std::string difference = CompareWithStanza(entity, stanza->second);
      if (!difference.empty()) return Wrong("'" + KeyOf(entity) + "': " + difference);
      properties += entity.property_count();
      missing.erase(stanza);
    }
    options.continuation = page.continuation;
  } while (!options.continuation.empty());
  if (!missing.empty()) {
    return Wrong(FormatCount(missing.size()) + " entities are missing, the first is '" +
                 missing.begin()->first + "'");
  }
  return FormatCount(properties) + " properties of " + FormatCount(expected_.stanzas().size()) +
         " entities are what the index says; nothing missing, nothing extra";
}

}  // namespace partita
