#include "bench/lab/operation_stream.h"

#include <algorithm>

#include "bench/lab/key_expression.h"
#include "engine/base/checksum.h"

namespace partita::lab {
namespace {

constexpr uint64_t kOperationSalt = 0x6F7065726174696F;
constexpr double kPickTheta = 0.99;

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
  const bool ranked = std::any_of(experiment_.ops.begin(), experiment_.ops.end(),
                                  [](const Op& op) { return !op.writes_new() && op.pick != Pick::kUniform; });
  if (ranked) ranks_.emplace(std::max<uint64_t>(existing_, 1), kPickTheta);
}

uint64_t OperationStream::PickRecord(Pick pick, uint64_t settled, Draw* draw) {
  if (settled == 0) return 0;
  if (pick == Pick::kUniform) return draw->Below(settled);
  if (ranks_->n() != settled) ranks_->Resize(settled);
  const uint64_t rank = ranks_->Of(draw);
  return pick == Pick::kZipf ? rank : settled - 1 - rank;
}

Operation OperationStream::Next() {
  Draw draw(experiment_.seed ^ kOperationSalt, next_);
  Operation operation{.number = next_++, .existing = existing_};
  double left = draw.Uniform() * weight_sum_;
  while (operation.op + 1 < experiment_.ops.size() && (left -= experiment_.ops[operation.op].weight) >= 0) {
    ++operation.op;
  }
  const Op& op = experiment_.ops[operation.op];
  uint64_t& existing_then = existing_then_[operation.number % existing_then_.size()];
  if (op.writes_new()) {
    operation.record = existing_;
    operation.records = op.batch;
    existing_ += op.batch;
  } else {
    operation.record = PickRecord(op.pick, existing_then, &draw);
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
