#include "bench/lab/record_generator.h"

#include <algorithm>
#include <cmath>

#include "api/limits.h"
#include "engine/base/checksum.h"

// As in exact_math.cc: what a record holds must not depend on what the compiler fuses.
#pragma STDC FP_CONTRACT OFF

namespace partita::lab {

ZipfRanks::ZipfRanks(uint64_t n, double theta) : n_(static_cast<double>(n)), theta_(theta) {
  for (uint64_t rank = 1; rank <= n; ++rank) zeta_ += ExactPow(static_cast<double>(rank), -theta);
  const double zeta_of_2 = 1 + ExactPow(2.0, -theta);
  eta_ = n < 3 ? 0 : (1 - ExactPow(2.0 / n_, 1 - theta)) / (1 - zeta_of_2 / zeta_);
}

uint64_t ZipfRanks::Of(double uniform) const {
  const double scaled = uniform * zeta_;
  double rank = 0;
  if (scaled >= 1) {
    rank =
        scaled < 1 + ExactPow(0.5, theta_) ? 1 : n_ * ExactPow(eta_ * uniform - eta_ + 1, 1 / (1 - theta_));
  }
  return static_cast<uint64_t>(std::clamp(rank, 0.0, n_ - 1));
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
  for (size_t field = 0; field < record->values.size(); ++field) {
    record->values[field] = ValueOf(field, number, 0);
  }
}

PropertyValue RecordGenerator::ValueAnew(size_t field, uint64_t number, uint64_t salt) const {
  return ValueOf(field, number, salt + 1);
}

std::string RecordGenerator::Text(const Field& field, Draw draw) const {
  double size = field.text_size;
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

PropertyValue RecordGenerator::ValueOf(size_t index, uint64_t number, uint64_t salt) const {
  const Field& field = experiment_.fields[index];
  Draw draw(seeds_[index] + salt * 0x9E3779B97F4A7C15, number);
  int64_t whole = 0;
  switch (field.distribution) {
    case Distribution::kConstant:
      return field.text;
    case Distribution::kClock:
      return DateTime{static_cast<uint64_t>(field.SteppedValue(number))};
    case Distribution::kSequence:
      whole = field.SteppedValue(number);
      break;
    case Distribution::kUniform:
      whole = static_cast<int64_t>(draw.Below(field.n));
      break;
    case Distribution::kZipf:
      whole = static_cast<int64_t>(zipfs_[zipf_of_[index]].Of(draw.Uniform()));
      break;
    case Distribution::kWeighted: {
      double left = draw.Uniform() * weight_sums_[index];
      for (const auto& [text, weight] : field.choices) {
        if ((left -= weight) < 0) return text;
      }
      return field.choices.back().first;
    }
    case Distribution::kNormal:
      return field.mean + field.sd * draw.Normal();
    case Distribution::kText:
      return Text(field, draw);
  }
  if (!field.format.has_value()) return whole;
  std::string digits = std::to_string(whole);
  if (digits.size() < field.format->digits) digits.insert(0, field.format->digits - digits.size(), '0');
  return field.format->before + digits + field.format->after;
}

}  // namespace partita::lab
