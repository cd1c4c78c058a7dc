#include "bench/lab/experiment.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "engine/base/assert.h"

namespace partita::lab {
namespace {

double HighestOf(const std::vector<double>& rates) {
  return rates.empty() ? 0 : *std::max_element(rates.begin(), rates.end());
}

}  // namespace

PropertyType Field::type() const {
  switch (distribution) {
    case Distribution::kSequence:
    case Distribution::kUniform:
    case Distribution::kZipf:
      return format.has_value() ? PropertyType::kString : PropertyType::kInt64;
    case Distribution::kClock:
      return PropertyType::kDateTime;
    case Distribution::kNormal:
      return PropertyType::kDouble;
    case Distribution::kColumn:
      return column_says.type.value_or(PropertyType::kString);
    default:
      return PropertyType::kString;
  }
}

int64_t Field::SteppedValue(uint64_t record) const {
  const __int128 min = distribution == Distribution::kClock ? 0 : INT64_MIN;
  const __int128 max =
      distribution == Distribution::kClock ? static_cast<int64_t>(kDateTimeTicksMax) : INT64_MAX;
  const __int128 value = static_cast<__int128>(start) + static_cast<__int128>(record) * step;
  return static_cast<int64_t>(std::clamp(value, min, max));
}

std::pair<int64_t, int64_t> Field::NumberRange() const {
  if (distribution == Distribution::kColumn) return {column_says.number_min, column_says.number_max};
  if (distribution != Distribution::kSequence) return {0, static_cast<int64_t>(n) - 1};
  return {std::min(SteppedValue(0), SteppedValue(records_max)),
          std::max(SteppedValue(0), SteppedValue(records_max))};
}

bool Field::HasOneLength() const {
  switch (distribution) {
    case Distribution::kConstant:
    case Distribution::kClock:
      return true;
    case Distribution::kSequence:
    case Distribution::kUniform:
    case Distribution::kZipf:
      return format.has_value() && FitDigits(NumberRange(), format->digits, 10);
    case Distribution::kWeighted:
      return std::all_of(choices.begin(), choices.end(), [this](const auto& choice) {
        return choice.first.size() == choices.front().first.size();
      });
    case Distribution::kText:
      return text_sigma == 0 && !text_pareto;
    case Distribution::kColumn:
      return column_says.bytes_min == column_says.bytes_max;
    case Distribution::kTemplate:
      return std::all_of(text_template.parts().begin(), text_template.parts().end(),
                         [](const KeyTemplate::Part& part) { return part.one_length; });
    case Distribution::kNormal:
      return false;
  }
  return false;
}

bool FitDigits(std::pair<int64_t, int64_t> range, uint64_t digits, uint64_t base) {
  if (range.first < 0) return false;
  auto left = static_cast<uint64_t>(range.second);
  for (uint64_t i = 0; i < digits && left > 0; ++i) left /= base;
  return left == 0;
}

const char* OpKindName(OpKind kind) {
  switch (kind) {
    case OpKind::kInsert:
      return "insert";
    case OpKind::kUpsert:
      return "upsert";
    case OpKind::kMerge:
      return "merge";
    case OpKind::kReplace:
      return "replace";
    case OpKind::kDelete:
      return "delete";
    case OpKind::kGet:
      return "get";
    case OpKind::kQuery:
      return "query";
    case OpKind::kModify:
      return "modify";
  }
  PARTITA_ASSERT(false);
  return "";
}

const char* TargetKindName(TargetKind kind) {
  constexpr const char* kNames[] = {"embedded", "http", "rocksdb"};
  return kNames[static_cast<size_t>(kind)];
}

const char* ArrivalModelName(ArrivalModel model) {
  constexpr const char* kNames[] = {"constant", "poisson", "ramp",   "steps",
                                    "burst",    "diurnal", "replay", "closed"};
  return kNames[static_cast<size_t>(model)];
}

bool EntityPlan::Takes(const Record& record) const {
  if (!when) return true;
  const std::vector<PropertyValue>& values = when->values;
  return std::find(values.begin(), values.end(), record.values[when->field]) != values.end();
}

bool Layout::SharesPartition(const EntityPlan& copy) const {
  return std::all_of(
      entities.begin(), entities.begin() + static_cast<ptrdiff_t>(types), [&](const EntityPlan& own) {
        return copy.partition_key.text() == own.partition_key.text() && copy.table == own.table;
      });
}

const EntityPlan& Layout::BaseOf(const Record& record) const {
  size_t type = 0;
  while (type + 1 < types && !entities[type].Takes(record)) ++type;
  return entities[type];
}

uint64_t Arrival::TimesReplayedBy(double seconds) const {
  // As ArrivalSchedule has it.
  const auto is_due = [&](double time) { return time / scale < seconds; };
  return static_cast<uint64_t>(std::partition_point(times.begin(), times.end(), is_due) - times.begin());
}

std::optional<double> Arrival::HighestRate() const {
  if (model == ArrivalModel::kClosed) return std::nullopt;
  if (model == ArrivalModel::kRamp) return std::max(HighestOf(rates), rate_end);
  if (model == ArrivalModel::kDiurnal) {
    // The sine rises from its middle, for a quarter of its period.
    const double turns = std::min((warmup_s + duration_s) / period_s, 0.25);
    return HighestOf(rates) * (1 + amplitude * std::sin(2 * std::numbers::pi * turns));
  }
  if (model != ArrivalModel::kReplay) return HighestOf(rates);
  const uint64_t count = TimesReplayed();
  const double span_s = count == 0 ? 0 : (times[count - 1] - times[0]) / scale;
  // What comes within a second is so much in a second.
  return span_s > 1 ? static_cast<double>(count - 1) / span_s : static_cast<double>(count);
}

double Arrival::OperationsBy(double seconds) const {
  // The integrals of the rates that ArrivalSchedule follows.
  const double highest = HighestOf(rates), end = warmup_s + duration_s;
  switch (model) {
    case ArrivalModel::kRamp:
      return (highest + (rate_end - highest) / end * seconds / 2) * seconds;
    case ArrivalModel::kSteps: {
      const double length = end / static_cast<double>(rates.size());
      double sum = 0;
      for (size_t i = 0; i < rates.size(); ++i) {
        sum += rates[i] * std::clamp(seconds - static_cast<double>(i) * length, 0.0, length);
      }
      return sum;
    }
    case ArrivalModel::kBurst: {
      const double period = on_s + off_s, whole = std::floor(seconds / period);
      return highest * (whole * on_s + std::min(seconds - whole * period, on_s));
    }
    case ArrivalModel::kDiurnal: {
      const double turns = 2 * std::numbers::pi * seconds / period_s;
      return highest * (seconds + amplitude * period_s / (2 * std::numbers::pi) * (1 - std::cos(turns)));
    }
    case ArrivalModel::kReplay:
      return static_cast<double>(TimesReplayedBy(seconds));
    case ArrivalModel::kClosed:
      return 0;
    default:
      return highest * seconds;
  }
}

double Experiment::NewRecordsPerOperation() const {
  double records = 0;
  for (const Op& op : ops) {
    if (op.writes_new()) records += op.weight / weight_sum() * op.batch;
  }
  return records;
}

double Experiment::NewRecordsExpected(const Arrival& of) const {
  return of.OperationsExpected() * NewRecordsPerOperation();
}

double Experiment::weight_sum() const {
  double sum = 0;
  for (const Op& op : ops) sum += op.weight;
  return sum;
}

}  // namespace partita::lab
