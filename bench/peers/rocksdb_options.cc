#include "bench/peers/rocksdb_options.h"

#include <rocksdb/cache.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>

namespace partita::bench {
namespace {

bool ReadsPastPageCache(const EngineConfig& config, RocksDbVariant variant) {
  return !config.page_cache || variant == RocksDbVariant::kDirect;
}

rocksdb::BlockBasedTableOptions TableOptions(const EngineConfig& config, RocksDbVariant variant) {
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(RocksDbCacheBytes(config, variant), /*num_shard_bits=*/6);
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.block_size = 4096;
  table.data_block_index_type = rocksdb::BlockBasedTableOptions::kDataBlockBinaryAndHash;
  table.format_version = 5;
  table.checksum = rocksdb::kXXH3;
  return table;
}

// What the variant changes in the options of the leveled one.
void Vary(RocksDbVariant variant, rocksdb::Options* options) {
  switch (variant) {
    case RocksDbVariant::kLeveled:
      return;
    case RocksDbVariant::kDirect:
    case RocksDbVariant::kLz4:
      options->bottommost_compression = rocksdb::kLZ4Compression;
      return;
    case RocksDbVariant::kUniversal:
      options->bottommost_compression = rocksdb::kLZ4Compression;
      options->compaction_style = rocksdb::kCompactionStyleUniversal;
      return;
    case RocksDbVariant::kBlob:
      options->enable_blob_files = true;
      options->min_blob_size = 512;  // Every value of 1 KiB.
      options->blob_file_size = uint64_t{64} << 20;
      // A blob is compressed by itself, once: zstd finds something in one, lz4 next to nothing.
      options->blob_compression_type = rocksdb::kZSTD;
      options->enable_blob_garbage_collection = true;
      return;
  }
}

}  // namespace

uint64_t RocksDbCacheBytes(const EngineConfig& config, RocksDbVariant variant) {
  return ReadsPastPageCache(config, variant) ? config.memory_bytes / 4 * 3 : config.memory_bytes / 2;
}

rocksdb::Options RocksDbOptions(const EngineConfig& config, RocksDbVariant variant) {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.write_buffer_size = config.memory_bytes / 16;
  options.max_write_buffer_number = 3;
  options.compression = rocksdb::kLZ4Compression;
  options.bottommost_compression = rocksdb::kZSTD;
  options.level_compaction_dynamic_level_bytes = true;
  options.max_bytes_for_level_base = uint64_t{256} << 20;
  options.target_file_size_base = uint64_t{64} << 20;
  options.max_background_jobs = 3;
  options.max_subcompactions = 2;  // One merge by both cores, or a large one holds up all.
  options.enable_pipelined_write = true;
  options.allow_concurrent_memtable_write = true;
  options.bytes_per_sync = 1 << 20;
  options.compaction_readahead_size = 2 << 20;
  // Logs are recycled, as Partita's are, where it pays: each commit is flushed. 7.8.3 takes that back without
  // a word unless recovery passes over what it cannot read, and then opening after a kill may never end, in
  // the old end of such a log. So not for others, of which one is killed; these are closed.
  if (config.durability == DurabilityLevel::kPower) {
    options.recycle_log_file_num = 4;
    options.wal_recovery_mode = rocksdb::WALRecoveryMode::kSkipAnyCorruptedRecords;
  }
  // What recovery reads stays in memory as far as it fits, as in Partita: written out before the first read,
  // it would count with the opening.
  options.avoid_flush_during_recovery = true;
  options.manual_wal_flush = config.durability == DurabilityLevel::kMemory;
  options.use_direct_reads = ReadsPastPageCache(config, variant);
  options.use_direct_io_for_flush_and_compaction = ReadsPastPageCache(config, variant);
  const rocksdb::BlockBasedTableOptions table = TableOptions(config, variant);
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  options.blob_cache = table.block_cache;  // Blobs and blocks share the one number.
  Vary(variant, &options);
  return options;
}

}  // namespace partita::bench
