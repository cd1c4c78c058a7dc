#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "bench/lab/draw.h"
#include "bench/lab/experiment.h"
#include "bench/lab/record.h"

namespace partita::lab {

// Ranks 0 to n - 1, k in proportion to 1 / (k + 1)^theta (after Gray and others, 1994). Making one takes time
// in proportion to n. Immutable.
class ZipfRanks {
 public:
  // REQUIRES: n > 0, 0 < theta < 1.
  ZipfRanks(uint64_t n, double theta);
  // For a number drawn from [0, 1).
  uint64_t Of(double uniform) const;

 private:
  double n_, theta_, zeta_ = 0, eta_ = 0;
};

// Makes the records of an experiment: the k-th is a function of the seed and k, so none is kept. It does not
// know layouts or targets. Immutable, so any thread may use it; the experiment must outlive it.
class RecordGenerator {
 public:
  explicit RecordGenerator(const Experiment& experiment);

  void Make(uint64_t number, Record* record) const;
  // Another value for a field of it, drawn by `salt`.
  PropertyValue ValueAnew(size_t field, uint64_t number, uint64_t salt) const;

  const Experiment& experiment() const { return experiment_; }

 private:
  PropertyValue ValueOf(size_t field, uint64_t number, uint64_t salt) const;
  std::string Text(const Field& field, Draw draw) const;

  const Experiment& experiment_;
  std::vector<uint64_t> seeds_;      // A field's values depend on its name, not on its place.
  std::vector<ZipfRanks> zipfs_;     // One for each field of that kind,
  std::vector<size_t> zipf_of_;      // found here.
  std::vector<double> weight_sums_;  // Of choices.
};

}  // namespace partita::lab
