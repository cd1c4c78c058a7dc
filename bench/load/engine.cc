#include "bench/load/engine.h"

#include <algorithm>
#include <vector>

#include "bench/load/partita_engine.h"
#ifdef PARTITA_WITH_ROCKSDB
#include "bench/peers/rocksdb_engine.h"
#endif
#ifdef PARTITA_WITH_LEVELDB
#include "bench/peers/leveldb_engine.h"
#endif
#ifdef PARTITA_WITH_LMDB
#include "bench/peers/lmdb_engine.h"
#endif
#ifdef PARTITA_WITH_WIREDTIGER
#include "bench/peers/wiredtiger_engine.h"
#endif

namespace partita::bench {
namespace {

struct KnownEngine {
  std::string_view name;
  Result<std::unique_ptr<Engine>> (*open)(const EngineConfig& config);
};

#ifdef PARTITA_WITH_ROCKSDB
template <RocksDbVariant kVariant>
Result<std::unique_ptr<Engine>> OpenVariant(const EngineConfig& config) {
  return OpenRocksDb(config, kVariant);
}
#endif

constexpr KnownEngine kEngines[] = {
    {"partita", OpenPartita},
#ifdef PARTITA_WITH_ROCKSDB
    {"rocksdb", OpenVariant<RocksDbVariant::kLeveled>},
    {"rocksdb-universal", OpenVariant<RocksDbVariant::kUniversal>},
    {"rocksdb-blob", OpenVariant<RocksDbVariant::kBlob>},
    {"rocksdb-direct", OpenVariant<RocksDbVariant::kDirect>},
    {"rocksdb-lz4", OpenVariant<RocksDbVariant::kLz4>},
#endif
#ifdef PARTITA_WITH_LEVELDB
    {"leveldb", OpenLevelDb},
#endif
#ifdef PARTITA_WITH_LMDB
    {"lmdb", OpenLmdb},
#endif
#ifdef PARTITA_WITH_WIREDTIGER
    {"wiredtiger", OpenWiredTiger},
#endif
};

}  // namespace

Status Engine::ReplaceAtomically(std::span<const Row> rows, DurabilityLevel level) {
  const size_t lock = std::hash<std::string_view>()(rows.front().keys.partition()) % kPartitionLocks;
  const std::lock_guard guard(partition_locks_[lock]);
  PARTITA_TRY(CheckExist(rows));
  return PutAtomically(rows, level);
}

Status Engine::CheckExist(std::span<const Row> rows) {
  std::string value;
  for (const Row& row : rows) PARTITA_TRY(Get(row.keys, &value));
  return Status();
}

Status Engine::InsertForReplacing(std::span<const Row> rows) {
  return PutAtomically(rows, DurabilityLevel::kProcess);
}

Status Engine::Drop() { return Status(Code::kUnsupported, "this engine cannot drop all rows at once"); }

void Engine::PutAsync(const RowKeys& keys, std::string value, DurabilityLevel level,
                      std::function<void(Status)> done) {
  done(Status(Code::kUnsupported, "this engine has no asynchronous put"));
}

void Engine::GetAsync(const RowKeys& keys, std::function<void(Result<std::string>)> done) {
  done(Status(Code::kUnsupported, "this engine has no asynchronous get"));
}

std::span<const std::string_view> EngineNames() {
  static const std::vector<std::string_view> kNames = [] {
    std::vector<std::string_view> names;
    for (const KnownEngine& engine : kEngines) names.push_back(engine.name);
    return names;
  }();
  return kNames;
}

bool IsEngine(std::string_view name) {
  return std::ranges::any_of(kEngines, [&](const KnownEngine& engine) { return engine.name == name; });
}

std::string KnownEngines() {
  std::string names;
  for (const KnownEngine& engine : kEngines) names.append(names.empty() ? "" : ", ").append(engine.name);
  return names;
}

Result<std::unique_ptr<Engine>> OpenEngine(std::string_view name, const EngineConfig& config) {
  for (const KnownEngine& engine : kEngines) {
    if (engine.name == name) return engine.open(config);
  }
  return Status(Code::kUnsupported,
                "no engine '" + std::string(name) + "' in this program; it has: " + KnownEngines());
}

}  // namespace partita::bench
