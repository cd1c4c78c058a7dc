#include "bench/lab/key_rows.h"

#include <algorithm>
#include <cmath>

#include "bench/lab/draw.h"
#include "engine/base/assert.h"

namespace partita::lab {
namespace {

constexpr uint64_t kRowsSample = 4'000;

std::string PlaceOf(const std::string& table, std::string_view key) {
  std::string place = table;
  place.push_back('\0');
  return place.append(key);
}

// Those that are there, and those that are likely to come: rows of keys that none has would stay dark, and
// all others share what is left. How much a closed loop does nobody knows; as many operations as there are
// records are as good a guess as any.
uint64_t RecordsLikely(const Experiment& experiment, const Layout& layout) {
  const Arrival& arrival = experiment.ArrivalOf(layout);
  const auto there = static_cast<double>(experiment.records);
  const double added = arrival.model == ArrivalModel::kClosed ? there * experiment.NewRecordsPerOperation()
                                                              : experiment.NewRecordsExpected(arrival);
  return std::max<uint64_t>(static_cast<uint64_t>(std::ceil(there + added)), 1);
}

}  // namespace

KeyRows::KeyRows(const Layout& layout, const RecordGenerator& generator) {
  const uint64_t records = RecordsLikely(generator.experiment(), layout);
  const uint64_t step = records <= kRowsSample ? 1 : records / kRowsSample + 1;
  std::vector<std::string> places;
  Record record;
  for (uint64_t from = 0; from < records; from += step) {
    generator.Make(DrawnFrom(from, step, records), &record);
    for (const EntityPlan& entity : layout.entities) {
      if (!entity.Takes(record)) continue;
      places.push_back(PlaceOf(entity.table, entity.partition_key.Of(record)));
    }
  }
  std::sort(places.begin(), places.end());
  std::vector<std::string> distinct = places;
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  if (distinct.size() <= kRowsMax) {
    starts_ = std::move(distinct);
  } else {
    for (size_t row = 0; row < kRowsMax; ++row) {
      const std::string& start = places[places.size() * row / kRowsMax];
      if (starts_.empty() || starts_.back() < start) starts_.push_back(start);
    }
  }
  const bool several = std::any_of(layout.entities.begin(), layout.entities.end(), [&](const auto& entity) {
    return entity.table != layout.entities[0].table;
  });
  for (const std::string& start : starts_) {
    const size_t cut = start.find('\0');
    labels_.push_back((several ? start.substr(0, cut) + " " : "") + start.substr(cut + 1));
  }
  PARTITA_ASSERT(!starts_.empty() && starts_.size() <= kRowsMax);
}

uint16_t KeyRows::RowOf(const std::string& place) const {
  const auto above = std::upper_bound(starts_.begin(), starts_.end(), place);
  const auto row = static_cast<size_t>(std::max<ptrdiff_t>(above - starts_.begin() - 1, 0));
  // What lies before all keys of its table is in the first row of that table, not in the last of another.
  const bool is_of_table = starts_[row].starts_with(place.substr(0, place.find('\0') + 1));
  return static_cast<uint16_t>(is_of_table ? row : std::min(row + 1, starts_.size() - 1));
}

KeyRows::Span KeyRows::Of(const std::string& table, std::string_view lower, std::string_view upper) const {
  const uint16_t first = RowOf(PlaceOf(table, lower));
  // The end of a table is where a name begins that is longer by a byte above the zero.
  const std::string end = upper.empty() ? table + '\x01' : PlaceOf(table, upper);
  const auto above = std::lower_bound(starts_.begin(), starts_.end(), end);
  const auto last = static_cast<uint16_t>(std::max<ptrdiff_t>(above - starts_.begin() - 1, 0));
  return {.first = first, .last = std::max(first, last)};
}

KeyRows::Span KeyRows::Of(const std::string& table, std::string_view key) const {
  const uint16_t row = RowOf(PlaceOf(table, key));
  return {.first = row, .last = row};
}

}  // namespace partita::lab
