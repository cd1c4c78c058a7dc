#pragma once
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "bench/lab/experiment.h"
#include "bench/lab/ordered_store.h"
#include "bench/lab/table_store.h"
#include "engine/base/ids.h"

namespace partita::lab {

// Tables over an engine that knows bytes only, done as one would who has to: keys and rows are encoded as
// partita's (user_key.h: in the order of UTF-16 code units, a table's number in front; entity_record.h behind
// 8 bytes of time), queries planned and filtered by the same code. What a condition or a merge needs is read
// under locks of the rows, which all writers take. There are no throughput targets.
//
// The directory that Open made is removed with it.
class OrderedTableStore final : public TableStore {
 public:
  // A new store of `engine` ("rocksdb") in `directory`, which must not exist. kUnsupported: it is not
  // installed.
  static Result<std::unique_ptr<OrderedTableStore>> Open(const std::string& engine,
                                                         const std::string& directory,
                                                         const Experiment& experiment);
  ~OrderedTableStore() override;

  Status MakeTable(const std::string& name, const std::vector<std::string>& splits) override;
  Status Load(const std::string& table, std::vector<Write> writes, const GoesOn& goes_on) override;
  Status Settle(const ThroughputTargets& limits, const GoesOn& goes_on) override;
  uint32_t pieces() const override { return 1; }
  Result<Entity> Get(const std::string& table, const std::string& partition_key,
                     const std::string& row_key) override;
  Result<Entity> GetSelected(const std::string& table, const std::string& partition_key,
                             const std::string& row_key, const std::vector<std::string>& select) override;
  Result<Answer> Query(const std::string& table, const Question& question) override;
  Status Transact(const std::string& table, const std::vector<Write>& writes) override;

 private:
  struct Page;
  explicit OrderedTableStore(std::string directory) : directory_(std::move(directory)) {}

  // What it makes of the row that is there.
  Result<OrderedStore::Change> ChangeOf(TableId table, const Write& write);
  Status ScanInterval(const std::string& lower, const std::string& upper, Page* page);
  std::vector<std::unique_lock<std::mutex>> LockRows(const std::vector<std::string>& keys);

  const std::string directory_;
  std::unique_ptr<OrderedStore> store_;
  std::map<std::string, TableId> tables_;
  std::array<std::mutex, 1024> row_locks_;  // Rows share them by their hash; taken by rising index.
};

}  // namespace partita::lab
