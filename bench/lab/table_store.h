#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/partita.h"
#include "bench/lab/filter_text.h"
#include "bench/lab/sliced_wait.h"
#include "engine/base/throughput_targets.h"

namespace partita::lab {

// A table store as the lab uses it: the engine in this process, or a service behind an address. Its tables
// are the run's own and go with it. All calls but those of Begin may come from any thread at once.
class TableStore {
 public:
  virtual ~TableStore() = default;

  // Before the run: makes a table, cut at these PartitionKeys where the store has such; and afterwards one
  // call of Settle, behind the last write.
  virtual Status MakeTable(const std::string& name, const std::vector<std::string>& splits) = 0;
  // Writes records, no two of one key, as fast as it can; nobody else does anything. kCancelled when
  // `goes_on` says so.
  virtual Status Load(const std::string& table, std::vector<Write> writes, const GoesOn& goes_on) = 0;
  // From here on limits are in force, if they are the store's to set; where they are not, nothing that was
  // loaded counts against them any more. kCancelled as Load.
  virtual Status Settle(const ThroughputTargets& limits, const GoesOn& goes_on) = 0;
  // So that splits can be chosen.
  virtual uint32_t pieces() const = 0;

  // One request each. kThrottled: with the wait that was told; kNotFound: there is no such entity. An
  // entity's etag() is that of the state that was read; a write with if_match is kPreconditionFailed when it
  // has another.
  virtual Result<Entity> Get(const std::string& table, const std::string& partition_key,
                             const std::string& row_key) = 0;
  // Of its properties those named, which are some; its keys and etag() may be missing then.
  virtual Result<Entity> GetSelected(const std::string& table, const std::string& partition_key,
                                     const std::string& row_key, const std::vector<std::string>& select) = 0;
  struct Answer {
    std::vector<Entity> entities;     // Without what was not asked for: see wants_properties.
    uint64_t bytes = 0;               // Of the answer.
    std::optional<uint64_t> scanned;  // What the store says it looked at; nothing: it does not say.
    std::string continuation;         // Empty: nothing is left.
  };
  struct Question {
    FilterText filter;
    uint64_t top = 0;  // 0: as many as a page holds.
    bool wants_properties = false;
    std::vector<std::string> select;  // Empty: all properties.
    std::string continuation;
  };
  virtual Result<Answer> Query(const std::string& table, const Question& question) = 0;
  // One write, or several as a transaction.
  virtual Status Transact(const std::string& table, const std::vector<Write>& writes) = 0;
};

}  // namespace partita::lab
