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
  }
  PARTITA_ASSERT(false);
  return "";
}

const char* ArrivalModelName(ArrivalModel model) {
  constexpr const char* kNames[] = {"constant", "poisson", "ramp",   "steps",
                                    "burst",    "diurnal", "replay", "closed"};
  return kNames[static_cast<size_t>(model)];
}

double Experiment::weight_sum() const {
  double sum = 0;
  for (const Op& op : ops) sum += op.weight;
  return sum;
}

}  // namespace partita::lab
