#include "bench/lab/ordered_table_store.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <optional>

#include "api/compiled_filter.h"
#include "api/entity_codec.h"
#include "api/limits.h"
#include "api/query_plan.h"
#include "bench/lab/durable_file.h"
#include "bench/lab/engine_module.h"
#include "engine/base/checksum.h"
#include "engine/base/coding.h"
#include "engine/base/user_key.h"
#include "engine/io/system_clock.h"

namespace partita::lab {
namespace {

constexpr size_t kTimeSize = 8;

Status FromEngine(const std::string& error) { return error.empty() ? Status() : Status::IoError(error); }

// Never the same twice: what a write is told apart by.
uint64_t NextTicks() {
  static std::atomic<uint64_t> last{0};
  const uint64_t now = SystemClock().WallTicks();
  uint64_t before = last.load(std::memory_order_relaxed), next = 0;
  do {
    next = std::max(now, before + 1);
  } while (!last.compare_exchange_weak(before, next, std::memory_order_relaxed));
  return next;
}

std::string ValueOf(const Entity& entity) {
  std::string value;
  AppendLe64(&value, NextTicks());
  AppendEntityContent(&value, entity);
  return value;
}

Result<Entity> EntityOf(std::string_view key, std::string_view value) {
  if (value.size() < kTimeSize) return Status::Corruption("a row is shorter than its time");
  return DecodeEntity(key, Version(LoadLe64(value.data())), value.substr(kTimeSize));
}

}  // namespace

// A page of an answer while it fills.
struct OrderedTableStore::Page {
  CompiledFilter filter;
  std::vector<std::string> select;  // Sorted.
  size_t entities_max = 0;
  uint64_t scanned = 0;
  Answer answer;
  Status status;

