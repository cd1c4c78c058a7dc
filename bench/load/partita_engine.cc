#include "bench/load/partita_engine.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "api/partita.h"
#include "engine/world.h"

namespace partita::bench {
namespace {

constexpr std::string_view kTableName = "BenchTable";
constexpr std::string_view kEntityTableName = "BenchEntities";

Durability ToDurability(DurabilityLevel level) {
  switch (level) {
    case DurabilityLevel::kPower:
      return Durability::kPower;
    case DurabilityLevel::kProcess:
      return Durability::kProcess;
    case DurabilityLevel::kMemory:
      return Durability::kMemory;
  }
  return Durability::kPower;
}

class PartitaEngine final : public Engine {
 public:
  PartitaEngine(std::unique_ptr<Database> database, RawTable table, TableOptions entity_options)
      : database_(std::move(database)),
        table_(std::move(table)),
        entity_options_(std::move(entity_options)) {}

  Status Put(const RowKeys& keys, std::string_view value, DurabilityLevel level) override {
    return table_.Put(keys.partition(), keys.row(), value, {.durability = ToDurability(level)}).status;
  }

  Status PutAtomically(std::span<const Row> rows, DurabilityLevel level) override {
    std::vector<RawTable::Operation> operations;
    operations.reserve(rows.size());
    for (const Row& row : rows) {
      operations.push_back({.partition_key = std::string(row.keys.partition()),
                            .row_key = std::string(row.keys.row()),
                            .value = row.value});
    }
    return table_.Apply(operations, {.durability = ToDurability(level)}).status;
  }

  Status DeleteAtomically(std::span<const RowKeys> rows, DurabilityLevel level) override {
    std::vector<RawTable::Operation> operations;
    operations.reserve(rows.size());
    for (const RowKeys& keys : rows) {
      operations.push_back({.remove = true,
                            .partition_key = std::string(keys.partition()),
                            .row_key = std::string(keys.row()),
                            .value = {}});
    }
    return table_.Apply(operations, {.durability = ToDurability(level)}).status;
  }

  // Conditions are the table model's: an entity table beside the raw one, the value in one property.
  Status ReplaceAtomically(std::span<const Row> rows, DurabilityLevel level) override {
    return Transact(WriteAction::kReplace, rows, level);
  }

  Status InsertForReplacing(std::span<const Row> rows) override {
    if (!entities_.has_value()) {
      Result<Table> table = database_->OpenTable(kEntityTableName);
      if (table.code() == Code::kNotFound) table = database_->CreateTable(kEntityTableName, entity_options_);
      if (!table.ok()) return table.status();
      entities_.emplace(std::move(*table));
    }
    return Transact(WriteAction::kInsertOrReplace, rows, DurabilityLevel::kProcess);
  }

  Status Drop() override { return database_->DeleteTable(kTableName); }

  Status Get(const RowKeys& keys, std::string* value) override {
    return table_.Get(keys.partition(), keys.row(), value);
  }

  // From the middle of a partition to its end, then from the next partition on, in pages.
  Status Scan(const RowKeys& from, uint64_t limit, const RowVisitor& visit) override {
    ScanOptions options;
    options.partition = std::string(from.partition());
    options.row_lower = std::string(from.row());
    uint64_t visited = 0;
    bool go_on = true;
    PARTITA_TRY(ScanRange(options, limit, visit, &visited, &go_on));
    if (!go_on || visited == limit) return Status();
    ScanOptions rest;
    rest.partition_lower = std::string(from.partition()) + '\x01';
    return ScanRange(rest, limit, visit, &visited, &go_on);
  }

  bool has_async() const override { return true; }

  void PutAsync(const RowKeys& keys, std::string value, DurabilityLevel level,
                std::function<void(Status)> done) override {
    std::vector<RawTable::Operation> operations(1);
    operations[0].partition_key = std::string(keys.partition());
    operations[0].row_key = std::string(keys.row());
    operations[0].value = std::move(value);
    table_.ApplyAsync(std::move(operations), {.durability = ToDurability(level)},
                      [done = std::move(done)](const WriteResult& result) { done(result.status); });
  }

  void GetAsync(const RowKeys& keys, std::function<void(Result<std::string>)> done) override {
    table_.GetAsync(std::string(keys.partition()), std::string(keys.row()), std::move(done));
  }

  Status Settle() override { return database_->CompactAll(); }

  Status Close() override { return database_->Close(); }

 private:
  Status Transact(WriteAction action, std::span<const Row> rows, DurabilityLevel level) {
    std::vector<Write> writes;
    writes.reserve(rows.size());
    for (const Row& row : rows) {
      Entity entity(std::string(row.keys.partition()), std::string(row.keys.row()));
      entity.Set("Value", Binary{.bytes = row.value});
      writes.push_back({.action = action, .entity = std::move(entity), .if_match = {}});
    }
    return entities_->Transact(writes, {.durability = ToDurability(level)}).status;
  }

  Status ScanRange(ScanOptions options, uint64_t limit, const RowVisitor& visit, uint64_t* visited,
                   bool* go_on) {
    constexpr uint64_t kRowsAtOnce = 1000;
    const uint64_t end = limit - *visited;
    options.limit = static_cast<uint32_t>(std::min(kRowsAtOnce, end));
    uint64_t seen = 0;
    const auto show = [&](const RawRowView& row) {
      *go_on = visit(row.row_key, row.value);
      return ++seen < end && *go_on;
    };
    Result<QueryCost> cost = table_.ForEach(options, show);
    *visited += seen;
    return cost.status();
  }

  std::unique_ptr<Database> database_;
  RawTable table_;
  TableOptions entity_options_;
  std::optional<Table> entities_;  // From the first InsertForReplacing on.
};

// Cuts the table into one range a shard, each with as many partitions.
TableOptions CutForShards(uint64_t partition_count, uint64_t shards, DurabilityLevel level) {
  TableOptions options;
  options.durability = ToDurability(level);
  for (uint64_t cut = 1; cut < shards; ++cut) {
    const uint64_t partition = partition_count * cut / shards;
    const std::string key(KeysOf(partition * kRowsPerPartition).partition());
    if (options.split_partition_keys.empty() || options.split_partition_keys.back() < key) {
      options.split_partition_keys.push_back(key);
    }
  }
  return options;
}

}  // namespace

Result<std::unique_ptr<Engine>> OpenPartita(const EngineConfig& config) {
  Options options;
  options.directory = config.directory;
  options.create_if_missing = true;
  options.memory_bytes = config.memory_bytes;
  options.shards = ShardsByCores(config.memory_bytes);  // As the store would have by itself: --cores counts.
  PARTITA_ASSIGN(std::unique_ptr<Database> database, Database::Open(options));
  const auto cut = [&](uint64_t partitions) {
    return CutForShards(partitions, options.shards, config.durability);
  };
  Result<RawTable> table = database->OpenRawTable(kTableName);
  if (table.code() == Code::kNotFound)
    table = database->CreateRawTable(kTableName, cut(config.partition_count));
  if (!table.ok()) return table.status();
  return std::unique_ptr<Engine>(std::make_unique<PartitaEngine>(
      std::move(database), std::move(*table), cut(std::min(config.partition_count, kReplacedPartitionsMax))));
}

}  // namespace partita::bench
