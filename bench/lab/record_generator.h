#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "bench/lab/draw.h"
#include "bench/lab/experiment.h"
#include "bench/lab/record.h"
#include "bench/lab/zipf_ranks.h"

namespace partita::lab {

// A size or count, 0 at least.
double DrawPareto(const Pareto& pareto, Draw* draw);

// Makes the records of an experiment: the k-th is a function of the seed and k, so none is kept. It does not
// know layouts or targets. Immutable, so any thread may use it; the experiment must outlive it.
class RecordGenerator {
 public:
  explicit RecordGenerator(const Experiment& experiment);

  void Make(uint64_t number, Record* record) const;
  // One of its fields.
  PropertyValue ValueAt(size_t field, uint64_t number) const { return ValueOf(field, number, 0); }
  // Another value for a field of it, drawn by `salt`.
  PropertyValue ValueAnew(size_t field, uint64_t number, uint64_t salt) const;

  const Experiment& experiment() const { return experiment_; }

 private:
  // Behind the last row of an imported file its rows come again.
  uint64_t RowOf(uint64_t number) const { return number % experiment_.imported->rows(); }
  DateTime TimeOf(const Field& field, uint64_t number, Draw draw) const;
  double NumberOf(const Field& field, uint64_t number, Draw draw) const;
  std::string TemplateText(const Field& field, uint64_t number) const;
  PropertyValue ColumnOf(const Field& field, uint64_t row) const;
  PropertyValue ValueOf(size_t field, uint64_t number, uint64_t salt) const;
  std::string Text(const Field& field, Draw draw) const;

  const Experiment& experiment_;
  std::vector<uint64_t> seeds_;      // A field's values depend on its name, not on its place.
  std::vector<ZipfRanks> zipfs_;     // One for each field of that kind,
  std::vector<size_t> zipf_of_;      // found here.
  std::vector<double> weight_sums_;  // Of choices.
};

}  // namespace partita::lab
