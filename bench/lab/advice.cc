#include "bench/lab/advice.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "bench/compare/statistics.h"
#include "bench/lab/spread.h"

namespace partita::lab {
namespace {

// Of what is scanned, less than this is returned: worth other keys, if it is more than a few entities.
constexpr double kDensityMin = 0.1;
constexpr double kScannedMin = 20;
constexpr double kDensityHigh = 0.5;  // More, and other keys spare little.
constexpr double kLookupsMin = 5;
constexpr double kHotRowShare = 0.5;  // Of all load, in one row of many,
constexpr size_t kHotRowsMin = 8;     // so many at least.
constexpr double kStoredRatio = 1.5;

std::string Figure(double number) {
  char text[32];
  std::snprintf(text, sizeof(text), number >= 1000 ? "%.0f" : "%.3g", number);
  return text;
}

std::string Percent(double share) { return Figure(100 * share) + " %"; }

// Collects what one layout is told.
class Adviser {
 public:
  Adviser(const Experiment& experiment, const RunResult& result, size_t layout)
      : experiment_(experiment),
        result_(result),
        layout_(layout),
        told_(result.prediction.layouts[layout]),
        rate_(HighestRateOf(experiment.arrival)) {}

  std::vector<Advice> Collect() {
    // A service has limits of its own, which are not known here.
    if (result_.is_embedded()) {
      HottestPartition();
      Account();
      Oversized();
    }
    MeasuredSkew();
    for (size_t op = 0; op < experiment_.ops.size(); ++op) {
      Missing(op);
      if (experiment_.ops[op].reads()) {
        Scanning(op);
        Gathering(op);
      } else {
        Writing(op);
      }
    }
    Stored();
    if (result_.is_embedded()) {
      const std::string allowed = AllowanceText(experiment_, told_);
      if (!allowed.empty()) Say(std::nullopt, "Measure for longer: " + allowed + ".");
    }
    if (advice_.empty()) Trouble();
    return std::move(advice_);
  }

 private:
  void Say(std::optional<size_t> op, std::string text) {
    advice_.push_back({.layout = layout_, .op = op, .text = std::move(text)});
  }
  double Measured(std::optional<size_t> op, const char* metric) const {
    return bench::Median(FiguresOf(result_, layout_, rate_, op, metric));
  }

  // Of those that read the one that asks for most, where they together ask for more than those that write.
  std::optional<size_t> HeaviestReader(double OpPrediction::*share) const {
    std::optional<size_t> worst;
    double read = 0;
    for (size_t op = 0; op < experiment_.ops.size(); ++op) {
      if (!experiment_.ops[op].reads()) continue;
      read += told_.ops[op].*share;
      if (!worst || told_.ops[op].*share > told_.ops[*worst].*share) worst = op;
    }
    return read > 0.5 ? worst : std::nullopt;
  }

  const EntityPlan& EntityAt(size_t entity) const { return experiment_.layouts[layout_].entities[entity]; }
  std::string OfCopy(size_t entity) const {
    return entity < experiment_.layouts[layout_].types ? "" : " of copy \"" + EntityAt(entity).name + "\"";
  }

  // Of a peak that goes over quickly it tells what was measured.
  bool IsTooMuch(double rate, double most, const std::optional<Refusal>& refusal) const {
    if (most == 0 || rate <= most) return false;
    return (refusal && refusal->lasts) || Measured(std::nullopt, "throttled") > 0;
  }

  // Whether other keys could spare much of it. Of what the client filters nobody knows what it wanted.
  static bool LooksAtMuch(const OpPrediction& of) {
    return of.client_filters ? of.scanned >= kScannedMin : of.density() < kDensityHigh;
  }

  void HottestPartition() {
    const auto most = static_cast<double>(experiment_.limits.partition_rate);
    if (!IsTooMuch(told_.hottest_rate, most, told_.partition_refusal)) return;
    const std::string asked =
        "Partition \"" + told_.hottest_partition + "\"" + OfCopy(told_.hottest_entity) + " is asked for " +
        Figure(told_.hottest_rate) +
        " units a second (a unit is a KiB of an entity) at the highest rate; a partition gives " +
        Figure(most) + ", and " + Percent(Measured(std::nullopt, "throttled")) +
        " of all operations were refused at the first try. ";
    const std::optional<size_t> worst = HeaviestReader(&OpPrediction::hottest_share);
    if (worst && LooksAtMuch(told_.ops[*worst])) {
      const OpPrediction& of = told_.ops[*worst];
      Say(worst,
          asked + "Most of that is looked at, not written: this operation asks for " +
              Percent(of.hottest_share) + " of it and scans " + Figure(of.scanned) +
              " entities each time. Give it keys that name what it asks for before spreading the load.");
      return;
    }
    const Spread spread = BestSpread(experiment_, EntityAt(told_.hottest_entity), told_.hottest_partition,
                                     told_.hottest_rate, most);
    const std::string pieces = std::to_string(spread.pieces);
    Say(std::nullopt, asked + "Let the load go to more partitions: with " + spread.key +
                          " before the PartitionKey" + OfCopy(told_.hottest_entity) + " the fullest of " +
                          pieces + " would be asked for some " + Figure(spread.rate) +
                          (spread.rate > most ? ", which is still too much" : "") +
                          "; a query that does not name the field then asks " + pieces + " partitions.");
  }

