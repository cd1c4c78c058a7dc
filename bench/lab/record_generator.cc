#include "bench/lab/record_generator.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "api/limits.h"
#include "bench/lab/exact_math.h"
#include "bench/lab/key_expression.h"
#include "engine/base/checksum.h"

// As in exact_math.cc: what a record holds must not depend on what the compiler fuses.
#pragma STDC FP_CONTRACT OFF

namespace partita::lab {

namespace {

constexpr double kDayTicks = 864e9;

// Of midnight 0, of noon a half.
double ShareOfDay(int64_t ticks) {
  return static_cast<double>(ticks % static_cast<int64_t>(kDayTicks)) / kDayTicks;
}

}  // namespace

double DrawPareto(const Pareto& pareto, Draw* draw) {
  const double left = 1 - draw->Uniform();  // Above 0.
  // At most 1e30, whatever the shape: only limits and sizes come of it.
  return pareto.scale * (ExactExp(std::min(-pareto.shape * ExactLog(left), 69.0)) - 1) / pareto.shape;
}

RecordGenerator::RecordGenerator(const Experiment& experiment) : experiment_(experiment) {
  for (const Field& field : experiment.fields) {
    seeds_.push_back(Hash64WithSeed(field.name, experiment.seed));
    zipf_of_.push_back(zipfs_.size());
    if (field.distribution == Distribution::kZipf) zipfs_.emplace_back(field.n, field.theta);
    double sum = 0;
    for (const auto& [text, weight] : field.choices) sum += weight;
    weight_sums_.push_back(sum);
  }
}

void RecordGenerator::Make(uint64_t number, Record* record) const {
  record->number = number;
  record->values.resize(experiment_.fields.size());
  std::vector<PropertyValue> row;
  if (experiment_.imported != nullptr) experiment_.imported->Decode(RowOf(number), &row);
  for (size_t field = 0; field < record->values.size(); ++field) {
    const Field& made = experiment_.fields[field];
    record->values[field] =
        made.distribution == Distribution::kColumn ? std::move(row[made.column]) : ValueOf(field, number, 0);
  }
}

PropertyValue RecordGenerator::ValueAnew(size_t field, uint64_t number, uint64_t salt) const {
  return ValueOf(field, number, salt + 1);
}

std::string RecordGenerator::Text(const Field& field, Draw draw) const {
  double size = field.text_size;
  if (field.text_pareto) size = std::min(size, DrawPareto(*field.text_pareto, &draw));
  if (field.text_sigma > 0) size *= ExactExp(field.text_sigma * draw.Normal());
  const auto characters = static_cast<size_t>(std::clamp(size, 0.0, static_cast<double>(kStringUnitsMax)));
  std::string text(characters, ' ');
  for (size_t i = 0; i < characters; i += 8) {
    uint64_t bits = draw.Next();
    // Words of letters, a space for one letter in eight: compresses about as prose does.
    for (size_t k = i; k < std::min(i + 8, characters); ++k, bits >>= 8) {
      if ((bits & 7) != 0) text[k] = static_cast<char>('a' + (bits >> 3 & 31) % 26);
    }
  }
  return text;
}

DateTime RecordGenerator::TimeOf(const Field& field, uint64_t number, Draw draw) const {
  const int64_t even = field.SteppedValue(number);
  double moved = 0;
  if (field.rhythm > 0) {
    // Time runs slower by day: its derivative by the record's number is 1 + rhythm * cos, least at noon.
    moved = field.rhythm * kDayTicks / (2 * std::numbers::pi) * ExactSinTurns(ShareOfDay(even));
  }
  if (field.late_share > 0 && draw.Uniform() < field.late_share) {
    moved += ExactLog(1 - draw.Uniform()) * static_cast<double>(field.late_ticks);
  }
  const double last = static_cast<double>(kDateTimeTicksMax - static_cast<uint64_t>(even));
  return DateTime{static_cast<uint64_t>(
      even + static_cast<int64_t>(std::clamp(moved, -static_cast<double>(even), last)))};
}

double RecordGenerator::NumberOf(const Field& field, uint64_t number, Draw draw) const {
  double mean = field.mean;
  if (field.swing > 0) {
    const DateTime time = *ValueOf(*field.clock, number, 0).if_date_time();
    mean -= field.swing * ExactCosTurns(ShareOfDay(static_cast<int64_t>(time.ticks)));
  }
  return mean + field.sd * draw.Normal();
}

std::string RecordGenerator::TemplateText(const Field& field, uint64_t number) const {
  Record record{.number = number, .values = std::vector<PropertyValue>(experiment_.fields.size())};
  for (const KeyTemplate::Part& part : field.text_template.parts()) {
    for (const size_t used : part.fields) record.values[used] = ValueOf(used, number, 0);
  }
  return field.text_template.Of(record);
}

PropertyValue RecordGenerator::ColumnOf(const Field& field, uint64_t row) const {
  std::vector<PropertyValue> values;
  experiment_.imported->Decode(row, &values);
  return std::move(values[field.column]);
}

PropertyValue RecordGenerator::ValueOf(size_t index, uint64_t number, uint64_t salt) const {
  const Field& field = experiment_.fields[index];
  uint64_t drawn_for = number;
  if (field.per) {
    std::string text;
    AppendKeyText(&text, ValueOf(*field.per, number, 0));
    drawn_for = Hash64(text);
  }
  Draw draw(seeds_[index] + salt * 0x9E3779B97F4A7C15, drawn_for);
  int64_t whole = 0;
  switch (field.distribution) {
    case Distribution::kConstant:
      return field.text;
    case Distribution::kClock:
      return TimeOf(field, number, draw);
    case Distribution::kSequence:
      whole = field.SteppedValue(number);
      break;
    case Distribution::kUniform:
      whole = static_cast<int64_t>(draw.Below(field.n));
      break;
    case Distribution::kZipf:
      whole = static_cast<int64_t>(zipfs_[zipf_of_[index]].Of(&draw));
      break;
    case Distribution::kWeighted: {
      double left = draw.Uniform() * weight_sums_[index];
      for (const auto& [text, weight] : field.choices) {
        if ((left -= weight) < 0) return text;
      }
      return field.choices.back().first;
    }
    case Distribution::kNormal:
      return NumberOf(field, number, draw);
    case Distribution::kText:
      return Text(field, draw);
    case Distribution::kTemplate:
      return TemplateText(field, number);
    case Distribution::kColumn:
      // Another value of it is that of another row.
      return ColumnOf(field, salt == 0 ? RowOf(number) : draw.Below(experiment_.imported->rows()));
  }
  if (!field.format.has_value()) return whole;
  std::string digits = std::to_string(whole);
  if (digits.size() < field.format->digits) digits.insert(0, field.format->digits - digits.size(), '0');
  return field.format->before + digits + field.format->after;
}

}  // namespace partita::lab
