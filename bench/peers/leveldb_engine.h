#pragma once
#include <memory>

#include "bench/load/engine.h"

namespace partita::bench {

// LevelDB, tuned in the few ways it has: at a budget of 1 GiB a block cache of 512 MiB and two
// memtables of 64 MiB (in proportion for other budgets), a bloom filter of 10 bits, since without one
// every level is read for a missing key, and files of 32 MiB, since those of 2 MiB make thousands.
// Blocks of 4 KiB with snappy, its defaults.
//
// Durability: kPower is a sync on each commit; kProcess and kMemory are both the log written to the
// kernel on each commit, as LevelDB keeps nothing back.
//
// It reads through the page cache and cannot do otherwise; what it holds there is outside its memory
// budget, unless a control group bounds both.
Result<std::unique_ptr<Engine>> OpenLevelDb(const EngineConfig& config);

}  // namespace partita::bench
