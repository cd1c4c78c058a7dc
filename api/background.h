#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

// What shards do behind the writers, as it goes on: a job of minutes shows in each second of them.

namespace partita {

// Flushes of memtables, compactions, scrubs and backups.
inline constexpr size_t kBackgroundKinds = 4;
inline constexpr std::array<std::string_view, kBackgroundKinds> kBackgroundKindNames = {"flush", "compaction",
                                                                                        "scrub", "backup"};

struct BackgroundStats {
  // Of table files written and read back, and of what a scrub or a backup reads. What a compaction reads of
  // its inputs is ShardStats::bytes_read_compaction.
  uint64_t bytes = 0;
  double cpu_seconds = 0;  // Of helper threads; what calls like CompactAll do on a worker is not measured.
  struct Rate {
    double bytes_per_second = 0;
    double cores = 0;  // CPU seconds a second.
  };
  Rate last_second;  // The last whole one.
  Rate last_minute;  // The last 60 whole ones, or since the store was opened.
};

}  // namespace partita
