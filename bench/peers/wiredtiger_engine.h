#pragma once
#include <memory>

#include "bench/load/engine.h"

namespace partita::bench {

// WiredTiger as its best-known user sets it up: a row store, a cache of three quarters of the budget
// (it keeps no other large memory), a log and blocks with snappy, leaf pages of 8 KiB, half of those it
// has by default for scans, two threads that evict, a checkpoint a minute. Each thread has a session
// and a cursor.
//
// Durability: kPower flushes the log at each commit; kProcess writes it to the kernel; kMemory keeps
// it in the process.
//
// It reads past the page cache unless EngineConfig::page_cache.
Result<std::unique_ptr<Engine>> OpenWiredTiger(const EngineConfig& config);

}  // namespace partita::bench
