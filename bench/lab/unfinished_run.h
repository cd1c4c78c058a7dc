#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/lab/cell.h"
#include "engine/base/result.h"

namespace partita::lab {

// What a run is a run of: only with all of it alike do its cells belong together. Texts of one line.
struct RunIdentity {
  std::string experiment;  // Hash of the file and of what it draws in.
  std::string seed, target;
  std::string io;     // How the disk is reached; "-" where the target is elsewhere.
  std::string build;  // Of the program.
};

// A table of a run in a table service.
struct RemoteTable {
  std::string endpoint, name;  // Without spaces.
  friend bool operator==(const RemoteTable&, const RemoteTable&) = default;
};

// Of this program: its version, and the hash of its file.
std::string BuildOfProgram();

// The cells that a run has done so far, kept in a directory below its results, so that one that was
// interrupted, killed, or lost its power can go on.
//
//   unfinished/run           what it is a run of; without it nothing was kept
//   unfinished/cell-000007   the eighth cell (cell_file.h)
//   unfinished/work-XXXXXX   the stores of the cell under way
//   unfinished/tables        the tables in a table service that were made, or may have been, and are not gone
//   unfinished/lock          locked while a process runs it, which also ends with the process
//
// Each file gets its name when it is whole and on the disk, so whatever happens leaves the cells that were
// done, or nothing. Used by one thread.
class UnfinishedRun {
 public:
  enum class Start : uint8_t {
    kNew,     // Where cells are kept already, it is refused.
    kResume,  // Goes on with those that are kept, if there are any.
    kAnew,    // Drops them.
  };
  // Below `parent`, which is made where it is missing. kBusy: a process runs it. kAlreadyExists: see kNew.
  // kPreconditionFailed: what is kept is of a run of something else, and what differs. kIoError.
  static Result<UnfinishedRun> Open(const std::string& parent, const RunIdentity& identity, Start start);
  UnfinishedRun(UnfinishedRun&& other) noexcept;
  UnfinishedRun& operator=(UnfinishedRun&&) = delete;
  // Leaves what is kept; nothing when that is nothing.
  ~UnfinishedRun();

  // Whether this very run was begun before, though it may have kept no cell.
  bool was_begun() const { return was_begun_; }
  // Those that were done before, from the first one on without a gap.
  const std::vector<CellFigures>& kept() const { return kept_; }
  // So many are kept by now.
  size_t kept_count() const { return kept_count_; }
  // The next one. When it returns, no loss of power takes it back.
  Status Keep(const CellFigures& cell);
  // The run is whole and its results are written.
  void Remove();

  // Before a table is made there: so that whoever goes on with this run, or begins anew, can drop it.
  Status NoteTable(const RemoteTable& table);
  void TableIsGone(const RemoteTable& table);
  // Those of runs that ended before they were gone.
  const std::vector<RemoteTable>& tables() const { return tables_; }
  const std::string& path() const { return path_; }

 private:
  explicit UnfinishedRun(std::string path) : path_(std::move(path)) {}
  Status Lock();
  Status Begin(const RunIdentity& identity, Start start);
  void ReadCells();
  void ReadTables();
  Status WriteTables() const;
  std::string CellPath(size_t number) const;
  // All that a run puts here, but for its lock and, of its cells, those that count.
  void Clean();

  const std::string path_;
  int lock_ = -1;     // -1: moved from.
  uint64_t run_ = 0;  // Stands in each cell.
  bool was_begun_ = false;
  std::vector<RemoteTable> tables_;
  std::vector<CellFigures> kept_;
  size_t kept_count_ = 0;
};

}  // namespace partita::lab
