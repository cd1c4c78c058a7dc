#pragma once
#include <cstdint>
#include <memory>

#include "bench/load/engine.h"

namespace partita::bench {

// Which of RocksDB's ways to store the same data. Each is the best at some load.
enum class RocksDbVariant : uint8_t {
  kLeveled,    // Least space, fewest files to read.
  kUniversal,  // Sorted runs merged rarely: fewer bytes written, more read; lz4 at the bottom.
  kBlob,       // Values in files of their own: compaction moves keys only.
  kDirect,     // As kLz4, past the page cache, also where that is allowed.
  kLz4,        // Leveled, with lz4 at the bottom as well: less CPU, more space.
};

// RocksDB, tuned as one would for this data: at a budget of 1 GiB a block cache of 512 MiB (768 where
// it reads past the page cache) and memtables of 3 x 64 MiB (in proportion for other budgets), bloom filters
// of 10 bits, 4 KiB blocks with the hash index, lz4 with zstd at the bottom, leveled with dynamic level
// sizes, 3 background jobs, merges cut in two, pipelined and concurrent memtable writes; at kPower 4 logs are
// kept to be written over.
//
// Durability: kPower is a sync on each commit; kProcess is the log written to the kernel on each
// commit; kMemory keeps the log in the process's buffer (manual flush).
//
// Reads go past the page cache unless EngineConfig::page_cache, so that the memory budget holds for
// it as for the others.
Result<std::unique_ptr<Engine>> OpenRocksDb(const EngineConfig& config, RocksDbVariant variant);

}  // namespace partita::bench
