#include "bench/lab/explain.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "api/limits.h"
#include "bench/lab/entity_model.h"
#include "bench/lab/entity_units.h"
#include "bench/lab/operation_stream.h"
#include "bench/lab/read_planner.h"
#include "bench/lab/result_text.h"
#include "bench/lab/write_planner.h"

namespace partita::lab {
namespace {

// Operations that are looked at: enough for one second of most rates, and little time; of each kind so many.
constexpr uint64_t kOperationsMin = 500, kOperationsMax = 10'000, kOfEachMin = 100;
// Records of a sample that say in which partitions the others are for which they stand.
constexpr double kSampleTrusted = 8;

// Table and PartitionKey.
using Partition = std::pair<std::string, std::string>;

// What a partition is asked for, in units by operation of the experiment, in each half of a sample; and the
// squares of what each operation of the sample asks it for.
struct Asked {
  std::array<std::vector<double>, 2> halves;
  std::vector<double> squares;
};

// Which half an operation of the sample belongs to: not by turns and not one half behind the other, for so
// may what they ask for go over the partitions.
size_t HalfOf(size_t number) { return (number * 0x9e3779b97f4a7c15) >> 63; }

// The operations that are looked at, and how many each of the experiment's has among them. They stand for as
// many as its weight says: what is rare is looked at as well.
struct OperationSample {
  std::vector<Operation> operations;
  std::vector<uint64_t> counts;

  OperationSample(const RecordGenerator& generator, double rate) : counts(generator.experiment().ops.size()) {
    OperationStream stream(generator);
    const auto count = std::clamp(static_cast<uint64_t>(rate), kOperationsMin, kOperationsMax);
    for (uint64_t i = 0; i < count; ++i) Take(stream.Next());
    for (size_t op = 0; op < counts.size(); ++op) {
      if (counts[op] >= kOfEachMin) continue;
      OperationStream more(generator);
      while (counts[op] < kOfEachMin) Take(more.NextOf(op));
    }
  }
  void Take(const Operation& operation) {
    ++counts[operation.op];
    operations.push_back(operation);
  }
};

// Follows operations on one layout, and adds up what they would do.
class Predictor {
 public:
  Predictor(const Layout& layout, const RecordGenerator& generator)
      : layout_(layout),
        generator_(generator),
        model_(layout, generator),
        planner_(layout, generator, model_) {
    prediction_.ops.resize(generator.experiment().ops.size());
    elsewhere_.resize(prediction_.ops.size());
    prediction_.stored_bytes = model_.stored_bytes_per_record();
  }

  // `rate`: operations a second; 0: not known.
  LayoutPrediction Follow(const OperationSample& sample, double rate) {
    for (size_t number = 0; number < sample.operations.size(); ++number) {
      const Operation& operation = sample.operations[number];
      const Op& op = generator_.experiment().ops[operation.op];
      followed_ = operation.op;
      half_ = HalfOf(number);
      asked_.clear();
      asked_in_all_ = 0;
      if (op.reads()) {
        FollowRead(op, operation, &prediction_.ops[operation.op]);
      } else {
        FollowWrites(op, operation, &prediction_.ops[operation.op]);
      }
    }
    for (size_t op = 0; op < sample.counts.size(); ++op) {
      OpPrediction& told = prediction_.ops[op];
      for (double* sum : {&told.partitions, &told.requests, &told.scanned, &told.returned, &told.written}) {
        *sum /= static_cast<double>(sample.counts[op]);
      }
    }
    SumHeat(sample, rate);
    return std::move(prediction_);
  }

