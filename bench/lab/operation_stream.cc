#include "bench/lab/operation_stream.h"

#include <algorithm>
#include <numeric>

#include "bench/lab/exact_math.h"
#include "bench/lab/key_expression.h"
#include "engine/base/checksum.h"

// As in exact_math.cc: which record is chosen must not depend on what the compiler fuses.
#pragma STDC FP_CONTRACT OFF

namespace partita::lab {
namespace {

constexpr uint64_t kOperationSalt = 0x6F7065726174696F;

// What an operation asks for, whatever record it is about.
std::string ParametersOf(const Op& op, const std::vector<Field>& fields) {
  std::string text = op.name + ' ' + OpKindName(op.kind) + ' ' + std::to_string(op.limit);
  const auto add = [&](const PropertyValue& value) {
    text.push_back('\0');
    AppendKeyText(&text, value);
  };
  if (op.order_field) text += (op.order_descending ? " desc " : " asc ") + fields[*op.order_field].name;
  for (const Condition& condition : op.where) {
    text += " where " + fields[condition.field].name + ' ' +
            std::to_string(static_cast<int>(condition.kind)) + ' ' + std::to_string(condition.ticks);
    add(condition.value);
    add(condition.value_end);
    for (const PropertyValue& value : condition.values) add(value);
  }
  for (const size_t field : op.select) text += " select " + fields[field].name;
  for (const size_t field : op.set) text += " set " + fields[field].name;
  return text;
}

}  // namespace

OperationStream::OperationStream(const RecordGenerator& generator)
    : experiment_(generator.experiment()),
      weight_sum_(experiment_.weight_sum()),
      existing_(experiment_.records),
      existing_then_(std::max(experiment_.arrival.clients, 1u), existing_) {
  for (const Op& op : experiment_.ops) {
    const bool ranked = !op.writes_new() && (op.pick == Pick::kZipf || op.pick == Pick::kLatest);
    ranks_.emplace_back();
    if (ranked) ranks_.back().emplace(std::max<uint64_t>(existing_, 1), op.theta);
    range_weights_.emplace_back();
    if (op.pick != Pick::kRanges) continue;
    double sum = 0;
    for (uint32_t k = 1; k <= op.hot_ranges.ranges; ++k) {
      const HotRanges& hot = op.hot_ranges;
      sum += hot.a * ExactExp(hot.b * k) + hot.c * ExactExp(hot.d * k);
      range_weights_.back().push_back(sum);
    }
  }
}

uint64_t OperationStream::PickRecord(size_t op, uint64_t settled, Draw* draw) {
  const Pick pick = experiment_.ops[op].pick;
  if (settled == 0) return 0;
  if (pick == Pick::kUniform) return draw->Below(settled);
  if (pick == Pick::kRanges) return PickFromRanges(op, settled, draw);
  ZipfRanks& ranks = *ranks_[op];
  if (ranks.n() != settled) ranks.Resize(settled);
  const uint64_t rank = ranks.Of(draw);
  return pick == Pick::kZipf ? rank : settled - 1 - rank;
}

uint64_t OperationStream::PickFromRanges(size_t op, uint64_t settled, Draw* draw) const {
  const HotRanges& hot = experiment_.ops[op].hot_ranges;
  const std::vector<double>& weights = range_weights_[op];
  const double at = draw->Uniform() * weights.back();
  const auto k =
      static_cast<uint64_t>(std::upper_bound(weights.begin(), weights.end(), at) - weights.begin());
  // Which part of the records the k-th range is: a walk by a step that has no divisor in common with their
  // number.
  const uint64_t ranges = weights.size();
  uint64_t step = ranges / 2 + 1 + experiment_.seed % ranges;
  while (std::gcd(step, ranges) != 1) ++step;
  const uint64_t place = std::min(k, ranges - 1) * step % ranges;
  const uint64_t first = settled * place / ranges;
  const uint64_t count = std::max<uint64_t>(settled * (place + 1) / ranges - first, 1);
  const double u = std::max(draw->Uniform(), 0x1p-53);
  const double key = ExactExp(std::clamp(ExactLog(u / hot.key_a) / hot.key_b, -34.0, 34.0));
  return std::min(first + Draw(experiment_.seed, static_cast<uint64_t>(key)).Below(count), settled - 1);
}

Draw OperationStream::NextDraw() const { return {experiment_.seed ^ kOperationSalt, next_}; }

Operation OperationStream::Next() {
  Draw draw = NextDraw();
  double left = draw.Uniform() * weight_sum_;
  size_t op = 0;
  while (op + 1 < experiment_.ops.size() && (left -= experiment_.ops[op].weight) >= 0) ++op;
  return Make(op, &draw);
}

Operation OperationStream::NextOf(size_t op) {
  Draw draw = NextDraw();
  return Make(op, &draw);
}

Operation OperationStream::Make(size_t of, Draw* draw) {
  const Op& op = experiment_.ops[of];
  Operation operation{.number = next_++, .op = of, .existing = existing_};
  uint64_t& existing_then = existing_then_[operation.number % existing_then_.size()];
  if (op.writes_new()) {
    operation.record = existing_;
    operation.records = op.batch;
    existing_ += op.batch;
  } else {
    operation.record = PickRecord(of, existing_then, draw);
  }
  if (op.limit_pareto) {
    operation.limit = static_cast<uint64_t>(
        std::clamp(DrawPareto(*op.limit_pareto, draw), 1.0, static_cast<double>(op.limit)));
  }
  existing_then = existing_;
  return operation;
}

uint64_t HashOfStream(const RecordGenerator& generator, uint64_t count) {
  OperationStream stream(generator);
  StreamHash hash;
  Record record;
  std::string text;
  // Records that are loaded only do not come by below.
  const ImportedRecords* imported = generator.experiment().imported.get();
  if (imported != nullptr) hash.Update("imported " + std::to_string(imported->hash()));
  for (const Op& op : generator.experiment().ops) {
    hash.Update(ParametersOf(op, generator.experiment().fields));
  }
  for (uint64_t i = 0; i < count; ++i) {
    const Operation operation = stream.Next();
    const Op& op = generator.experiment().ops[operation.op];
    text = op.name + ' ' + std::to_string(operation.record);
    if (op.limit_pareto) text += ' ' + std::to_string(operation.limit);
    for (uint64_t k = 0; k < operation.records; ++k) {
      generator.Make(operation.record + k, &record);
      for (const PropertyValue& value : record.values) {
        text.push_back('\0');
        AppendKeyText(&text, value);
      }
    }
    for (const size_t field : op.set) {
      AppendKeyText(&text, generator.ValueAnew(field, operation.record, operation.number));
    }
    hash.Update(text);
  }
  return hash.Digest();
}

}  // namespace partita::lab
