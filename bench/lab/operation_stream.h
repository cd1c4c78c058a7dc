#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/lab/experiment.h"
#include "bench/lab/record_generator.h"

namespace partita::lab {

// One thing that the application does: which of the experiment's operations, and with which records.
struct Operation {
  uint64_t number = 0;
  size_t op = 0;
  uint64_t record = 0;    // The first new one, or the one that was chosen.
  uint32_t records = 1;   // New ones.
  uint64_t existing = 0;  // How many there are before it.
  uint64_t limit = 0;     // Of a query whose limit is drawn.

  uint64_t LimitOf(const Op& asked) const { return asked.limit_pareto ? limit : asked.limit; }
};

// The operations of an experiment, one after another: a function of its seed and its number of clients, the
// same for every layout, rate and target. Used by one thread; the generator must outlive it.
//
// A record is chosen among those there were so many operations ago as there are clients, because what was
// written since may still be under way. One that is written for longer than that can still be missed.
class OperationStream {
 public:
  explicit OperationStream(const RecordGenerator& generator);
  Operation Next();
  // One of this operation, however rarely it comes.
  Operation NextOf(size_t op);

 private:
  Draw NextDraw() const;
  Operation Make(size_t of, Draw* draw);
  uint64_t PickRecord(size_t op, uint64_t settled, Draw* draw);
  uint64_t PickFromRanges(size_t op, uint64_t settled, Draw* draw) const;

  const Experiment& experiment_;
  const double weight_sum_;
  std::vector<std::optional<ZipfRanks>> ranks_;     // Of each operation that picks so,
  std::vector<std::vector<double>> range_weights_;  // up to and with each range, where those are picked.
  uint64_t next_ = 0;
  uint64_t existing_;
  std::vector<uint64_t> existing_then_;  // Behind each of the last operations, as many as clients.
};

// XXH3-64 over what the operations ask for and the first `count` of them, with every value of their records:
// the same figure says that two runs did the same, byte for byte.
uint64_t HashOfStream(const RecordGenerator& generator, uint64_t count);

}  // namespace partita::lab
