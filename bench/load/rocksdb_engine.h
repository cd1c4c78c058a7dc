#pragma once
#include <memory>

#include "bench/load/engine.h"

namespace partita::bench {

// RocksDB, tuned as one would for this data: at a budget of 1 GiB a block cache of 512 MiB and
// memtables of 3 x 64 MiB (in proportion for other budgets), bloom filters of 10 bits, 4 KiB blocks
// with the hash index, lz4 with zstd at the bottom, leveled with dynamic level sizes, 3 background
// jobs, pipelined and concurrent memtable writes.
//
// Durability: kPower is a sync on each commit; kProcess is the log written to the kernel on each
// commit; kMemory keeps the log in the process's buffer (manual flush).
//
// Reads go past the page cache unless EngineConfig::page_cache, so that the memory budget holds for
// it as for the others. Keys are joined to 57 bytes: table, PartitionKey, 0x00, RowKey.
Result<std::unique_ptr<Engine>> OpenRocksDb(const EngineConfig& config);

}  // namespace partita::bench
