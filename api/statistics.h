#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "api/background.h"
#include "api/durability.h"

namespace partita {

// Counters and sizes, per shard and in all, at one moment.
struct ShardStats {
  uint32_t shard = 0;
  uint64_t memtable_bytes = 0, memtable_entries = 0, frozen_memtables = 0;
  uint64_t log_live_bytes = 0;  // Of segments that are still needed.
  struct Level {  // A file that several shards share, since a range moved, is of the first of them.
    uint64_t files = 0, bytes = 0, entries = 0, tombstones = 0;
  };
  std::vector<Level> levels;
  uint64_t writes = 0;  // Accepted; a transaction is one.
  uint64_t flushes = 0, compactions = 0;
  uint64_t compactions_given_up = 0;  // That got no core, and were begun anew by a thread that does.
  uint64_t bytes_written_user = 0;    // Keys and values accepted.
  uint64_t bytes_written_log = 0, bytes_written_flush = 0, bytes_written_compaction = 0;
  uint64_t bytes_read_compaction = 0;
  uint64_t compaction_debt_bytes = 0;
  std::array<BackgroundStats, kBackgroundKinds> background{};  // By kBackgroundKindNames.
  uint64_t write_delay_us_total = 0, write_delay_us_max = 0;   // That writers were slowed down by.
  bool fenced = false;   // Takes no writes: its log failed, or is stalled.
  bool stalled = false;  // The disk has not answered its log, or reads of tables, for 30 s.
  uint64_t stalls = 0;   // Of the log, how often.
  // Why writes cannot be made tables, which is tried again (they are taken until the memory for them is
  // full); empty: they can.
  std::string flush_error;
  // Why tables cannot be merged, which is tried again (writes get slower as they pile up); empty: they can.
  std::string compaction_error;
  uint64_t references_set_aside = 0;  // Tables, or parts of them, that merges leave out as damaged.
  // Since the store was opened, all of them tried again: logs that failed and were left for another one,
  // memtables that did not become tables, merges that came to nothing, manifests that were not saved.
  uint64_t fences = 0, flushes_failed = 0, compactions_failed = 0, saves_failed = 0;
  // By how much writes get Timestamps ahead of the system's clock; below 0: behind it, when that jumped by
  // more than 5 minutes since the store was opened: the next opening follows it.
  double clock_seconds_ahead = 0;
};
struct DatabaseStats {
  std::vector<ShardStats> shards;
  uint64_t cache_bytes = 0, cache_capacity = 0, cache_hits = 0, cache_misses = 0;
  // Reads that were given up after 30 s: those that the disk has not answered yet, and all of them.
  uint64_t reads_overdue = 0, reads_overdue_total = 0;
  // Reads of tables, catalog and manifests since the store was opened that met what was bad once, and good
  // when read again; of tables what was bad twice, whose keys answer kCorruption; filters that were, whose
  // tables are asked without them.
  uint64_t reads_transient = 0, damaged_parts = 0, damaged_filters = 0;
  uint64_t scrub_damages = 0;  // That scrubs have found since then, of whatever kind, ended early or not.
  uint64_t memory_budget = 0, memtable_pool_bytes = 0;
  uint64_t resident_table_bytes = 0;  // What open table files keep in memory.
  uint64_t resident_set_bytes = 0;    // Of the process, from the kernel.
  // What ranges, names and open table files keep in memory, for which the cache is smaller; and what of it is
  // more than the cache can give, so that the process takes as much more than the budget once memtables are
  // full.
  uint64_t memory_beside_cache = 0, memory_beyond_budget = 0;
  Durability durability = Durability::kPower;           // Of tables made without their own,
  Durability durability_in_force = Durability::kPower;  // and what it comes to on this disk.
  bool catalog_in_doubt = false;  // How the last change of a table ended is not known yet.
  uint64_t reserve_bytes = 0;     // Of the disk's space, set aside for when it is full,
  uint64_t reserve_wanted = 0;    // and how much should be.
  bool out_of_space = false;      // The disk is full: only deletes, and drops of tables, are accepted.
  uint64_t times_out_of_space = 0;
  // Calls refused because a partition, an account, or what a rule has a total for was over its throughput
  // target; and how many partitions are being counted now.
  uint64_t throttled_by_partition = 0, throttled_by_account = 0, throttled_by_total = 0;
  uint64_t throttled_partitions_active = 0;
  // What Options::balance_ranges led to since the store was opened; failed ones were planned anew.
  uint64_t ranges_split = 0, ranges_merged = 0, ranges_moved = 0, ranges_failed = 0;
  uint64_t load_samples = 0, load_samples_lost = 0;       // Of calls, for heat; lost for want of room.
  uint64_t log_torn_bytes = 0, log_records_stranded = 0;  // As the store was opened: see OpenReport.
};

struct VerifyReport {
  uint64_t tables_read = 0, entries = 0, bytes = 0;
  std::vector<std::string> damages;  // File, offset, rule; empty: clean.
};

// What recovery did at open, for the start-up log.
struct OpenReport {
  uint64_t records_replayed = 0, leftover_files_removed = 0;
  // Cut off the ends of logs: writes that were not finished or, which nothing tells apart, the last ones,
  // damaged since.
  uint64_t torn_bytes = 0;
  std::vector<std::string> torn_logs;  // Of which shards, and where.
  // Writes of level kProcess that only the ends of logs held and that are lost, as others in front of them
  // are gone: by a loss of power, or by damage.
  uint64_t records_stranded = 0;
  std::vector<std::string> stranded_logs;  // Of which shards, and which.
  bool clean_shutdown = true;
  uint32_t shards = 0;
  uint32_t shards_before = 0;  // It had when it was opened; another number: it was divided anew.
  std::string
      leftovers_kept;  // Why files of no use could not be removed, and take room; empty: none are there.
  std::vector<std::string> damaged_shards;  // Why each of them is not served (Options::open_degraded).
  // The file system knows no O_DIRECT: what is written is as durable, but reads and writes take longer, and
  // what is read to be checked, as by a scrub, may come from memory.
  bool direct_io_refused = false;
  std::string volatile_storage;  // Why kPower is not given (Options::allow_volatile_storage); empty: it is.
  double seconds = 0;
};

}  // namespace partita
