#pragma once
#include <memory>

#include "bench/load/engine.h"

namespace partita::bench {

// LMDB: a B+tree in a mapped file, whose cache is the page cache; EngineConfig::memory_bytes has no
// say, only a control group has. One transaction a write; each thread keeps its reader and renews it.
// Without read-ahead, which would read 128 KiB for a random row of 1 KiB. Where single writes need
// not survive loss of power the map is written to directly (WRITEMAP), which saves copies and calls.
//
// Durability: kPower flushes at each commit; kProcess and kMemory leave what was written to the
// kernel. It has no log: after a loss of power in between the file may be broken, which the weaker
// levels of the others do not allow.
Result<std::unique_ptr<Engine>> OpenLmdb(const EngineConfig& config);

}  // namespace partita::bench
