#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <unordered_set>
#include <vector>

#include "api/cli/commands.h"
#include "api/cli/expected_packages.h"
#include "api/partita.h"

namespace partita {

// The main job on real input, step by step. Each step says what it did, and is an error when the answer
// was not the right one:
//
//   read the index · import it · parse it again on its own · point reads · a row range, both ways ·
//   a partition · a count · a filter on properties and its plan · updates by ETag · a transaction of 100 and
//   a refused one · (not with --smoke: compaction, and what was written how often) · a restart · every
//   property of every entity compared, both ways · verify
//
// What is expected never comes from the reader that imported, but from ExpectedPackages. Leaves the table
// `Packages` as imported. One use, one thread.
class Demo {
 public:
  Demo(const StoreFlags& store, const DemoFlags& flags, Console& console);

  // Runs all steps until one fails. kFindings: it found an answer to be wrong; kFailed: it could not be done.
  ExitCode Run();

 private:
  // A step returns what it did, in a line.
  using Step = std::function<Result<std::string>()>;
  bool RunStep(const std::string& name, const Step& step);

  Result<std::string> ReadIndex();
  Result<std::string> Open();
  Result<std::string> Import();
  Result<std::string> ParseAgain();
  Result<std::string> ReadPoints();
  Result<std::string> ReadRowRange();
  Result<std::string> ReadPartition();
  Result<std::string> Count();
  Result<std::string> FilterByProperties();
  Result<std::string> UpdateByEtag();
  Result<std::string> Transact();
  Result<std::string> RefuseTransaction();
  Result<std::string> Restart();
  Result<std::string> CompareAll();
  Result<std::string> Verify();
  Result<std::string> Compact();

  // All entities within the bounds, page by page.
  Result<std::vector<Entity>> ScanAll(ScanOptions options) const;
  Status ExpectRows(const std::vector<Entity>& found, const std::vector<std::string>& rows) const;
  // The first 100 entities of the largest partition.
  Result<std::vector<Entity>> HundredEntities() const;

  StoreFlags store_flags_;
  const DemoFlags flags_;
  Console& console_;
  static constexpr int kPreparations = 4;  // The steps that compare nothing.
  int step_ = 0;
  bool is_wrong_ = false;  // A step found an answer to be wrong, or damage.
  std::string index_;
  std::unordered_set<uint64_t> bad_lines_;
  ExpectedPackages expected_;
  std::string partition_;  // The largest.
  std::unique_ptr<Database> database_;
  std::optional<Table> table_;
  std::mt19937_64 random_{20260101};
};

}  // namespace partita
