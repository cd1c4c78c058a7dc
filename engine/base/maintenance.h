#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace partita {

// How a long task on a store's files goes on: how fast, and under whose eyes.
struct TaskPace {
  // Bytes read, and bytes written, per second on the average of the task; 0: as fast as it goes.
  uint64_t bytes_per_second = 0;
  // Called now and then, by the thread that does the work, with what is done and what there is to do in
  // bytes. False stops the task: kCancelled. Null: nobody is told.
  std::function<bool(uint64_t done, uint64_t due)> progress{};
};

enum class FileSharing : uint8_t {
  // A hard link or a reflink where the file system has them: table files never change, so both sides keep
  // theirs whatever happens to the other. But they are the same blocks of the same device.
  kWherePossible,
  kNever,  // Bytes of their own, but for what an earlier backup (`base`) has.
};

struct BackupOptions {
  TaskPace pace{};
  FileSharing sharing = FileSharing::kWherePossible;
  // The directory of an earlier backup of the same store: files that it has too are shared with it, or else
  // copied; so are those that turn out to be damaged there. Empty: none. Restoring has no use for it.
  std::string base{};
};

struct ScrubOptions {
  TaskPace pace{};
  // Spreads the reading over so many seconds; 0: as the pace says. With both the slower one holds.
  uint64_t period_seconds = 0;
};

struct ScrubReport {
  uint64_t tables = 0;        // Table files, whole.
  uint64_t entries = 0;       // In them.
  uint64_t log_segments = 0;  // Those in use, up to where they end.
  uint64_t meta_values = 0;   // Catalog and manifests, and a backup's record.
  uint64_t bytes = 0;
  uint64_t transient = 0;  // Parts of tables, and meta values: bad at first, good when read again (F52).
  std::vector<std::string> damages;  // File, offset, rule; empty: clean.
};

struct BackupReport {
  uint64_t files = 0;                     // Table files.
  uint64_t bytes = 0;                     // Of them all.
  uint64_t bytes_shared = 0;              // Of those that are links.
  uint64_t entries = 0;                   // Read back and verified.
  uint64_t created_ticks = 0;             // When the backup was taken: 100 ns since 1601-01-01 UTC.
  std::vector<std::string> base_damages;  // Of the earlier backup; what was taken from the store instead.
};

struct RepairReport;

inline constexpr uint64_t kRepairMemoryMin = uint64_t{160} << 20;

struct RepairOptions {
  TaskPace pace{};
  // False: nothing is changed; the report lists what is damaged and what would be lost.
  bool apply = false;
  // For what the logs hold, which goes through memory. At least 160 MiB: a log record may have 128 MiB.
  uint64_t memory_bytes = uint64_t{256} << 20;
  // Whose the tables are that a lost catalog named: as Options::account (api/partita.h). Empty: its default.
  std::string account{};
  // With `apply`: told of what was found before anything is changed, when there is damage. May be null.
  std::function<void(const RepairReport&)> found{};
};

// What damage may have done to a table's entities with keys in [lower, upper) (engine/base/user_key.h; an
// empty upper is no bound) that were written after `after_ticks` (Timestamp, 100 ns since 1601-01-01 UTC; 0:
// whenever). Others are kept as they are.
struct RepairLostRange {
  std::string table;  // Its name; "table 7" when that is lost.
  std::string lower, upper;
  uint64_t after_ticks = 0;
  std::string text;  // The keys for people.
};

// One thing that is damaged.
struct RepairDamage {
  std::string file;  // Within the store: "tables/000000000012.sst", "log-1-0", "meta/catalog".
  std::optional<uint32_t> shard;
  std::string reason;       // As a read would give it: file, offset, rule.
  std::string consequence;  // What a repair makes of it.
  // Empty: nothing is lost. Within them entities are absent, or are as they were before: an older state, or
  // one that was deleted, may come to light.
  std::vector<RepairLostRange> lost;
};

struct RepairReport {
  std::vector<RepairDamage> damages;  // Empty: the store is sound, and there is nothing to repair.
  uint64_t shards = 0;
  uint64_t tables = 0;       // Table files read, whole.
  uint64_t entries = 0;      // In them, those that are kept.
  uint64_t log_records = 0;  // Of the logs, those that are kept.
  bool is_backup = false;    // Which is made again, not repaired: `apply` is refused.
  bool applied = false;
  std::string kept_in;  // Applied: the directory within the store that has the old bytes.
};

}  // namespace partita
