#pragma once
#include <optional>
#include <string>

#include "api/cli/import_pipeline.h"
#include "engine/base/result.h"
#include "engine/inspect.h"

namespace partita {

// What lets an interrupted import go on: a small text file SOURCE.partita-resume beside the source. Where
// that cannot be written the import goes on without, and says so.
//
//   partita-resume 3
//   table Packages
//   store /absolute/path/of/store
//   store_id 5f0c...      with the next two: whether the store still has what was imported
//   incarnation 12
//   table_created 133801234567890123
//   account devstoreaccount1
//   mode put
//   format csv
//   offset 1048576        everything before it was imported or refused, and is durable
//   line 1201             the line that starts there
//   imported 1190
//   bad 10
//   before 8c5f...        hash of the (at most) 4 KiB before the offset: another file shows
//
// Version 1 had neither account nor mode, version 2 not the three lines behind the store. They are refused:
// going on into another account, or into a store or table made anew or put back to an earlier state, would
// leave out what it does not have.
struct ImportCheckpoint {
  std::string table;
  std::string store;
  TableOrigin origin;
  std::string account;
  std::string mode;  // As ImportFlags has it.
  std::string format;
  ImportPosition position;
};

std::string CheckpointPath(const std::string& source);

// Replaces the file atomically and durably. `source` is read for the hash.
Status SaveCheckpoint(const std::string& source, const ImportCheckpoint& checkpoint);

// Nothing when there is none. kInvalidArgument, saying what to do, when it is not readable as one, is of
// an earlier version, was made for another table, store, account, mode or format, the store or the table is
// not what it was any more, or the source has changed before its offset.
Result<std::optional<ImportCheckpoint>> LoadCheckpoint(const std::string& source,
                                                       const ImportCheckpoint& expected);

// Durably: one that comes back by a loss of power would pass for the next import's.
Status RemoveCheckpoint(const std::string& source);

}  // namespace partita
