#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/lab/entity_model.h"
#include "bench/lab/experiment.h"
#include "bench/lab/key_rows.h"
#include "bench/lab/read_planner.h"
#include "bench/lab/record_generator.h"
#include "bench/lab/table_store.h"
#include "bench/lab/timeline.h"
#include "bench/lab/write_planner.h"

namespace partita::lab {

// What one operation did.
struct Outcome {
  Status status;            // Of the last request; kThrottled: it was dropped.
  bool throttled = false;   // At the first try,
  bool by_account = false;  // by the account's target.
  bool missing = false;     // What it was about was not there.
  uint64_t requests = 0, scanned = 0, returned = 0, written = 0, bytes = 0;
  bool tells_scanned = true;    // False: `scanned` is no more than what is known of it.
  bool client_filters = false;  // `returned` is what came, of which the client filters what it wants.
  std::vector<Touch> touches;   // One for each request, its tries together.
};

// A store with the records of an experiment on one layout, and the client that knows the layout. Execute may
// be called from any thread. The layout and the generator must outlive it.
class Target {
 public:
  // Makes the tables and loads the records, without limits; then puts the limits in force. `loading` is told
  // some times a second, on this thread, which share is loaded, and false stops: kCancelled.
  // `stop`, which must outlive it, ends the waits of Execute.
  static Result<std::unique_ptr<Target>> Make(std::unique_ptr<TableStore> store, const Layout& layout,
                                              const RecordGenerator& generator, const std::atomic<bool>& stop,
                                              const std::function<bool(double share)>& loading);

  // Does the operation, as a client would that knows the layout.
  Outcome Execute(const Operation& operation) const;
  const Layout& layout() const { return layout_; }
  const KeyRows& key_rows() const { return key_rows_; }

 private:
  Target(std::unique_ptr<TableStore> store, const Layout& layout, const RecordGenerator& generator,
         const std::atomic<bool>& stop);

  Status MakeTables();
  Status Load(const std::function<bool(double share)>& loading);
  // One entity. kNotFound, which costs as well.
  Result<Entity> Get(const std::string& table, const std::string& partition_key, const std::string& row_key,
                     Outcome* outcome) const;
  // The same of an entity of the layout, with what the operation wants of it.
  Result<Entity> GetWanted(const Op& op, size_t entity, const std::string& partition_key,
                           const std::string& row_key, Outcome* outcome) const;
  Status Read(const Op& op, const Operation& operation, Outcome* outcome) const;
  Status ReadPart(const Op& op, const QueryPart& part, uint64_t top, const QueryPlan& plan,
                  Outcome* outcome) const;
  // The names of the properties that are wanted of such an entity; empty: all.
  std::vector<std::string> SelectOf(const Op& op, size_t entity) const;
  // What an entity that it looks at costs, on average: no store tells the sizes of what it does not return.
  double UnitsEach(const QueryPart& part) const;
  // The record that an index entity leads to.
  Status LookUp(const Op& op, const Entity& index_entry, Outcome* outcome) const;
  // The records that an index entity lists, until the operation has `top` (0: all); `known` holds what else
  // their keys are made of.
  Status ReadList(const Op& op, const EntityPlan& place, const QueryPart& part, Record known, uint64_t top,
                  Outcome* outcome) const;
  Status LookUpRecord(const Op& op, const Record& record, Outcome* outcome) const;
  // Reads a record and notes its ETag in the write of it.
  Status ReadFirst(WriteRequestPlan* request, Outcome* outcome) const;
  // A request that must not be done when somebody else came first is done again.
  Status Modify(const Op& op, const Operation& operation, Outcome* outcome) const;
  Status ChangeList(const WriteRequestPlan& request, Outcome* outcome) const;
  Status WriteAll(const Op& op, const Operation& operation, Outcome* outcome) const;
  Status Write(const WriteRequestPlan& request, Outcome* outcome) const;
  // Repeats what is throttled as the experiment says. Its keys lie in `rows`; what it cost stands in the last
  // of the outcome's touches, where the caller adds the units.
  Status Try(KeyRows::Span rows, const std::function<Status()>& request, Outcome* outcome) const;

  const std::unique_ptr<TableStore> store_;
  const Layout& layout_;
  const RecordGenerator& generator_;
  const std::atomic<bool>& stop_;
  const KeyRows key_rows_;
  std::optional<ReadPlanner> planner_;  // Where something is read.
  std::vector<EntityModel::Sum> sums_;  // Of each place that can be scanned; empty: nothing is.
};

}  // namespace partita::lab
