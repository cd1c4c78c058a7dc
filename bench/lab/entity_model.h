#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "bench/lab/experiment.h"
#include "bench/lab/query_planner.h"
#include "bench/lab/record_generator.h"

namespace partita::lab {

// Where the records of an experiment lie on one layout, without storing them: the keys of all of them, or of
// a sample of many. Says how much a request would scan and return. Immutable; the layout and the generator
// must outlive it.
//
// A sample is taken evenly, but where records are folded into entities in runs of neighbours: each entity
// counts in the run in which its first record is, so none looks smaller than it is. Records of one entity
// that are more than 8,192 apart are then taken for two.
class EntityModel {
 public:
  EntityModel(const Layout& layout, const RecordGenerator& generator);

  struct Answer {
    double scanned = 0, returned = 0;
  };
  // Of one part of a plan that asks for at most `top` (0: all).
  Answer Ask(const QueryPlan& plan, const QueryPart& part, const Op& op, const KnownFields& known,
             uint64_t top) const;

  // The records that a part of a plan finds, of which it returns `returned`: each of them, or some that stand
  // for as many others, told with how many in all.
  void VisitFound(const QueryPart& part, const Op& op, const KnownFields& known, double returned,
                  const std::function<void(const Record& record, double count)>& visit) const;
  bool is_sample() const { return scale_ > 1; }
  // Which share of all records of a place lie in the partition.
  double ShareOf(size_t place, const std::string& partition_key) const;

  // The partition of a place with the most records, and its share of them.
  struct Largest {
    std::string partition_key;
    double share = 0;
  };
  const Largest& largest(size_t place) const { return largest_[place]; }

  // By the service's formula, of all entities that a record becomes.
  double stored_bytes_per_record() const { return stored_bytes_; }

 private:
  struct Row {
    std::string partition_key, row_key;
    uint64_t record;
    friend bool operator<(const Row& a, const Row& b) {
      return a.partition_key != b.partition_key ? a.partition_key < b.partition_key : a.row_key < b.row_key;
    }
  };
  // Records from `first` to below `end`, each `step`-th. Those from `lead` on, before it, only tell which
  // entities have begun.
  struct Run {
    uint64_t lead = 0, first = 0, end = 0, step = 1;
    uint64_t count() const { return (end - first + step - 1) / step; }
  };
  std::vector<Run> ChooseRuns() const;
  uint64_t SpanOfFolds() const;
  void Take(const Run& run);
  uint64_t SharedBytes(const EntityPlan& plan, const Record& record) const;
  // Takes off what records in one list share.
  void ShareList(size_t place);
  double DistinctShareOf(const EntityPlan& plan) const;

  std::pair<size_t, size_t> FoundBy(size_t entity, const QueryPart& part) const;
  Answer AskOne(size_t entity, const QueryPlan& plan, const QueryPart& part, const Op& op,
                const KnownFields& known, uint64_t top) const;
  Largest LargestOf(const std::vector<Row>& rows) const;

  const Layout& layout_;
  const RecordGenerator& generator_;
  std::vector<std::vector<Row>> rows_;  // Of each place, in the order of keys.
  std::vector<Largest> largest_;
  double scale_ = 1;  // Records for each that is looked at.
  double stored_bytes_ = 0;
};

}  // namespace partita::lab
