#include "bench/lab/spread.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "bench/lab/draw.h"
#include "bench/lab/record_generator.h"
#include "engine/base/assert.h"

namespace partita::lab {
namespace {

constexpr double kFullShare = 0.5;          // So full is the hottest piece to be,
constexpr uint64_t kPiecesMax = 64;         // of so many: a query must ask each.
constexpr uint64_t kSpreadLooked = 20'000;  // Records of which it is looked where they would go.

// Records of the partition, from all over.
std::vector<Record> RecordsOf(const Experiment& experiment, const EntityPlan& place,
                              const std::string& partition_key) {
  const RecordGenerator generator(experiment);
  const uint64_t records = std::max(experiment.records, kSpreadLooked / 10);
  const uint64_t step = std::max<uint64_t>(records / kSpreadLooked, 1);
  std::vector<Record> found;
  Record record;
  for (uint64_t from = 0; from < records; from += step) {
    generator.Make(DrawnFrom(from, step, records), &record);
    const bool is_there = place.Takes(record) && place.partition_key.Of(record) == partition_key;
    if (is_there) found.push_back(record);
  }
  return found;
}

// Which share of the records the text of a key is the same for, where it is for most.
struct Shares {
  double most = 1;
  size_t distinct = 0;
};

Shares SharesBy(const std::string& key, const Experiment& experiment, const std::vector<Record>& records) {
  const Result<KeyTemplate> parsed = KeyTemplate::Parse(key, experiment.fields);
  if (!parsed.ok() || records.empty()) return {};
  std::map<std::string, size_t> counts;
  size_t most = 0;
  for (const Record& record : records) most = std::max(most, ++counts[parsed->Of(record)]);
  return {.most = static_cast<double>(most) / static_cast<double>(records.size()), .distinct = counts.size()};
}

// The weight of the operations that ask for one value of the field.
double WeightOfReadersBy(const Experiment& experiment, size_t field) {
  double weight = 0;
  for (const Op& op : experiment.ops) {
    const bool names = std::any_of(op.where.begin(), op.where.end(), [&](const Condition& condition) {
      const bool is_one =
          condition.kind == Condition::Kind::kEquals || condition.kind == Condition::Kind::kEqualsRecord;
      return condition.field == field && is_one;
    });
    if (op.kind == OpKind::kQuery && names) weight += op.weight;
  }
  return weight;
}

}  // namespace

Spread BestSpread(const Experiment& experiment, const EntityPlan& place, const std::string& partition_key,
                  double rate, double most) {
  PARTITA_ASSERT(rate > most && most > 0);
  const std::vector<Record> records = RecordsOf(experiment, place, partition_key);
  const auto pieces_min =
      static_cast<uint64_t>(std::min(std::ceil(rate / (most * kFullShare)), double{kPiecesMax}));
  Spread best{.key = "{salt(" + std::to_string(pieces_min) + ")}",
              .pieces = pieces_min,
              .rate = rate / static_cast<double>(pieces_min)};
  std::optional<std::tuple<bool, double, size_t>> best_rank;
  for (size_t field = 0; field < experiment.fields.size(); ++field) {
    if (!place.row_key.uses(field) || place.partition_key.uses(field)) continue;
    const std::string& name = experiment.fields[field].name;
    const size_t distinct = SharesBy("{" + name + "}", experiment, records).distinct;
    Spread spread{.key = {}, .pieces = pieces_min, .rate = rate};
    const auto try_pieces = [&] {
      spread.key = "{hash(" + name + ") % " + std::to_string(spread.pieces) + "}";
      spread.rate = rate * SharesBy(spread.key, experiment, records).most;
    };
    for (try_pieces(); spread.rate > most && spread.pieces < kPiecesMax; try_pieces()) {
      spread.pieces = std::min(2 * spread.pieces, kPiecesMax);
    }
    const std::tuple rank(spread.rate <= most, WeightOfReadersBy(experiment, field), distinct);
    if (distinct < 2 || (best_rank && rank <= *best_rank)) continue;
    best = std::move(spread);
    best_rank = rank;
  }
  return best;
}

}  // namespace partita::lab
