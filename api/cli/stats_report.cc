#include "api/cli/stats_report.h"

namespace partita {

namespace {

struct Sums {
  uint64_t files = 0, bytes = 0, entries = 0, tombstones = 0, bottom_bytes = 0;
  uint64_t user = 0, log = 0, flush = 0, compaction = 0;
  uint64_t log_live = 0, memtable = 0;
};

Sums SumUp(const DatabaseStats& stats) {
  Sums sums;
  for (const ShardStats& shard : stats.shards) {
    uint64_t bottom = 0;
    for (const ShardStats::Level& level : shard.levels) {
      sums.files += level.files;
      sums.bytes += level.bytes;
      sums.entries += level.entries;
      sums.tombstones += level.tombstones;
      if (level.bytes > 0) bottom = level.bytes;
    }
    sums.bottom_bytes += bottom;
    sums.user += shard.bytes_written_user;
    sums.log += shard.bytes_written_log;
    sums.flush += shard.bytes_written_flush;
    sums.compaction += shard.bytes_written_compaction;
    sums.log_live += shard.log_live_bytes;
    sums.memtable += shard.memtable_bytes;
  }
  return sums;
}

ReportValue Ratio(uint64_t of, uint64_t to) {
  if (to == 0) return std::string("none yet");
  return static_cast<double>(of) / static_cast<double>(to);
}

ReportTable ShardTable(const DatabaseStats& stats) {
  ReportTable table{
      "shards",
      {"shard", "memtable_bytes", "memtable_entries", "frozen", "log_live_bytes", "writes", "flushes",
       "compactions", "debt_bytes", "delay_us_total", "delay_us_max", "fenced", "stalled"},
      {}};
  for (const ShardStats& shard : stats.shards) {
    table.rows.push_back({uint64_t{shard.shard}, shard.memtable_bytes, shard.memtable_entries,
                          shard.frozen_memtables, shard.log_live_bytes, shard.writes, shard.flushes,
                          shard.compactions, shard.compaction_debt_bytes, shard.write_delay_us_total,
                          shard.write_delay_us_max, shard.fenced, shard.stalled});
  }
  return table;
}

// Of shards that have any.
ReportTable FailureTable(const DatabaseStats& stats) {
  ReportTable table{"failures",
                    {"shard", "fences", "stalls", "flushes", "compactions", "saves", "set_aside",
                     "flush_error", "compaction_error"},
                    {}};
  for (const ShardStats& shard : stats.shards) {
    const uint64_t any = shard.fences + shard.stalls + shard.flushes_failed + shard.compactions_failed +
                         shard.saves_failed + shard.references_set_aside;
    if (any == 0) continue;
    table.rows.push_back({uint64_t{shard.shard}, shard.fences, shard.stalls, shard.flushes_failed,
                          shard.compactions_failed, shard.saves_failed, shard.references_set_aside,
                          shard.flush_error, shard.compaction_error});
  }
  return table;
}

ReportTable BackgroundTable(const DatabaseStats& stats) {
  ReportTable table{
      "background",
      {"shard", "work", "bytes", "cpu_s", "bytes_per_s_1s", "bytes_per_s_60s", "cores_1s", "cores_60s"},
      {}};
  for (const ShardStats& shard : stats.shards) {
    for (size_t i = 0; i < kBackgroundKinds; ++i) {
      const BackgroundStats& of = shard.background[i];
      if (of.bytes == 0) continue;
      table.rows.push_back({uint64_t{shard.shard}, std::string(kBackgroundKindNames[i]), of.bytes,
                            of.cpu_seconds, of.last_second.bytes_per_second, of.last_minute.bytes_per_second,
                            of.last_second.cores, of.last_minute.cores});
    }
  }
  return table;
}

ReportTable LevelTable(const DatabaseStats& stats) {
  ReportTable table{"levels", {"shard", "level", "files", "bytes", "entries", "tombstones"}, {}};
  for (const ShardStats& shard : stats.shards) {
    for (size_t level = 0; level < shard.levels.size(); ++level) {
      const ShardStats::Level& of = shard.levels[level];
      if (of.files == 0) continue;
      table.rows.push_back(
          {uint64_t{shard.shard}, uint64_t{level}, of.files, of.bytes, of.entries, of.tombstones});
    }
  }
  return table;
}

}  // namespace

Report DescribeStats(const DatabaseStats& stats, const std::string& directory) {
  const Sums sums = SumUp(stats);
  Report report;
  report.title = "stats of " + directory;
  report.Add("shards_open", uint64_t{stats.shards.size()});
  report.Add("table_files", sums.files);
  report.Add("table_bytes", sums.bytes);
  report.Add("table_entries", sums.entries, "puts and tombstones, older versions included");
  report.Add("tombstones", sums.tombstones);
  report.Add("log_live_bytes", sums.log_live, "not yet in table files");
  report.Add("space_amplification", Ratio(sums.bytes, sums.bottom_bytes),
             "all levels / lowest level of each shard");
  report.Add("written_by_user_bytes", sums.user, "since the store was opened, as all that was written");
  report.Add("written_to_log_bytes", sums.log);
  report.Add("written_by_flush_bytes", sums.flush);
  report.Add("written_by_compaction_bytes", sums.compaction);
  report.Add("write_amplification", Ratio(sums.log + sums.flush + sums.compaction, sums.user),
             "(log + flush + compaction) / user");
  report.Add("reserve_bytes", stats.reserve_bytes,
             stats.out_of_space ? "the disk is full: only deletes are accepted until there is room for " +
                                      std::to_string(stats.reserve_wanted)
                                : "of the disk, set aside for when it is full");
  report.Add("memory_budget_bytes", stats.memory_budget);
  report.Add("resident_set_bytes", stats.resident_set_bytes, "of this process, from the kernel");
  report.Add("memtable_bytes", sums.memtable);
  report.Add("memtable_pool_bytes", stats.memtable_pool_bytes, "limit");
  report.Add("cache_bytes", stats.cache_bytes);
  report.Add("cache_capacity_bytes", stats.cache_capacity);
  report.Add("cache_hits", stats.cache_hits);
  report.Add("cache_misses", stats.cache_misses);
  report.Add("resident_table_bytes", stats.resident_table_bytes, "top indexes and filters of open tables");
  report.Add("beside_cache_bytes", stats.memory_beside_cache,
             stats.memory_beyond_budget > 0
                 ? "ranges, names, open tables: " + std::to_string(stats.memory_beyond_budget) +
                       " beyond the budget once memtables are full; give the store more --memory"
                 : "ranges, names, open tables: the cache is smaller for them");
  report.tables.push_back(LevelTable(stats));
  report.tables.push_back(ShardTable(stats));
  report.tables.push_back(BackgroundTable(stats));
  report.tables.push_back(FailureTable(stats));
  return report;
}

void NoteDamagedShards(const std::vector<std::string>& damages, Report* report) {
  if (damages.empty()) return;
  for (ReportFact& fact : report->facts) {
    if (fact.name == "shards_open") fact.value = std::get<uint64_t>(fact.value) - damages.size();
  }
  report->Add("shards_damaged", uint64_t{damages.size()}, "not open: nothing of them is counted here");
  report->damages = damages;
}

}  // namespace partita
