#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/lab/experiment.h"
#include "bench/lab/record_generator.h"
#include "bench/lab/refusal.h"

namespace partita::lab {

// What an operation does on a layout, told from the experiment alone: averages over a sample of the operation
// stream. Nothing is stored.
struct OpPrediction {
  std::string plan;             // Of reads: point, row-range, ... of the first of them.
  std::string filter;           // As it is sent; the first request of an example.
  std::string from;             // The copy that is read; empty: the record itself.
  size_t entity = 0;            // That of the layout which is read.
  bool lookups = false;         // What is found leads to the record, by a point read each.
  bool sorts = false;           // The client must read all and sort.
  bool client_filters = false;  // What comes, which is `returned`: what is folded cannot be asked for.
  double partitions = 0;        // Touched.
  double requests = 0;          // Transactions, as billed.
  double scanned = 0, returned = 0, written = 0;
  // Of what the hottest partition of the layout is asked for, in units, and of what all of them are.
  double hottest_share = 0, account_share = 0;
  double largest_transaction = 0;  // Of writes: operations of the largest one.
  bool atomic = true;              // All of an operation's writes are one transaction.
  double density() const { return scanned > 0 ? returned / scanned : 1; }
};

// The operation that asks for most at once, and of which partition.
struct LargestOperation {
  size_t op = 0;
  double units = 0;  // Until its last request, which a bucket that holds a token lets through.
  std::string partition;
};

struct LayoutPrediction {
  double rate = 0;  // Operations a second that it is for, as Prediction::rate, by the layout's arrival.
  std::vector<OpPrediction> ops;
  double stored_bytes = 0;  // For each record, by the service's formula.
  // What counts against the targets, in units (entity_units.h): of the partition with the most its share of
  // all, and at the experiment's highest rate units a second of it and of all; 0 where no rate is known.
  // Where many partitions are asked for alike, so that chance decides which has the most of a sample, it is
  // what one of these has in the long run, about.
  std::string hottest_partition;
  size_t hottest_entity = 0;  // That of the layout whose partition it is.
  double hottest_share = 0;
  double hottest_rate = 0, account_rate = 0;
  // Of that partition by a partition's target, and of all by the account's.
  std::optional<Refusal> partition_refusal, account_refusal;
  LargestOperation largest_in_partition, largest_in_all;
};

struct Prediction {
  // Operations a second that it is for (Arrival::HighestRate) where a layout has no arrival of its own. 0:
  // that of a closed loop, which is known when it has run.
  double rate = 0;
  std::vector<LayoutPrediction> layouts;
};

Prediction Predict(const RecordGenerator& generator);

// What a run leaves out of a replay because it ends before, a line; empty: nothing.
std::string LeftOutText(const Arrival& arrival);

// What of a layout's rates the targets refuse only after the warm-up, because they let two seconds' worth
// through first, and then for as long as it lasts: a sentence. Empty: nothing.
std::string AllowanceText(const Experiment& experiment, const LayoutPrediction& told);

// An operation that asks for more than a target saves up, so that it is refused however seldom it comes.
struct Oversized {
  size_t op = 0;
  std::string text;  // A sentence.
};
// Of a layout the largest by each target, where it is one.
std::vector<Oversized> OversizedOf(const Experiment& experiment, const LayoutPrediction& told);

// For people: a block for each layout.
std::string PredictionText(const Experiment& experiment, const Prediction& prediction);

}  // namespace partita::lab
