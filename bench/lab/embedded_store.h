#pragma once
#include <map>
#include <memory>
#include <string>

#include "api/async_database.h"
#include "bench/lab/experiment.h"
#include "bench/lab/table_store.h"

namespace partita::lab {

// A new store on this machine; the directory that Open made is removed with it.
class EmbeddedStore final : public TableStore {
 public:
  // `directory` must not exist: kAlreadyExists, and it is left alone.
  static Result<std::unique_ptr<EmbeddedStore>> Open(const std::string& directory,
                                                     const Experiment& experiment, IoBackend io_backend);
  ~EmbeddedStore() override;

  Status MakeTable(const std::string& name, const std::vector<std::string>& splits) override;
  Status Load(const std::string& table, std::vector<Write> writes, const GoesOn& goes_on) override;
  Status Settle(const ThroughputTargets& limits, const GoesOn& goes_on) override;
  uint32_t pieces() const override { return database_->open_report().shards; }
  Result<Entity> Get(const std::string& table, const std::string& partition_key,
                     const std::string& row_key) override;
  // By a query, since a get of the engine has no choice of properties.
  Result<Entity> GetSelected(const std::string& table, const std::string& partition_key,
                             const std::string& row_key, const std::vector<std::string>& select) override;
  // Looks at, counts and is charged what the table service would be, whatever this engine could spare.
  Result<Answer> Query(const std::string& table, const Question& question) override;
  Status Transact(const std::string& table, const std::vector<Write>& writes) override;

 private:
  explicit EmbeddedStore(std::string directory) : directory_(std::move(directory)) {}

  const std::string directory_;
  std::unique_ptr<Database> database_;
  std::map<std::string, Table> tables_;
  std::map<std::string, AsyncTable> queried_;  // The same, to be queried as the service is.
};

}  // namespace partita::lab
