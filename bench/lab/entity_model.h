#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bench/lab/experiment.h"
#include "bench/lab/query_planner.h"
#include "bench/lab/record_generator.h"

namespace partita::lab {

// Where the records of an experiment lie on one layout, without storing them: the keys of all of them, or of
// a sample of many, and how large their entities are. Says how much a request would scan and return, and what
// that costs (entity_units.h). Immutable; the layout and the generator must outlive it.
//
// A sample is taken evenly, but where records are folded into entities in runs of neighbours: each entity
// counts in the run in which its first record is, so none looks smaller than it is. Records of one entity
// that are more than 8,192 apart are then taken for two.
class EntityModel {
 public:
  EntityModel(const Layout& layout, const RecordGenerator& generator);

  struct Answer {
    double scanned = 0, returned = 0;
    double units = 0;  // What is scanned costs.
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
  // What reading the entity of these keys costs. One that is not among those that were looked at costs what
  // those of the first place in the table do on average.
  double UnitsAt(const std::string& table, const std::string& partition_key,
                 const std::string& row_key) const;

  // The partition of a place whose entities cost most to scan, and its share of what all of them do.
  struct Largest {
    std::string partition_key;
    double share = 0;
  };
  const Largest& largest(size_t place) const { return largest_[place]; }

  // The entities of a place that were looked at, what scanning them costs, and the records that are in them.
  struct Sum {
    double entities = 0, units = 0, records = 0;
    double records_each() const { return entities > 0 ? records / entities : 1; }
  };
  // REQUIRES: the place is no list.
  Sum SumOf(size_t place) const;

  // By the service's formula, of all entities that a record becomes.
  double stored_bytes_per_record() const { return stored_bytes_; }

 private:
  struct Row {
    std::string partition_key, row_key;
    uint64_t record = 0;
    // Of the entity. In a list each record is a row, and this is what it adds to what they share.
    uint64_t bytes = 0;
    friend bool operator<(const Row& a, const Row& b) {
      return a.partition_key != b.partition_key ? a.partition_key < b.partition_key : a.row_key < b.row_key;
    }
  };
  // Records from `first` to below `end`, one of each `step`. Those from `lead` on, before it, only tell which
  // entities have begun; those to below `tail`, behind it, only what else is in these.
  struct Run {
    uint64_t lead = 0, first = 0, end = 0, tail = 0, step = 1;
    uint64_t count() const { return (end - first + step - 1) / step; }
  };
  std::vector<Run> ChooseRuns() const;
  uint64_t SpanOfFolds() const;
  void Take(const Run& run);
  uint64_t SharedBytes(const EntityPlan& plan, const Record& record) const;
  // Takes off what records in one list share.
  void ShareList(size_t place);
  // REQUIRES: the rows are in order.
  void AddUp(size_t place);
  double DistinctShareOf(const EntityPlan& plan) const;

  std::pair<size_t, size_t> FoundBy(size_t entity, const QueryPart& part) const;
  // What reading the one entity costs that these rows are; without any, one as they are on average.
  double UnitsOfOne(size_t place, size_t first, size_t last) const;
  double UnitsOfList(size_t place, size_t first, size_t last) const;
  static Answer FirstOf(const Answer& all, uint64_t top);
  Answer AskOne(size_t entity, const QueryPlan& plan, const QueryPart& part, const Op& op,
                const KnownFields& known, uint64_t top) const;
  // Of the rows [begin, end), which a request finds, the share that its conditions hold for, as `sample` of
  // them tell. REQUIRES: begin < end, sample > 0.
  double MatchesAmong(size_t entity, size_t begin, size_t end, size_t sample, const Op& op,
                      const KnownFields& known) const;
  Largest LargestOf(size_t place) const;

  const Layout& layout_;
  const RecordGenerator& generator_;
  std::vector<std::vector<Row>> rows_;  // Of each place, in the order of keys.
  // Of each place, for each row and the end: what all before it cost together; of a list their bytes.
  std::vector<std::vector<uint64_t>> before_;
  std::vector<uint64_t> taken_;  // Of each place, its records: with folds more than rows.
  std::vector<Largest> largest_;
  double scale_ = 1;  // Records for each that is looked at.
  double stored_bytes_ = 0;
  mutable size_t times_looked_ = 0;  // For matches.
  // Of operations whose conditions are the same each time: by place and keys asked, the share of matches.
  mutable std::map<std::tuple<const Op*, size_t, std::string>, double> shares_;
};

}  // namespace partita::lab