 private:
  // What each of the operations asks for, where they asked for so many units in all, by one that arrives.
  std::vector<double> MeansOf(const std::vector<double>& units, const OperationSample& sample) const {
    const Experiment& experiment = generator_.experiment();
    std::vector<double> means;
    for (size_t op = 0; op < units.size(); ++op) {
      means.push_back(units[op] / static_cast<double>(sample.counts[op]) * experiment.ops[op].weight /
                      experiment.weight_sum());
    }
    return means;
  }
  // A partition and what it is asked for by one operation that arrives, which is one of each kind as often as
  // its weight says.
  struct Hot {
    const Partition* partition = nullptr;
    std::vector<double> by_op;
    std::array<double, 2> in_half = {};
    double deviation = 0;  // How much of it, about, another sample might have more or less.
    double sum() const { return in_half[0] + in_half[1]; }
  };
  Hot HeatOf(const Partition& partition, const Asked& asked, const OperationSample& sample) const {
    Hot hot{.partition = &partition, .by_op = MeansOf(asked.halves[0], sample)};
    const std::vector<double> second = MeansOf(asked.halves[1], sample);
    hot.in_half = {std::accumulate(hot.by_op.begin(), hot.by_op.end(), 0.0),
                   std::accumulate(second.begin(), second.end(), 0.0)};
    std::transform(hot.by_op.begin(), hot.by_op.end(), second.begin(), hot.by_op.begin(), std::plus<>());
    std::vector<double> roots;
    for (const double square : asked.squares) roots.push_back(std::sqrt(square));
    for (const double root : MeansOf(roots, sample)) hot.deviation += root * root;
    hot.deviation = std::sqrt(hot.deviation);
    return hot;
  }
  // Of many partitions that are asked for alike some one is asked for most by chance: of a thousand, in a
  // thousand operations, five times as often as it is in the long run. Where the hottest one has no more than
  // chance may add to what all have on average (the largest of n deviations is some sqrt(2 log n) of them),
  // each half of the sample says which one is the hottest, and the other half how hot that is; but for less
  // than a deviation. `of_half`: in both halves, what is asked of the one that is the hottest in each.
  double MostOf(const Hot& hottest, const std::array<std::array<double, 2>, 2>& of_half,
                double told_apart) const {
    const auto partitions = static_cast<double>(std::max<size_t>(heat_.size(), 1));
    const double average = told_apart / partitions;
    const double in_the_other = of_half[0][1] + of_half[1][0];
    const bool is_by_chance =
        hottest.sum() - average < std::sqrt(2 * std::log(partitions)) * hottest.deviation &&
        hottest.sum() - in_the_other > hottest.deviation;
    return is_by_chance ? std::max(in_the_other, average) : hottest.sum();
  }
  void SumHeat(const OperationSample& sample, double rate) {
    std::vector<double> all = MeansOf(elsewhere_, sample);
    Hot hottest;
    std::array<std::array<double, 2>, 2> of_half = {};
    double told_apart = 0;
    for (const auto& [partition, asked] : heat_) {
      Hot hot = HeatOf(partition, asked, sample);
      std::transform(all.begin(), all.end(), hot.by_op.begin(), all.begin(), std::plus<>());
      told_apart += hot.sum();
      for (size_t half : {0, 1}) {
        if (hot.in_half[half] > of_half[half][half]) of_half[half] = hot.in_half;
      }
      if (hot.sum() > hottest.sum()) hottest = std::move(hot);
    }
    if (hottest.partition != nullptr) {
      prediction_.hottest_partition = hottest.partition->second;
      prediction_.hottest_entity = EntityWithMostIn(*hottest.partition);
    }
    const double most = MostOf(hottest, of_half, told_apart);
    const double total = std::accumulate(all.begin(), all.end(), 0.0);
    for (size_t op = 0; op < all.size(); ++op) {
      prediction_.ops[op].hottest_share = hottest.sum() > 0 ? hottest.by_op[op] / hottest.sum() : 0;
      prediction_.ops[op].account_share = total > 0 ? all[op] / total : 0;
    }
    prediction_.hottest_share = total > 0 ? most / total : 0;
    prediction_.hottest_rate = most * rate;
    prediction_.account_rate = total * rate;
  }
  // The entity of the layout whose records the partition has.
  size_t EntityWithMostIn(const Partition& partition) const {
    std::optional<size_t> most;
    double share = 0;
    for (size_t entity = 0; entity < layout_.entities.size(); ++entity) {
      if (layout_.entities[entity].table != partition.first) continue;
      const double here = model_.ShareOf(entity, partition.second);
      if (!most || here > share) most = entity, share = here;
    }
    return most.value_or(0);
  }
  // `last`: of a request, or of the last of several, that is charged at once, whatever it costs; 0: of a
  // scan, which ends and goes on wherever the bucket is empty.
  void Heat(const Partition& partition, double units, double last) {
    Asked& heat = heat_[partition];
    for (auto* of_ops : {&heat.halves[0], &heat.halves[1], &heat.squares}) {
      of_ops->resize(generator_.experiment().ops.size());
    }
    heat.halves[half_][followed_] += units;
    double& asked = asked_[partition];
    heat.squares[followed_] += (asked + units) * (asked + units) - asked * asked;
    asked += units;
    NoteLargest(asked - last, partition.second, &prediction_.largest_in_partition);
    NoteInAll(units, last);
  }
  void HeatElsewhere(double units) {
    elsewhere_[followed_] += units;
    NoteInAll(units, 0);
  }
  void NoteInAll(double units, double last) {
    asked_in_all_ += units;
    NoteLargest(asked_in_all_ - last, "", &prediction_.largest_in_all);
  }
  void NoteLargest(double units, const std::string& partition, LargestOperation* largest) const {
    if (units > largest->units) *largest = {.op = followed_, .units = units, .partition = partition};
  }

