#pragma once
#include <rocksdb/options.h>

#include <cstdint>

#include "bench/load/engine.h"
#include "bench/peers/rocksdb_engine.h"

namespace partita::bench {

// Of its block cache. Half of the budget, where the page cache may have what memtables leave; three quarters
// where there is none: memtables take three sixteenths, and the last is for filters and indexes, which are
// outside of the cache (some 65 MB of 4 million rows of 1 KiB).
uint64_t RocksDbCacheBytes(const EngineConfig& config, RocksDbVariant variant);

// How RocksDb is set up in comparisons: see OpenRocksDb.
rocksdb::Options RocksDbOptions(const EngineConfig& config, RocksDbVariant variant);

}  // namespace partita::bench
