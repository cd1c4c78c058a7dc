#pragma once
#include <optional>
#include <string>

#include "api/cli/import_pipeline.h"
#include "engine/base/result.h"

namespace partita {

// What lets an interrupted import go on: a small text file SOURCE.partita-resume beside the source. Where
// that cannot be written the import goes on without, and says so.
//
//   partita-resume 2
//   table Packages
//   store /absolute/path/of/store
//   account devstoreaccount1
//   mode put
//   format csv
//   offset 1048576        everything before it was imported or refused, and is durable
//   line 1201             the line that starts there
//   imported 1190
//   bad 10
//   before 8c5f...        hash of the (at most) 4 KiB before the offset: another file shows
//
// Version 1 had neither account nor mode. It is refused: going on into another account would leave out there
// what the first one got.
struct ImportCheckpoint {
  std::string table;
  std::string store;
  std::string account;
  std::string mode;  // As ImportFlags has it.
  std::string format;
  ImportPosition position;
};

std::string CheckpointPath(const std::string& source);

// Replaces the file atomically and durably. `source` is read for the hash.
Status SaveCheckpoint(const std::string& source, const ImportCheckpoint& checkpoint);

// Nothing when there is none. kInvalidArgument, saying what to do, when it is not readable as one, is of
// version 1, was made for another table, store, account, mode or format, or the source has changed before its
// offset.
Result<std::optional<ImportCheckpoint>> LoadCheckpoint(const std::string& source,
                                                       const ImportCheckpoint& expected);

Status RemoveCheckpoint(const std::string& source);

}  // namespace partita