  void Account() {
    const auto most = static_cast<double>(experiment_.limits.account_rate);
    if (!IsTooMuch(told_.account_rate, most, told_.account_refusal)) return;
    const std::string asked = "All partitions together are asked for " + Figure(told_.account_rate) +
                              " units a second (a unit is a KiB of an entity); an account gives " +
                              Figure(most) + ". No spreading helps against that, only ";
    const std::optional<size_t> worst = HeaviestReader(&OpPrediction::account_share);
    if (!worst) {
      Say(std::nullopt, asked +
                            "fewer or smaller entities to write, as without a copy or with several records "
                            "folded into one, or several accounts: " +
                            Percent(Measured(std::nullopt, "throttled")) +
                            " of all operations were refused at the first try.");
      return;
    }
    Say(worst, asked + "looking at fewer entities: this operation has the largest part, " +
                   Figure(told_.ops[*worst].scanned) + " each time.");
  }

  bool IsEverThrottled(size_t op) const {
    return std::any_of(result_.cells.begin(), result_.cells.end(), [&](const CellFigures& cell) {
      return cell.layout == layout_ && cell.ops[op].throttled > 0;
    });
  }

  // It would not be spread by spreading the operations.
  void Oversized() {
    for (const lab::Oversized& one : OversizedOf(experiment_, told_)) {
      if (!IsEverThrottled(one.op)) continue;  // The prediction alone is no reason.
      Say(one.op, "Make it smaller: " + one.text +
                      ". Give it keys that name what it asks for, or let it ask for a part at a time.");
    }
  }

  // What is wrong and no rule has named.
  void Trouble() {
    double throttled = 0, dropped = 0, failed = 0;
    std::string error;
    for (const CellFigures& cell : result_.cells) {
      if (cell.layout != layout_) continue;
      for (const OpFigures& figures : cell.ops) {
        throttled += static_cast<double>(figures.throttled);
        dropped += static_cast<double>(figures.dropped + figures.unfinished);
        failed += static_cast<double>(figures.failed);
        if (error.empty()) error = figures.first_error;
      }
    }
    if (throttled + dropped + failed == 0) return;
    Say(std::nullopt, "In all runs " + Figure(throttled) + " operations were refused at the first try, " +
                          Figure(dropped) + " were not done, and " + Figure(failed) + " failed" +
                          (error.empty() ? "" : " (" + error + ")") +
                          ", which the keys do not explain: look when that was.");
  }

  void MeasuredSkew() {
    double all = 0, most = 0;
    size_t rows = 0;
    std::vector<double> sums(result_.key_rows[layout_].size());
    for (const CellFigures& cell : result_.cells) {
      if (cell.layout != layout_ || cell.rate != rate_) continue;
      for (const Timeline::Column& column : cell.timeline.columns()) {
        for (size_t row = 0; row < sums.size(); ++row)
          sums[row] += column.entities[row] + column.refused[row];
      }
    }
    for (const double sum : sums) {
      all += sum;
      most = std::max(most, sum);
      ++rows;
    }
    if (rows < kHotRowsMin || most <= kHotRowShare * all) return;
    const size_t hot = static_cast<size_t>(std::max_element(sums.begin(), sums.end()) - sums.begin());
    Say(std::nullopt,
        Percent(most / all) + " of the measured load fell on one of the " + std::to_string(rows) +
            " rows of the heat map, from key \"" + result_.key_rows[layout_][hot] +
            "\" on. A field that is spread evenly, in front of the PartitionKey, spreads the load.");
  }

  void Missing(size_t op) {
    const double missing = Measured(op, "missing"), operations = Measured(op, "operations");
    if (missing <= 0.01 * operations) return;
    Say(op, Figure(missing) + " of " + Figure(operations) +
                " operations found nothing: an earlier one was refused, or the keys of two records are the "
                "same.");
  }

