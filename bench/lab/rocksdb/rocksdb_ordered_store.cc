#include <rocksdb/db.h>
#include <rocksdb/options.h>
#include <rocksdb/write_batch.h>

#include <memory>

#include "bench/lab/ordered_store.h"
#include "bench/peers/rocksdb_options.h"

// RocksDB as a target of the lab, leveled, with LZ4 on all levels, and tuned as partita-bench tunes it
// outside of a control group: past the page cache, which is the whole machine's and no part of the
// experiment's memory. LZ4, as Partita's own tables, since with zstd at the bottom it takes a third to a half
// more CPU for what is read. A module of its own.
namespace partita::lab {
namespace {

rocksdb::Slice ToSlice(std::string_view text) { return {text.data(), text.size()}; }

std::string Error(const rocksdb::Status& status) { return status.ok() ? "" : status.ToString(); }

class RocksDbOrderedStore final : public OrderedStore {
 public:
  RocksDbOrderedStore(std::unique_ptr<rocksdb::DB> database, bool is_synced)
      : database_(std::move(database)), is_synced_(is_synced) {}
  ~RocksDbOrderedStore() override { (void)database_->Close(); }

  std::string Get(std::string_view key, std::optional<std::string>* value) override {
    rocksdb::PinnableSlice found;
    const rocksdb::Status status =
        database_->Get(rocksdb::ReadOptions(), database_->DefaultColumnFamily(), ToSlice(key), &found);
    value->reset();
    if (status.IsNotFound()) return "";
    if (status.ok()) value->emplace(found.data(), found.size());
    return Error(status);
  }

  std::string Write(const std::vector<Change>& changes, bool relaxed) override {
    rocksdb::WriteBatch batch;
    for (const Change& change : changes) {
      const rocksdb::Status added =
          change.value ? batch.Put(change.key, *change.value) : batch.Delete(change.key);
      if (!added.ok()) return Error(added);
    }
    rocksdb::WriteOptions options;
    options.sync = is_synced_ && !relaxed;
    return Error(database_->Write(options, &batch));
  }

  std::string Scan(std::string_view lower, std::string_view upper, const Visit& visit) override {
    rocksdb::ReadOptions options;
    const rocksdb::Slice end = ToSlice(upper);
    if (!upper.empty()) options.iterate_upper_bound = &end;
    const std::unique_ptr<rocksdb::Iterator> rows(database_->NewIterator(options));
    for (rows->Seek(ToSlice(lower)); rows->Valid(); rows->Next()) {
      const rocksdb::Slice key = rows->key(), value = rows->value();
      if (!visit({key.data(), key.size()}, {value.data(), value.size()})) break;
    }
    return Error(rows->status());
  }

  std::string Settle() override {
    const rocksdb::Status flushed = database_->Flush(rocksdb::FlushOptions());
    if (!flushed.ok()) return Error(flushed);
    return Error(database_->CompactRange(rocksdb::CompactRangeOptions(), nullptr, nullptr));
  }

 private:
  const std::unique_ptr<rocksdb::DB> database_;
  const bool is_synced_;
};

}  // namespace
}  // namespace partita::lab

extern "C" partita::lab::OrderedStore* PartitaOpenOrderedStore(const partita::lab::OrderedStoreConfig& config,
                                                               std::string* error) {
  using Durability = partita::lab::OrderedStoreConfig::Durability;
  const rocksdb::Options options = partita::bench::RocksDbOptions(
      {.memory_bytes = config.memory_bytes,
       .durability = config.durability == Durability::kMemory ? partita::bench::DurabilityLevel::kMemory
                                                              : partita::bench::DurabilityLevel::kProcess,
       .page_cache = false},
      partita::bench::RocksDbVariant::kLz4);
  rocksdb::DB* database = nullptr;
  const rocksdb::Status opened = rocksdb::DB::Open(options, config.directory, &database);
  if (!opened.ok()) {
    *error = opened.ToString();
    return nullptr;
  }
  return new partita::lab::RocksDbOrderedStore(std::unique_ptr<rocksdb::DB>(database),
                                               config.durability == Durability::kPower);
}
