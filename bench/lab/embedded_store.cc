#include "bench/lab/embedded_store.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "api/entity_codec.h"
#include "api/limits.h"
#include "api/query.h"
#include "bench/lab/durable_file.h"

namespace partita::lab {
namespace {

// Keeps what a page gives, with those properties that are wanted.
class AnswerSink final : public QueryRowSink {
 public:
  explicit AnswerSink(std::vector<std::string> select) : select_(std::move(select)) {
    std::sort(select_.begin(), select_.end());
  }
  bool Add(const QueryRow& row) override {
    Result<Entity> entity = DecodeSelected(row.partition_key, row.row_key, row.version, row.content, select_);
    if (!entity.ok()) {
      status_ = entity.status();
      return false;
    }
    answer_.bytes += EntitySizeBytes(*entity);
    answer_.entities.push_back(*std::move(entity));
    return true;
  }
  const Status& status() const { return status_; }
  TableStore::Answer answer() && { return std::move(answer_); }

 private:
  std::vector<std::string> select_;
  TableStore::Answer answer_;
  Status status_;
};

}  // namespace

Result<std::unique_ptr<EmbeddedStore>> EmbeddedStore::Open(const std::string& directory,
                                                           const Experiment& experiment,
                                                           IoBackend io_backend) {
  PARTITA_TRY(MakeNewDirectory(directory));
  Options options;
  options.directory = directory;
  options.create_if_missing = true;
  options.memory_bytes = experiment.memory_bytes;
  options.shards = experiment.shards;
  options.durability = static_cast<Durability>(experiment.durability);
  options.allow_volatile_storage = options.durability != Durability::kPower;
  options.io_backend = io_backend;
  // From here on the directory is this store's, and goes with it.
  std::unique_ptr<EmbeddedStore> store(new EmbeddedStore(directory));
  PARTITA_ASSIGN(store->database_, Database::Open(options));
  return store;
}

EmbeddedStore::~EmbeddedStore() {
  if (database_ != nullptr) (void)database_->Close();
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

Status EmbeddedStore::MakeTable(const std::string& name, const std::vector<std::string>& splits) {
  TableOptions options;
  options.split_partition_keys = splits;
  PARTITA_ASSIGN(Table table, database_->CreateTable(name, options));
  tables_.emplace(name, std::move(table));
  PARTITA_ASSIGN(AsyncTable queried, AsyncDatabase(*database_).FindTable(Options().account, name));
  queried_.emplace(name, std::move(queried));
  return Status();
}

Status EmbeddedStore::Load(const std::string& table, std::vector<Write> writes, const GoesOn&) {
  for (const WriteResult& result : tables_.at(table).WriteMany(writes, {.durability = Durability::kMemory})) {
    PARTITA_TRY(result.status);
  }
  return Status();
}

Status EmbeddedStore::Settle(const ThroughputTargets& limits, const GoesOn&) {
  // What is scanned later are entities, not older versions of them.
  PARTITA_TRY(database_->CompactAll());
  return database_->SetThroughputTargets(limits);
}

Result<Entity> EmbeddedStore::Get(const std::string& table, const std::string& partition_key,
                                  const std::string& row_key) {
  return tables_.at(table).Get(partition_key, row_key);
}

Result<Entity> EmbeddedStore::GetSelected(const std::string& table, const std::string& partition_key,
                                          const std::string& row_key,
                                          const std::vector<std::string>& select) {
  QueryOptions options;
  options.where = Filter::And(Filter::Comparison("PartitionKey", ComparisonOp::kEqual, partition_key),
                              Filter::Comparison("RowKey", ComparisonOp::kEqual, row_key));
  options.select = select;
  PARTITA_ASSIGN(Page page, tables_.at(table).Query(options));
  if (page.entities.empty()) return Status::NotFound("there is no such entity");
  return std::move(page.entities.front());
}

Result<TableStore::Answer> EmbeddedStore::Query(const std::string& table, const Question& question) {
  PARTITA_ASSIGN(const partita::QueryPlan plan, PlanAsTheServiceReads(question.filter));
  partita::Query query;
  query.use_zone_maps = false;  // What they spare reading counts with the service.
  if (question.top > 0)
    query.limits.rows = static_cast<uint32_t>(std::min<uint64_t>(question.top, kPageEntitiesMax));
  if (!question.continuation.empty()) query.from = PositionOf(question.continuation);
  AnswerSink sink(question.select);
  PARTITA_ASSIGN(
      QueryPage page,
      AsyncDatabase(*database_).runtime().RunToEnd(RunPlannedQuery(queried_.at(table), plan, query, &sink)));
  PARTITA_TRY(sink.status());
  Answer answer = std::move(sink).answer();
  answer.scanned = page.scanned;
  if (page.next) answer.continuation = BoundOf(*page.next);
  return answer;
}

Status EmbeddedStore::Transact(const std::string& table, const std::vector<Write>& writes) {
  return tables_.at(table).Transact(writes).status;
}

}  // namespace partita::lab