  void FollowRead(const Op& op, const Operation& operation, OpPrediction* told) {
    const Result<QueryPlan> plan = planner_.Plan(operation);
    if (!plan.ok()) return;
    if (told->plan.empty()) {
      told->plan = PlanKindName(plan->worst());
      told->filter = plan->parts.empty() ? "" : plan->parts[0].filter.whole();
      told->from = plan->entity < layout_.types ? "" : layout_.entities[plan->entity].name;
      told->entity = plan->entity;
      told->lookups = plan->lookups;
      told->sorts = op.order_field.has_value() && !plan->ordered;
    }
    told->client_filters = told->client_filters || plan->client_filters;
    const KnownFields known = WhatIsKnown(op, operation, generator_);
    double returned = 0, requests = 0, looked_up = 0;
    for (const PartEstimate& of : EstimateRead(model_, layout_, *plan, op, operation, known)) {
      const QueryPart& part = *of.part;
      const std::string& table = layout_.entities[part.entity].table;
      told->scanned += of.answer.scanned;
      returned += of.answer.returned;
      requests += of.requests;
      if (part.kind <= PlanKind::kPartition) {
        told->partitions += 1;
        const double units = std::max(1.0, of.answer.units);
        Heat({table, part.partition_lower}, units, part.kind == PlanKind::kPoint ? units : 0);
      } else {
        // Of the partitions it runs through the largest is the one that can become the hottest.
        const EntityModel::Largest& largest = model_.largest(part.entity);
        Heat({table, largest.partition_key}, of.answer.units * largest.share, 0);
        HeatElsewhere(of.answer.units * (1 - largest.share));
      }
      if (plan->lookups) FollowLookups(op, part, known, of.looked_up);
      looked_up += of.looked_up;
    }
    const uint64_t kept = KeptOf(*plan, SumRead(model_, layout_, *plan), operation.LimitOf(op));
    if (kept > 0) returned = std::min(returned, static_cast<double>(kept));
    told->scanned += looked_up;
    told->returned += returned;
    told->requests += requests + looked_up;
  }

  // The records that index entries lead to are read in their own partitions.
  void FollowLookups(const Op& op, const QueryPart& part, const KnownFields& known, double found) {
    model_.VisitFound(part, op, known, found, [&](const Record& record, double count) {
      const EntityPlan& base = layout_.BaseOf(record);
      const std::string partition_key = base.partition_key.Of(record);
      double there = count;
      if (model_.is_sample() && count > 1 && found < kSampleTrusted * count) {
        // Of a few that stand for many: where those lie of which none is known is told by where most do.
        const auto place = static_cast<size_t>(&base - layout_.entities.data());
        there = 1 + (count - 1) * model_.ShareOf(place, partition_key);
      }
      const double units = model_.UnitsAt(base.table, partition_key, base.row_key.Of(record));
      Heat({base.table, partition_key}, there * units, units);
      HeatElsewhere((count - there) * units);
    });
  }

  void FollowWrites(const Op& op, const Operation& operation, OpPrediction* told) {
    const std::vector<WriteRequestPlan> requests = PlanWrites(layout_, op, operation, generator_);
    std::set<Partition> partitions;
    told->requests += static_cast<double>(requests.size());
    told->atomic = told->atomic && requests.size() <= 1;
    if (op.kind == OpKind::kModify && !requests.empty()) {
      // The record is read first.
      told->requests += 1;
      const std::string& row_key = requests[0].writes[0].entity.row_key();
      const double units = model_.UnitsAt(*requests[0].table, requests[0].partition_key(), row_key);
      Heat({*requests[0].table, requests[0].partition_key()}, units, units);
    }
    for (const WriteRequestPlan& request : requests) {
      if (request.list) {
        // It is read, then written, whole.
        const ListChange& change = *request.list;
        const Partition partition(*request.table, change.partition_key);
        partitions.insert(partition);
        told->requests += 1;
        told->written += 1;
        const double units = model_.UnitsAt(*request.table, change.partition_key, change.row_key);
        Heat(partition, 2 * units, units);
      }
      told->largest_transaction =
          std::max(told->largest_transaction, static_cast<double>(request.writes.size()));
      if (request.writes.empty()) continue;
      const Partition partition(*request.table, request.partition_key());
      double units = 0;
      for (const Write& write : request.writes) units += static_cast<double>(UnitsOf(write));
      partitions.insert(partition);
      told->written += static_cast<double>(request.writes.size());
      Heat(partition, units, units);
    }
    told->partitions += static_cast<double>(partitions.size());
  }

