#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/cli/console.h"
#include "api/partita.h"

namespace partita {

// The commands of `partita`: what each takes and does. command_line.h turns words into these structs; tests
// call them directly. Each prints to the console and returns the exit code; none throws.

// What every command that opens a store takes.
struct StoreFlags {
  std::string directory;  // --data
  std::string account;    // --account: whose tables; empty: the development account's.
  uint64_t memory_bytes = uint64_t{1} << 30;
  uint64_t host_memory_bytes = 0;        // Of memory_bytes: what the command needs for itself. No option.
  std::optional<uint32_t> shards;        // Unset: as the store has; a new one gets one a core.
  std::optional<Durability> durability;  // Unset: as each table says; a new table gets kPower.
  IoBackend io_backend = IoBackend::kUring;
  bool json = false;
  bool read_only = false;
  bool degraded = false;
  bool allow_volatile_storage = false;
};

// import FILE: writes the records of a file to a table.
struct ImportFlags {
  std::string file;  // "-": standard input.
  std::string table;
  std::string format;        // "jsonl", "csv", "debian"; empty: by the file's ending.
  std::string mode = "put";  // "put" (insert or replace), "insert", "replace", "merge" (insert or merge)
  bool create = false;
  bool strict = false;
  bool resume = false;
  uint32_t errors_max = 20;               // Bad records printed; all are counted.
  uint64_t checkpoint_bytes = 64u << 20;  // Input between two checkpoints, at most; also every 5 s.
};
ExitCode RunImport(const StoreFlags& store, const ImportFlags& flags, Console& console);

// export: writes a table to a file or the console.
struct ExportFlags {
  std::string table;
  std::string format;  // "jsonl", "csv"; empty: by the file's ending, else jsonl.
  std::string file;    // Empty or "-": standard output. A device or a pipe is written to as it is.
  bool skip_damage = false;
};
ExitCode RunExport(const StoreFlags& store, const ExportFlags& flags, Console& console);

// ranges list|split|merge|move: how tables are divided among the shards.
struct RangesFlags {
  std::string table;  // list: empty is all.
  std::string partition_key;
  uint32_t shard = 0;
  std::string admin;  // Of the server that runs with this admin address, instead of a store.
};
ExitCode RunListRanges(const StoreFlags& store, const RangesFlags& flags, Console& console);
ExitCode RunSplitRange(const StoreFlags& store, const RangesFlags& flags, Console& console);
ExitCode RunMergeRanges(const StoreFlags& store, const RangesFlags& flags, Console& console);
ExitCode RunMoveRange(const StoreFlags& store, const RangesFlags& flags, Console& console);

// heat: where the load of a running server lies.
struct HeatFlags {
  std::string admin;           // Its admin address.
  std::string table;           // Empty: all.
  std::string last = "5m";     // "90s", "1h", "14d"
  std::string metric = "cpu";  // One of kHeatMetricNames.
  uint32_t columns = 100, rows = 32, top = 10;
  std::string html, png;  // A file to write instead of the picture.
};
ExitCode RunHeat(const StoreFlags& store, const HeatFlags& flags, Console& console);

// stalls: what kept the workers of a running server long.
struct StallsFlags {
  std::string admin;  // Its admin address.
};
ExitCode RunStalls(const StallsFlags& flags, bool json, Console& console);

struct KeyFlags {
  std::string table, partition_key, row_key;
  std::string if_match;  // delete only.
};
ExitCode RunGet(const StoreFlags& store, const KeyFlags& flags, Console& console);
ExitCode RunDelete(const StoreFlags& store, const KeyFlags& flags, Console& console);

// scan: entities as JSON lines.
struct ScanFlags {
  std::string table;
  ScanOptions options;   // limit and continuation are not used.
  uint64_t limit = 100;  // 0: all.
  bool count = false;    // Prints only how many.
};
ExitCode RunScan(const StoreFlags& store, const ScanFlags& flags, Console& console);

// query: the entities that match a filter, or values over them.
struct QueryFlags {
  std::string table;
  std::string filter;               // `$filter` text; empty: all.
  std::vector<std::string> select;  // Empty: all properties.
  std::string format = "jsonl";     // "jsonl", "csv", "table"
  uint64_t top = 100;               // 0: all.
  bool top_given = false;
  bool reverse = false;
  bool explain = false;       // The plan and what it took, on the error stream.
  bool explain_only = false;  // The plan alone; nothing is read.
  bool count = false;
  std::vector<std::string> min, max, sum;
  bool skip_damage = false;
};
ExitCode RunQueryCommand(const StoreFlags& store, const QueryFlags& flags, Console& console);

// put: one entity, given as a JSON object.
struct PutFlags {
  std::string table;
  std::string entity_json;  // "-": read from standard input.
  std::string mode = "put";
  std::string if_match;
};
ExitCode RunPut(const StoreFlags& store, const PutFlags& flags, Console& console);

ExitCode RunTables(const StoreFlags& store, Console& console);
struct CreateTableFlags {
  std::string table;
  bool raw = false;
  std::vector<std::string> split_partition_keys;
};
ExitCode RunCreateTable(const StoreFlags& store, const CreateTableFlags& flags, Console& console);
ExitCode RunDeleteTable(const StoreFlags& store, const std::string& table, Console& console);

ExitCode RunStats(const StoreFlags& store, Console& console);
// Reads everything and checks every seal, order and count. kFindings, with a list, when there is damage.
ExitCode RunVerify(const StoreFlags& store, Console& console);

// scrub: reads all files past the caches at a bounded rate. kFindings when there is damage.
struct ScrubFlags {
  uint64_t bytes_per_second = 0;
  std::string within;  // "90m", "12h", "7d"; empty: no period.
  std::string admin;   // Of the server that runs with this admin address, instead of a store.
};
ExitCode RunScrub(const StoreFlags& store, const ScrubFlags& flags, Console& console);

// backup: a verified copy of the store in a new directory; kFindings when it was made, but its base is
// damaged, and kFailed when it was not. restore: a store made of one, in --data; kFindings for damage alone.
struct BackupFlags {
  std::string directory;  // The backup's.
  std::string base;       // An earlier backup to share files with; backup only.
  bool copy = false;
  uint64_t bytes_per_second = 0;
  std::string admin;  // Of the store of the server that runs with this admin address; backup only.
};
ExitCode RunBackup(const StoreFlags& store, const BackupFlags& flags, Console& console);
ExitCode RunRestore(const StoreFlags& store, const BackupFlags& flags, Console& console);

// repair: lists what is damaged and what would be lost; repairs it when that is asked for. kFindings when
// there is damage that was only listed.
struct RepairFlags {
  bool apply = false;
  uint64_t bytes_per_second = 0;
};
ExitCode RunRepair(const StoreFlags& store, const RepairFlags& flags, Console& console);

// inspect: one file of a store, without opening it. kFindings when it is damaged.
struct InspectFlags {
  std::string kind;  // "wal", "table", "manifest", "catalog"
  std::string file;
  uint32_t rows_max = 20;
};
ExitCode RunInspect(const StoreFlags& store, const InspectFlags& flags, Console& console);

// doctor: machine, device and derived settings. kFindings when something keeps the engine from working.
ExitCode RunDoctor(const StoreFlags& store, Console& console);

// demo: the main job, on a Debian package index (see demo.h). kOk only if every step gave the right answer.
inline constexpr uint64_t kDemoRecordsMin = 10'000;
struct DemoFlags {
  // A file of so many records at least; "-": standard input; empty: what `apt-cache dumpavail` prints.
  std::string index;
  bool smoke = false;
};
ExitCode RunDemo(const StoreFlags& store, const DemoFlags& flags, Console& console);

// serve: the table service over HTTP, until it is asked to stop (SIGTERM, Ctrl-C). serve_settings.h joins
// these flags with environment and settings file.
struct ServeFlags {
  std::vector<std::string> listen;          // [http://|https://]IP:PORT
  std::vector<std::string> accounts, keys;  // In pairs; a key may be KEY:KEY2.
  std::string settings_file;
  std::string admin;  // IP:PORT; empty: none.
  bool admin_public = false;
  std::string certificate_file, key_file;
  std::string access_log;  // "-": standard output; empty: none.
  bool no_create = false;
  std::string throughput;  // As ParseThroughputTargets reads it; empty: as the settings file says.
  std::optional<int64_t> connections_max;
  bool memory_given = false, io_given = false;  // --memory, --io: else the settings file may say.
};
ExitCode RunServe(const StoreFlags& store, const ServeFlags& flags, Console& console);

// sas: prints a shared access signature, with which a client without the key may do what it says.
struct SasFlags {
  std::string account;      // Empty: the development account.
  std::string key;          // Empty: the development account's, or as AZURITE_ACCOUNTS has it.
  std::string table;        // Empty: a token for the whole account.
  std::string permissions;  // Empty: reading.
  std::string expiry;       // "2030-01-01T00:00:00Z", or a time from now: "90m", "12h", "7d".
  std::string partition;    // Only this partition.
};
ExitCode RunSas(const StoreFlags& store, const SasFlags& flags, Console& console);

}  // namespace partita