  void Scanning(size_t op) {
    const OpPrediction& of = told_.ops[op];
    if (of.scanned < kScannedMin || (!of.client_filters && of.density() >= kDensityMin)) return;
    std::string open;
    for (const Condition& condition : experiment_.ops[op].where) {
      const EntityPlan& read = EntityAt(of.entity);
      if (read.partition_key.uses(condition.field) || read.row_key.uses(condition.field)) continue;
      open += (open.empty() ? "" : ", ") + experiment_.fields[condition.field].name;
    }
    if (open.empty() && of.sorts) return;           // Gathering tells it better.
    if (open.empty() && of.client_filters) return;  // By keys alone, but for some at the ends of a range.
    Say(op, "It looks at " + Figure(of.scanned) + " entities " +
                (of.client_filters ? "of which the client filters what it wants"
                                   : "to return " + Figure(of.returned)) +
                " (" + of.plan + OfCopy(of.entity) + "), and each counts. " +
                (open.empty() ? "Put what it asks for further to the front of a key"
                              : "No key" + OfCopy(of.entity) + " holds " + open + ": put it into one") +
                ", or keep a copy whose keys begin with it.");
  }

  void Gathering(size_t op) {
    const OpPrediction& of = told_.ops[op];
    if (of.lookups && of.requests > kLookupsMin) {
      Say(op, "What it finds in copy \"" + of.from + "\" is followed by a point read each, " +
                  Figure(of.requests) +
                  " transactions in all: let the copy store the fields that are wanted.");
    }
    if (of.sorts) {
      Say(op, "The keys do not have the order that it wants, so the client reads all " + Figure(of.scanned) +
                  " that may answer and sorts: a key with its conditions and then the order, as "
                  "{desc_ticks(time)} "
                  "for the latest first, needs no more than what is wanted.");
    }
  }

  bool HasCopiesElsewhere() const {
    const Layout& layout = experiment_.layouts[layout_];
    return std::any_of(layout.entities.begin() + static_cast<ptrdiff_t>(layout.types), layout.entities.end(),
                       [&](const EntityPlan& copy) { return !layout.SharesPartition(copy); });
  }
  // Those that could be written with the record: a list cannot. Empty: none.
  std::string CopiesToJoin() const {
    const Layout& layout = experiment_.layouts[layout_];
    std::string names;
    for (size_t entity = layout.types; entity < layout.entities.size(); ++entity) {
      const EntityPlan& copy = layout.entities[entity];
      if (copy.atomic || copy.list_of || !layout.SharesPartition(copy)) continue;
      names += (names.empty() ? "\"" : ", \"") + copy.name + "\"";
    }
    return names.empty() ? ""
                         : " In the partition of the record itself lies " + names +
                               ": with atomic = true it is written in the same transaction.";
  }
  void Writing(size_t op) {
    const OpPrediction& of = told_.ops[op];
    const uint32_t batch = experiment_.ops[op].batch;
    if (!of.atomic && batch <= 1) {
      Say(op, "Its copies " + std::string(HasCopiesElsewhere() ? "lie in other partitions, so they " : "") +
                  "are written one after the other, in " + Figure(of.requests) +
                  " transactions: a client that stops between leaves them out of step." + CopiesToJoin());
    }
    if (batch > 1 && of.requests > 1.5) {
      Say(op, "Its " + std::to_string(batch) + " records become " + Figure(of.requests) +
                  " transactions, since a batch takes one partition only.");
    }
  }

  void Stored() {
    double least = told_.stored_bytes;
    size_t smallest = layout_;
    for (size_t i = 0; i < experiment_.layouts.size(); ++i) {
      if (result_.prediction.layouts[i].stored_bytes >= least) continue;
      least = result_.prediction.layouts[i].stored_bytes;
      smallest = i;
    }
    if (told_.stored_bytes < kStoredRatio * least || smallest == layout_) return;
    Say(std::nullopt, "A record takes " + Figure(told_.stored_bytes) + " stored bytes, " +
                          Figure(told_.stored_bytes / least) + " times as many as with \"" +
                          experiment_.layouts[smallest].name + "\".");
  }

  const Experiment& experiment_;
  const RunResult& result_;
  const size_t layout_;
  const LayoutPrediction& told_;
  const size_t rate_;
  std::vector<Advice> advice_;
};

}  // namespace

std::vector<Advice> AdviceOn(const Experiment& experiment, const RunResult& result) {
  std::vector<Advice> all;
  for (size_t layout = 0; layout < experiment.layouts.size(); ++layout) {
    for (Advice& advice : Adviser(experiment, result, layout).Collect()) all.push_back(std::move(advice));
  }
  return all;
}

}  // namespace partita::lab
