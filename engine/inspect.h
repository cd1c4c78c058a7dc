#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "engine/base/result.h"
#include "engine/report.h"

namespace partita {

// Looks at the files of a store, and at the machine below it, without opening the store: no lock is
// taken and nothing is changed, so it works beside the process that holds the store (what that one
// is just writing may then look unfinished). This is the only road for files to the command line.
//
// All functions block. Damage is a finding, not a failure: it stands in Report::damages. A non-ok
// status means that nothing could be looked at: kNotFound, kIoError, kInvalidArgument (the path
// cannot be of that kind), kUnsupported (a newer format).

struct InspectOptions {
  // Rows listed: frames of a log segment, entries of a table file. The others are counted.
  uint32_t rows_max = 0;
};

// One log segment, log-LAYOUT-SHARD/*: its header, frames, where its chain ends and why.
Result<Report> InspectLogFile(const std::string& path, const InspectOptions& options);

// One table file, where it lies: STORE/tables/N.sst (its seals name the store, which is read from
// STORE/meta/catalog, and N). Reads all of it and checks every seal, order and count.
Result<Report> InspectTableFile(const std::string& path, const InspectOptions& options);

// meta/shard-LAYOUT-SHARD: the table files of a shard, level by level.
Result<Report> InspectManifestFile(const std::string& path);

// meta/catalog: tables and ranges.
Result<Report> InspectCatalogFile(const std::string& path);

// Why there is no store in `directory` though there are files of one: its root is missing or damaged (F69).
// Empty when there is one, or nothing of one.
std::string DamageOfRoot(const std::string& directory);

// How many shards the store in `directory` has; nothing when there is no store that can be read.
std::optional<uint32_t> ShardCountOfStore(const std::string& directory);

// What tells a table, and the life of its store, from others that bear or bore its name.
struct TableOrigin {
  std::string store;           // Its id.
  uint64_t incarnation = 0;    // Of the store's latest opening for writing.
  uint64_t created_ticks = 0;  // 0: there is no such table.
};
// From the catalog of the store in `directory`, which may be open.
Result<TableOrigin> OriginOfTable(const std::string& directory, const std::string& account,
                                  const std::string& table);
// Whether `later` is the same table, and its store was neither restored nor repaired since `earlier`, nor put
// back to a state of before, unless one that was opened for writing again meanwhile. After 32,768 openings it
// is taken for another, too.
bool GoesOnFrom(const TableOrigin& earlier, const TableOrigin& later);

struct DiagnoseOptions {
  std::string directory;  // Of a store, or where one is to be.
  uint64_t memory_bytes = uint64_t{1} << 30;
  uint32_t shards = 1;
  bool uses_io_uring = true;  // Else it need not be there.
};

// Kernel, device and limits as found, and what the engine derives from them and why. What keeps the
// engine from working stands in Report::damages, each with what to do. Writes a small temporary file in the
// directory for at most 200 ms.
Result<Report> Diagnose(const DiagnoseOptions& options);

}  // namespace partita
