#include "bench/lab/experiment.h"

#include <algorithm>

#include "engine/base/assert.h"

namespace partita::lab {

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

const EntityPlan& Layout::BaseOf(const Record& record) const {
  size_t type = 0;
  while (type + 1 < types && !entities[type].Takes(record)) ++type;
  return entities[type];
}

double Experiment::NewRecordsExpected() const {
  double rate = 0;
  for (const double one : arrival.rates) rate = std::max(rate, one);
  // A ramp is at its mean on average.
  if (arrival.model == ArrivalModel::kRamp) rate = (rate + arrival.rate_end) / 2;
  double operations = rate * (arrival.warmup_s + arrival.duration_s);
  if (arrival.model == ArrivalModel::kReplay) operations = static_cast<double>(arrival.times.size());
  if (arrival.model == ArrivalModel::kClosed) operations = 0;
  double records = 0;
  for (const Op& op : ops) {
    if (op.writes_new()) records += op.weight / weight_sum() * op.batch;
  }
  return operations * records;
}

double Experiment::weight_sum() const {
  double sum = 0;
  for (const Op& op : ops) sum += op.weight;
  return sum;
}

}  // namespace partita::lab
