#pragma once
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/http/signature.h"
#include "bench/lab/connection_string.h"
#include "bench/lab/experiment.h"
#include "bench/lab/http_link.h"
#include "bench/lab/table_store.h"
#include "bench/lab/unfinished_run.h"

namespace partita::lab {

// kInvalidArgument: with what a run adds to it, the name of the table is longer than the service takes.
Status CheckRemoteTable(const std::string& name);
// Whether a run made the table, by the name.
bool IsLabTable(const std::string& name);

// A table service behind a connection string: partita serve, Azurite, or the cloud. Tables get names that no
// other has (lab and a random word behind the experiment's), and are deleted at the end. Throughput targets
// are the service's own. Requests are signed (SharedKey) or carry the signature they were given (SAS);
// connections are kept and used again, one for each call in flight.
class HttpStore final : public TableStore {
 public:
  // Asks nothing yet. `fields` must outlive it. `warn` is told at the end which tables could not be deleted.
  // `unfinished`, which must outlive it, knows of its tables from before they are made until they are gone;
  // null: nobody does. kInvalidArgument: the key is no base64.
  static Result<std::unique_ptr<HttpStore>> Make(const Connection& connection,
                                                 const std::vector<Field>& fields,
                                                 std::function<void(const std::string&)> warn,
                                                 UnfinishedRun* unfinished = nullptr);
  ~HttpStore() override;

  Status MakeTable(const std::string& name, const std::vector<std::string>& splits) override;
  Status Load(const std::string& table, std::vector<Write> writes, const GoesOn& goes_on) override;
  // Waits until what was loaded has flowed back into the buckets of the service.
  Status Settle(const ThroughputTargets& limits, const GoesOn& goes_on) override;
  uint32_t pieces() const override { return 1; }
  Result<Entity> Get(const std::string& table, const std::string& partition_key,
                     const std::string& row_key) override;
  Result<Entity> GetSelected(const std::string& table, const std::string& partition_key,
                             const std::string& row_key, const std::vector<std::string>& select) override;
  Result<Answer> Query(const std::string& table, const Question& question) override;
  Status Transact(const std::string& table, const std::vector<Write>& writes) override;

  // Tables there whose names runs of the lab gave, this one's and others'.
  Result<std::vector<std::string>> LabTables();
  // What is not there any more, or never was, is deleted.
  Status DeleteTable(const std::string& there);

 private:
  HttpStore(const Connection& connection, const std::vector<Field>& fields,
            std::function<void(const std::string&)> warn, UnfinishedRun* unfinished)
      : connection_(connection), fields_(fields), warn_(std::move(warn)), unfinished_(unfinished) {}

  struct Request {
    std::string method, resource;  // "GET", "Lab(PartitionKey='a',RowKey='b')".
    std::string query;             // Behind the question mark; may be empty.
    std::string body, content_type = "application/json", headers;
  };
  // Sends it on a connection of its own for so long. Any answer is an answer.
  Result<HttpAnswer> Ask(const Request& request);
  std::string TextOf(const Request& request) const;
  std::string Signature(const Request& request, const std::string& date) const;
  Request RequestOf(const std::string& table, const Write& write) const;
  Status Batch(const std::string& table, const std::vector<Write>& writes);
  std::string UrlOf(const Request& request) const { return connection_.path + "/" + request.resource; }

  const Connection connection_;
  const std::vector<Field>& fields_;
  const std::function<void(const std::string&)> warn_;
  UnfinishedRun* const unfinished_;
  std::optional<http::SigningKey> key_;
  bool has_loaded_ = false;
  std::map<std::string, std::string> names_;  // Of the experiment's tables, there; also of what may be there.
  std::mutex mutex_;                          // Of what follows.
  std::vector<std::unique_ptr<HttpLink>> idle_;
};

}  // namespace partita::lab
