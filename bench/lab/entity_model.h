#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "bench/lab/experiment.h"
#include "bench/lab/query_planner.h"
#include "bench/lab/record_generator.h"

namespace partita::lab {

// Where the records of an experiment lie on one layout, without storing them: the keys of all of them, or of
// an even sample of many. Says how much a request would scan and return. Immutable; the layout and the
// generator must outlive it.
class EntityModel {
 public:
  EntityModel(const Layout& layout, const RecordGenerator& generator);

  struct Answer {
    double scanned = 0, returned = 0;
  };
  // Of one part of a plan that asks for at most `top` (0: all).
  Answer Ask(const QueryPlan& plan, const QueryPart& part, const Op& op, const KnownFields& known,
             uint64_t top) const;

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
  Answer AskOne(size_t entity, const QueryPlan& plan, const QueryPart& part, const Op& op,
                const KnownFields& known, uint64_t top) const;
  void ShareList(const std::vector<Row>& rows, const std::string& name);
  Largest LargestOf(const std::vector<Row>& rows) const;

  const Layout& layout_;
  const RecordGenerator& generator_;
  std::vector<std::vector<Row>> rows_;  // Of each place, in the order of keys.
  std::vector<Largest> largest_;
  double scale_ = 1;  // Records for each that is looked at.
  double stored_bytes_ = 0;
};

}  // namespace partita::lab