  // Takes a row; false: the page is full, or something is wrong.
  bool Add(std::string_view key, std::string_view value) {
    if (answer.entities.size() == entities_max) {
      answer.continuation = std::string(key);
      return false;
    }
    ++scanned;
    const Result<UserKeyParts> parts = DecodeUserKey(key);
    if (!parts.ok() || value.size() < kTimeSize) {
      status = Status::Corruption("a row is no entity");
      return false;
    }
    const Version version(LoadLe64(value.data()));
    const std::string_view content = value.substr(kTimeSize);
    if (!filter.Matches(*parts, version, content)) return true;
    Result<Entity> entity = DecodeSelected(parts->partition_key, parts->row_key, version, content, select);
    if (!entity.ok()) {
      status = entity.status();
      return false;
    }
    answer.bytes += EntitySizeBytes(*entity);
    answer.entities.push_back(std::move(*entity));
    return true;
  }
};

Result<std::unique_ptr<OrderedTableStore>> OrderedTableStore::Open(const std::string& engine,
                                                                   const std::string& directory,
                                                                   const Experiment& experiment) {
  PARTITA_TRY(MakeNewDirectory(directory));
  std::unique_ptr<OrderedTableStore> store(new OrderedTableStore(directory));
  using Level = OrderedStoreConfig::Durability;
  const auto durability = static_cast<Durability>(experiment.durability);
  const OrderedStoreConfig config{.directory = directory,
                                  .memory_bytes = experiment.memory_bytes,
                                  .durability = durability == Durability::kPower     ? Level::kPower
                                                : durability == Durability::kProcess ? Level::kProcess
                                                                                     : Level::kMemory};
  PARTITA_ASSIGN(store->store_, OpenEngineModule(engine, config));
  return store;
}

OrderedTableStore::~OrderedTableStore() {
  store_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

Status OrderedTableStore::MakeTable(const std::string& name, const std::vector<std::string>&) {
  tables_.emplace(name, TableId(static_cast<uint32_t>(tables_.size() + 1)));
  return Status();
}

Status OrderedTableStore::Load(const std::string& table, std::vector<Write> writes, const GoesOn&) {
  const TableId id = tables_.at(table);
  std::vector<OrderedStore::Change> changes;
  for (const Write& write : writes) {
    changes.push_back({.key = EncodeEntityKey(id, write.entity), .value = std::nullopt});
    if (write.action == WriteAction::kInsertOrReplace) {
      changes.back().value = ValueOf(write.entity);
      continue;
    }
    // What it builds on may be among those before it.
    changes.pop_back();
    PARTITA_TRY(FromEngine(store_->Write(changes, /*relaxed=*/true)));
    changes.clear();
    PARTITA_ASSIGN(OrderedStore::Change change, ChangeOf(id, write));
    changes.push_back(std::move(change));
  }
  return FromEngine(store_->Write(changes, /*relaxed=*/true));
}

Status OrderedTableStore::Settle(const ThroughputTargets&, const GoesOn&) {
  return FromEngine(store_->Settle());
}

Result<Entity> OrderedTableStore::Get(const std::string& table, const std::string& partition_key,
                                      const std::string& row_key) {
  const std::string key = EncodeUserKey(tables_.at(table), OrderedText(partition_key), OrderedText(row_key));
  std::optional<std::string> value;
  PARTITA_TRY(FromEngine(store_->Get(key, &value)));
  if (!value) return Status::NotFound("there is no such entity");
  return EntityOf(key, *value);
}

Result<Entity> OrderedTableStore::GetSelected(const std::string& table, const std::string& partition_key,
                                              const std::string& row_key,
                                              const std::vector<std::string>& select) {
  const std::string partition = OrderedText(partition_key), row = OrderedText(row_key);
  std::optional<std::string> value;
  PARTITA_TRY(FromEngine(store_->Get(EncodeUserKey(tables_.at(table), partition, row), &value)));
  if (!value) return Status::NotFound("there is no such entity");
  if (value->size() < kTimeSize) return Status::Corruption("a row is shorter than its time");
  std::vector<std::string> sorted = select;
  std::sort(sorted.begin(), sorted.end());
  const std::string_view stored = *value;
  return DecodeSelected(partition, row, Version(LoadLe64(value->data())), stored.substr(kTimeSize), sorted);
}

Status OrderedTableStore::ScanInterval(const std::string& lower, const std::string& upper, Page* page) {
  PARTITA_TRY(FromEngine(store_->Scan(
      lower, upper, [&](std::string_view key, std::string_view value) { return page->Add(key, value); })));
  return page->status;
}

Result<TableStore::Answer> OrderedTableStore::Query(const std::string& table, const Question& question) {
  const TableId id = tables_.at(table);
  PARTITA_ASSIGN(const partita::QueryPlan plan, PlanAsTheServiceReads(question.filter));
  Page page{.filter = CompiledFilter(plan.residual),
            .select = question.select,
            .entities_max = kPageEntitiesMax,
            .answer = {},
            .status = {}};
  if (question.top > 0) page.entities_max = std::min<size_t>(question.top, kPageEntitiesMax);
  std::sort(page.select.begin(), page.select.end());
  const std::string prefix = TableLowerBound(id);
  for (const PlanInterval& interval : plan.intervals) {
    std::string lower = std::max(prefix + interval.lower, question.continuation);
    const std::string upper = interval.upper.empty() ? TableUpperBound(id) : prefix + interval.upper;
    if (lower >= upper) continue;
    PARTITA_TRY(ScanInterval(lower, upper, &page));
    if (!page.answer.continuation.empty()) break;
  }
  page.answer.scanned = page.scanned;
  return std::move(page.answer);
}

Result<OrderedStore::Change> OrderedTableStore::ChangeOf(TableId table, const Write& write) {
  OrderedStore::Change change{.key = EncodeEntityKey(table, write.entity), .value = std::nullopt};
  if (write.action == WriteAction::kInsertOrReplace) {
    change.value = ValueOf(write.entity);
    return change;
  }
  std::optional<std::string> before;
  PARTITA_TRY(FromEngine(store_->Get(change.key, &before)));
  const bool is_insert = write.action == WriteAction::kInsert;
  const bool needs_it = !is_insert && write.action != WriteAction::kInsertOrMerge;
  if (is_insert && before) return Status::AlreadyExists("the entity exists");
  if (needs_it && !before) return Status::NotFound("there is no such entity");
  if (!write.if_match.empty() && write.if_match != "*") {
    PARTITA_ASSIGN(const Entity there, EntityOf(change.key, *before));
    if (there.etag() != write.if_match) return Status::PreconditionFailed("the entity was changed");
  }
  const bool merges = write.action == WriteAction::kMerge || write.action == WriteAction::kInsertOrMerge;
  if (write.action == WriteAction::kDelete) return change;
  if (!merges || !before) {
    change.value = ValueOf(write.entity);
    return change;
  }
  PARTITA_ASSIGN(Entity merged, EntityOf(change.key, *before));
  for (const Property& property : write.entity.properties()) merged.Set(property.name, property.value);
  change.value = ValueOf(merged);
  return change;
}

std::vector<std::unique_lock<std::mutex>> OrderedTableStore::LockRows(const std::vector<std::string>& keys) {
  std::vector<size_t> places;
  for (const std::string& key : keys) places.push_back(Hash64(key) % row_locks_.size());
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  std::vector<std::unique_lock<std::mutex>> locks;
  for (const size_t place : places) locks.emplace_back(row_locks_[place]);
  return locks;
}

Status OrderedTableStore::Transact(const std::string& table, const std::vector<Write>& writes) {
  const TableId id = tables_.at(table);
  std::vector<std::string> keys;
  for (const Write& write : writes) keys.push_back(EncodeEntityKey(id, write.entity));
  const auto locks = LockRows(keys);
  std::vector<OrderedStore::Change> changes;
  for (const Write& write : writes) {
    PARTITA_ASSIGN(OrderedStore::Change change, ChangeOf(id, write));
    changes.push_back(std::move(change));
  }
  return FromEngine(store_->Write(changes, /*relaxed=*/false));
}

}  // namespace partita::lab
