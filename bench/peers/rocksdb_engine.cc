#include "bench/peers/rocksdb_engine.h"

#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/options.h>
#include <rocksdb/write_batch.h>

#include <chrono>
#include <initializer_list>
#include <thread>
#include <vector>

#include "bench/peers/iterator_scan.h"
#include "bench/peers/joined_key.h"
#include "bench/peers/rocksdb_options.h"

namespace partita::bench {
namespace {

rocksdb::Slice ToSlice(const JoinedKey& key) { return {key.data(), key.size()}; }

Status FromRocksDb(const rocksdb::Status& status) {
  if (status.ok()) return Status();
  if (status.IsNotFound()) return Status::NotFound("no such row");
  return Status::IoError("rocksdb: " + status.ToString());
}

// RocksDB takes back without a word what does not go together; then it would not be what the figures say it
// is.
Status CheckInForce(const rocksdb::DBOptions& asked, const rocksdb::DBOptions& given) {
  const auto same = [&](auto... options) { return (... && (asked.*options == given.*options)); };
  using Options = rocksdb::DBOptions;
  return same(&Options::recycle_log_file_num, &Options::enable_pipelined_write, &Options::manual_wal_flush,
              &Options::allow_concurrent_memtable_write, &Options::use_direct_reads, &Options::bytes_per_sync,
              &Options::use_direct_io_for_flush_and_compaction, &Options::compaction_readahead_size)
             ? Status()
             : Status(Code::kUnsupported, "this RocksDB takes back an option that it was given");
}

class RocksDbEngine final : public Engine {
 public:
  RocksDbEngine(std::unique_ptr<rocksdb::DB> database, bool log_in_process)
      : database_(std::move(database)), log_in_process_(log_in_process) {}

  Status Put(const RowKeys& keys, std::string_view value, DurabilityLevel level) override {
    return FromRocksDb(
        database_->Put(Options(level), ToSlice(JoinedKey(keys)), rocksdb::Slice(value.data(), value.size())));
  }

  Status PutAtomically(std::span<const Row> rows, DurabilityLevel level) override {
    rocksdb::WriteBatch batch;
    for (const Row& row : rows) {
      const rocksdb::Status added = batch.Put(ToSlice(JoinedKey(row.keys)), row.value);
      if (!added.ok()) return FromRocksDb(added);
    }
    return FromRocksDb(database_->Write(Options(level), &batch));
  }

  Status DeleteAtomically(std::span<const RowKeys> rows, DurabilityLevel level) override {
    rocksdb::WriteBatch batch;
    for (const RowKeys& keys : rows) PARTITA_TRY(FromRocksDb(batch.Delete(ToSlice(JoinedKey(keys)))));
    return FromRocksDb(database_->Write(Options(level), &batch));
  }

  // The files go, then a tombstone over what they left, as its authors advise.
  Status Drop() override {
    rocksdb::ColumnFamilyHandle* family = database_->DefaultColumnFamily();
    const rocksdb::Slice begin, end("\xff", 1);
    PARTITA_TRY(FromRocksDb(rocksdb::DeleteFilesInRange(database_.get(), family, nullptr, nullptr)));
    return FromRocksDb(database_->DeleteRange(Options(DurabilityLevel::kPower), family, begin, end));
  }

  Status Get(const RowKeys& keys, std::string* value) override {
    rocksdb::PinnableSlice pinned(value);
    const rocksdb::Status status = database_->Get(rocksdb::ReadOptions(), database_->DefaultColumnFamily(),
                                                  ToSlice(JoinedKey(keys)), &pinned);
    if (status.ok() && pinned.IsPinned()) value->assign(pinned.data(), pinned.size());
    return FromRocksDb(status);
  }

  Status Scan(const RowKeys& from, uint64_t limit, const RowVisitor& visit) override {
    std::unique_ptr<rocksdb::Iterator> iterator(database_->NewIterator(rocksdb::ReadOptions()));
    ScanByIterator(iterator.get(), ToSlice(JoinedKey(from)), limit, visit);
    return FromRocksDb(iterator->status());
  }

  Status Settle() override {
    PARTITA_TRY(FromRocksDb(database_->Flush(rocksdb::FlushOptions())));
    // This version offers no way to wait for compactions but to ask. Universal compaction may call one
    // pending that it then does not pick: when for a fifth of a second none runs, none will.
    constexpr int kIdlePolls = 10;
    for (int idle = 0; idle < kIdlePolls; ++idle) {
      if (IsAnyAbove0({"rocksdb.mem-table-flush-pending", "rocksdb.num-running-flushes",
                       "rocksdb.num-running-compactions"})) {
        idle = 0;
      } else if (!IsAnyAbove0({"rocksdb.compaction-pending"})) {
        break;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return Status();
  }

  Status Close() override {
    if (log_in_process_) PARTITA_TRY(FromRocksDb(database_->FlushWAL(/*sync=*/false)));
    return FromRocksDb(database_->Close());
  }

 protected:
  // One call that looks at each table and block once, and copies no value.
  Status CheckExist(std::span<const Row> rows) override {
    std::vector<JoinedKey> keys;
    keys.reserve(rows.size());
    for (const Row& row : rows) keys.emplace_back(row.keys);
    std::vector<rocksdb::Slice> slices;
    for (const JoinedKey& key : keys) slices.push_back(ToSlice(key));
    std::vector<rocksdb::PinnableSlice> values(rows.size());
    std::vector<rocksdb::Status> found(rows.size());
    database_->MultiGet(rocksdb::ReadOptions(), database_->DefaultColumnFamily(), rows.size(), slices.data(),
                        values.data(), found.data(), /*sorted_input=*/true);
    for (const rocksdb::Status& status : found) PARTITA_TRY(FromRocksDb(status));
    return Status();
  }

 private:
  bool IsAnyAbove0(std::initializer_list<const char*> properties) {
    for (const char* property : properties) {
      uint64_t value = 0;
      if (database_->GetIntProperty(property, &value) && value > 0) return true;
    }
    return false;
  }

  static rocksdb::WriteOptions Options(DurabilityLevel level) {
    rocksdb::WriteOptions options;
    options.sync = level == DurabilityLevel::kPower;
    return options;
  }

  std::unique_ptr<rocksdb::DB> database_;
  bool log_in_process_;
};

}  // namespace

Result<std::unique_ptr<Engine>> OpenRocksDb(const EngineConfig& config, RocksDbVariant variant) {
  const rocksdb::Options options = RocksDbOptions(config, variant);
  rocksdb::DB* database = nullptr;
  PARTITA_TRY(FromRocksDb(rocksdb::DB::Open(options, config.directory, &database)));
  auto engine = std::make_unique<RocksDbEngine>(std::unique_ptr<rocksdb::DB>(database),
                                                config.durability == DurabilityLevel::kMemory);
  PARTITA_TRY(CheckInForce(options, database->GetDBOptions()));
  return std::unique_ptr<Engine>(std::move(engine));
}

}  // namespace partita::bench
