#pragma once
#include <cstdint>
#include <vector>

#include "engine/background_meter.h"
#include "engine/base/status.h"

namespace partita {

struct ShardStatistics {
  uint64_t memtable_bytes = 0, memtable_entries = 0, frozen_memtables = 0;
  uint64_t log_live_bytes = 0, log_bytes = 0;
  struct Level {  // A file that several shards share is of the first of them.
    uint64_t files = 0, bytes = 0, entries = 0, tombstones = 0;
  };
  std::vector<Level> levels;
  // `given_up`: they were of idle class, and got no core.
  uint64_t compactions = 0, compactions_given_up = 0;
  uint64_t writes = 0, flushes = 0, bytes_user = 0, bytes_flushed = 0;
  uint64_t bytes_compaction_read = 0, bytes_compaction_written = 0, debt_bytes = 0;
  uint64_t delay_us_total = 0, delay_us_max = 0, resident_table_bytes = 0;
  BackgroundLoads background{};
  bool fenced = false;   // Takes no writes: its log failed (F20), or does not answer.
  bool stalled = false;  // The latter; or reads of tables have no answer yet (F26).
  uint64_t stalls = 0;   // Of the log, since the store was opened.
  // By how much what is written now is stamped ahead of the wall clock; below 0: behind it.
  int64_t clock_ticks_ahead = 0;
  // Why the oldest memtable cannot be flushed, or the manifest not be saved, which is tried again. Ok: they
  // can.
  Status flush_error;
  // Why the last merge failed, while one is due. Ok: it did not, or none is.
  Status compaction_error;
  // Slices of files that merges leave out, as these, or the opening, could not read them (F46).
  uint64_t references_set_aside = 0;
  // Since the store was opened (F20, F22, F23); each is tried again.
  uint64_t fences = 0, flushes_failed = 0, compactions_failed = 0, saves_failed = 0;
};

}  // namespace partita
