#include "bench/peers/leveldb_engine.h"

#include <leveldb/cache.h>
#include <leveldb/db.h>
#include <leveldb/filter_policy.h>
#include <leveldb/options.h>
#include <leveldb/write_batch.h>

#include <chrono>
#include <ctime>
#include <thread>

#include "bench/peers/iterator_scan.h"
#include "bench/peers/joined_key.h"

namespace partita::bench {
namespace {

leveldb::Slice ToSlice(const JoinedKey& key) { return {key.data(), key.size()}; }

Status FromLevelDb(const leveldb::Status& status) {
  if (status.ok()) return Status();
  if (status.IsNotFound()) return Status::NotFound("no such row");
  return Status::IoError("leveldb: " + status.ToString());
}

double ProcessCpuSeconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// What must outlive the database.
struct Parts {
  std::unique_ptr<leveldb::Cache> cache;
  std::unique_ptr<const leveldb::FilterPolicy> filter;
};

class LevelDbEngine final : public Engine {
 public:
  LevelDbEngine(Parts parts, std::unique_ptr<leveldb::DB> database)
      : parts_(std::move(parts)), database_(std::move(database)) {}

  Status Put(const RowKeys& keys, std::string_view value, DurabilityLevel level) override {
    return FromLevelDb(
        database_->Put(Options(level), ToSlice(JoinedKey(keys)), {value.data(), value.size()}));
  }

  Status PutAtomically(std::span<const Row> rows, DurabilityLevel level) override {
    leveldb::WriteBatch batch;
    for (const Row& row : rows) batch.Put(ToSlice(JoinedKey(row.keys)), row.value);
    return FromLevelDb(database_->Write(Options(level), &batch));
  }

  Status DeleteAtomically(std::span<const RowKeys> rows, DurabilityLevel level) override {
    leveldb::WriteBatch batch;
    for (const RowKeys& keys : rows) batch.Delete(ToSlice(JoinedKey(keys)));
    return FromLevelDb(database_->Write(Options(level), &batch));
  }

  Status Get(const RowKeys& keys, std::string* value) override {
    return FromLevelDb(database_->Get(leveldb::ReadOptions(), ToSlice(JoinedKey(keys)), value));
  }

  Status Scan(const RowKeys& from, uint64_t limit, const RowVisitor& visit) override {
    std::unique_ptr<leveldb::Iterator> iterator(database_->NewIterator(leveldb::ReadOptions()));
    ScanByIterator(iterator.get(), ToSlice(JoinedKey(from)), limit, visit);
    return FromLevelDb(iterator->status());
  }

  // It does not tell whether it compacts. It is taken for settled when for a fifth of a second the
  // process hardly used a core.
  Status Settle() override {
    // Behind all keys: writes out the memtable, finds nothing to compact.
    const leveldb::Slice last("\xff\xff\xff\xff", 4);
    database_->CompactRange(&last, nullptr);
    constexpr auto kWindow = std::chrono::milliseconds(200);
    constexpr double kIdleCpuSeconds = 0.004;
    double before = 0, after = ProcessCpuSeconds();
    do {
      before = after;
      std::this_thread::sleep_for(kWindow);
      after = ProcessCpuSeconds();
    } while (after - before > kIdleCpuSeconds);
    return Status();
  }

  Status Close() override {
    database_.reset();
    return Status();
  }

 private:
  static leveldb::WriteOptions Options(DurabilityLevel level) {
    leveldb::WriteOptions options;
    options.sync = level == DurabilityLevel::kPower;
    return options;
  }

  Parts parts_;
  std::unique_ptr<leveldb::DB> database_;  // Goes first.
};

}  // namespace

Result<std::unique_ptr<Engine>> OpenLevelDb(const EngineConfig& config) {
  Parts parts{.cache = std::unique_ptr<leveldb::Cache>(leveldb::NewLRUCache(config.memory_bytes / 2)),
              .filter = std::unique_ptr<const leveldb::FilterPolicy>(leveldb::NewBloomFilterPolicy(10))};
  leveldb::Options options;
  options.create_if_missing = true;
  options.block_cache = parts.cache.get();
  options.filter_policy = parts.filter.get();
  options.write_buffer_size = config.memory_bytes / 16;
  options.max_file_size = size_t{32} << 20;
  leveldb::DB* database = nullptr;
  PARTITA_TRY(FromLevelDb(leveldb::DB::Open(options, config.directory, &database)));
  return std::unique_ptr<Engine>(
      std::make_unique<LevelDbEngine>(std::move(parts), std::unique_ptr<leveldb::DB>(database)));
}

}  // namespace partita::bench
