#pragma once
#include <rocksdb/options.h>

#include <cstdint>

#include "bench/load/engine.h"
#include "bench/peers/rocksdb_engine.h"

namespace partita::bench {

// How RocksDb is set up in comparisons: see OpenRocksDb.
rocksdb::Options RocksDbOptions(const EngineConfig& config, RocksDbVariant variant);

}  // namespace partita::bench