  const Layout& layout_;
  const RecordGenerator& generator_;
  const EntityModel model_;
  const ReadPlanner planner_;
  LayoutPrediction prediction_;
  size_t followed_ = 0;                // The operation that is followed,
  size_t half_ = 0;                    // and the half of the sample that it is of.
  std::map<Partition, Asked> heat_;    // By partition,
  std::vector<double> elsewhere_;      // and where no partition was told apart, of each operation.
  std::map<Partition, double> asked_;  // Of the operation that is followed, so far,
  double asked_in_all_ = 0;            // and of all partitions.
};

std::string WholeFigure(double number) {
  char text[32];
  std::snprintf(text, sizeof(text), number < 10 ? "%.3g" : "%.0f", number);
  return text;
}

std::string OpText(const Op& op, const OpPrediction& told) {
  std::string text = "  " + op.name + " (" + OpKindName(op.kind) + "): ";
  if (op.reads()) {
    text += told.plan + (told.from.empty() ? "" : " of copy " + told.from) + ", " +
            WholeFigure(told.requests) + " request(s), scans " + WholeFigure(told.scanned) + ", returns " +
            WholeFigure(told.returned) +
            (told.client_filters ? ", of which the client filters what is wanted"
                                 : " (density " + WholeFigure(told.density()) + ")");
    if (told.lookups) text += ", then reads each record by its keys";
    if (told.sorts) text += "; NOT in the order wanted: the client reads all of them and sorts";
    return text + "\n      $filter=" + told.filter + "\n";
  }
  text += "writes " + WholeFigure(told.written) + " in " + WholeFigure(told.requests) + " request(s) to " +
          WholeFigure(told.partitions) + " partition(s)";
  if (!told.atomic) text += "; NOT atomic";
  if (op.batch > 1 && told.largest_transaction <= 1) text += "; no batch is possible";
  return text + "\n";
}

// When operations arrive that a prediction is for.
std::string ArrivalText(const Arrival& arrival, double rate) {
  if (arrival.model == ArrivalModel::kClosed) {
    return "closed loop of " + std::to_string(arrival.clients) +
           " clients: how many operations/s is known when it has run";
  }
  const bool is_mean = arrival.model == ArrivalModel::kReplay;
  return "at " + WholeFigure(rate) + " operations/s" + (is_mean ? " on average, a replay" : "");
}

std::string OfTarget(double rate, uint64_t target, const std::optional<Refusal>& refusal) {
  if (target == 0) return "";
  const auto most = static_cast<double>(target);
  const std::string text = ", " + WholeFigure(100 * rate / most) + " % of its target";
  if (refusal) return text + (rate > most ? "" : ", with peaks above it") + ": WILL BE THROTTLED";
  return text + (rate > most ? " at the peak, which it bears: it saves up two seconds' worth" : "");
}

std::string HeatText(const LayoutPrediction& told, const ThroughputTargets& limits) {
  std::string text = "  hottest partition: '" + told.hottest_partition + "', ";
  // Nothing can be said of targets, which are for a second.
  if (told.rate == 0) return text + WholeFigure(100 * told.hottest_share) + " % of all units\n";
  text += WholeFigure(told.hottest_rate) + " units/s" +
          OfTarget(told.hottest_rate, limits.partition_rate, told.partition_refusal);
  return text + "; all: " + WholeFigure(told.account_rate) + " units/s" +
         OfTarget(told.account_rate, limits.account_rate, told.account_refusal) + "\n";
}

}  // namespace

Prediction Predict(const RecordGenerator& generator) {
  const Experiment& experiment = generator.experiment();
  Prediction prediction;
  prediction.rate = experiment.arrival.HighestRate().value_or(0);
  const OperationSample sample(generator, prediction.rate);
  for (const Layout& layout : experiment.layouts) {
    const Arrival& arrival = experiment.ArrivalOf(layout);
    const double rate = arrival.HighestRate().value_or(0);
    LayoutPrediction told = Predictor(layout, generator).Follow(sample, rate);
    told.rate = rate;
    told.partition_refusal = FirstRefusal(arrival, told.hottest_rate, experiment.limits.partition_rate);
    told.account_refusal = FirstRefusal(arrival, told.account_rate, experiment.limits.account_rate);
    prediction.layouts.push_back(std::move(told));
  }
  return prediction;
}

std::string LeftOutText(const Arrival& arrival) {
  const uint64_t due = arrival.TimesReplayed(), all = arrival.times.size();
  if (arrival.model != ArrivalModel::kReplay || due == all) return "";
  return "the run replays " + std::to_string(due) + " of " + std::to_string(all) +
         " times: the last is due after " + WholeFigure(arrival.times.back() / arrival.scale) +
         " s, and warmup and duration end after " + WholeFigure(arrival.warmup_s + arrival.duration_s) +
         " s\n";
}

std::string AllowanceText(const Experiment& experiment, const LayoutPrediction& told) {
  std::string text;
  const auto look = [&](const char* whose, double rate, uint64_t target,
                        const std::optional<Refusal>& refusal) {
    if (!refusal || !refusal->lasts || refusal->after_s <= experiment.arrival.warmup_s) return;
    text += (text.empty() ? "" : "; ") + std::string(whose) + " target of " + std::to_string(target) +
            " units/s refuses " + WholeFigure(rate) + " only after " + WholeFigure(refusal->after_s) + " s";
  };
  look("a partition's", told.hottest_rate, experiment.limits.partition_rate, told.partition_refusal);
  look("the account's", told.account_rate, experiment.limits.account_rate, told.account_refusal);
  if (text.empty()) return "";
  return text + ": it lets two seconds' worth through first, and the warm-up of " +
         WholeFigure(experiment.arrival.warmup_s) +
         " s does not use that up, so a longer run is throttled more";
}

std::vector<Oversized> OversizedOf(const Experiment& experiment, const LayoutPrediction& told) {
  std::vector<Oversized> all;
  const auto look = [&](const LargestOperation& one, const std::string& of, uint64_t target) {
    if (!ExceedsBucket(one.units, target)) return;
    all.push_back({.op = one.op,
                   .text = "one " + experiment.ops[one.op].name + " alone asks " + of + " for " +
                           WholeFigure(one.units) + " units, more than its target of " +
                           std::to_string(target) +
                           " units/s saves up, two seconds' worth: it is refused however seldom it comes"});
  };
  look(told.largest_in_partition, "partition '" + told.largest_in_partition.partition + "'",
       experiment.limits.partition_rate);
  look(told.largest_in_all, "the account", experiment.limits.account_rate);
  return all;
}

std::string PredictionText(const Experiment& experiment, const Prediction& prediction) {
  std::string text = experiment.name + ", " + ArrivalText(experiment.arrival, prediction.rate) +
                     "; a unit is a KiB of an entity, rounded up\n" + LeftOutText(experiment.arrival);
  for (size_t i = 0; i < experiment.layouts.size(); ++i) {
    const Layout& layout = experiment.layouts[i];
    const LayoutPrediction& told = prediction.layouts[i];
    text += "\n" + layout.name;
    for (size_t type = 0; type < layout.types; ++type) {
      const EntityPlan& base = layout.entities[type];
      text += (base.name.empty() ? "" : "   " + base.name + ":") + "   pk " + base.partition_key.text() +
              "   rk " + base.row_key.text();
    }
    text += "\n";
    if (layout.arrival) {
      text += "  arrival of its own: " + OwnArrivalText(layout) + ", " +
              ArrivalText(*layout.arrival, told.rate) + "\n";
    }
    for (size_t op = 0; op < told.ops.size(); ++op) text += OpText(experiment.ops[op], told.ops[op]);
    text += "  stored: " + WholeFigure(told.stored_bytes) + " bytes a record\n";
    text += HeatText(told, experiment.limits);
    for (const Oversized& one : OversizedOf(experiment, told)) {
      text += "  WILL BE THROTTLED: " + one.text + "\n";
    }
  }
  return text;
}

}  // namespace partita::lab
