#include "bench/lab/entity_model.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "bench/lab/draw.h"
#include "bench/lab/entity_units.h"
#include "bench/lab/key_span.h"
#include "bench/lab/write_planner.h"

namespace partita::lab {
namespace {

constexpr uint64_t kRowsMax = 40'000;
// Of runs of neighbours there are so many at least, of so many records, so that they are from all over.
constexpr uint64_t kRunsMin = 8, kRunMin = 256;
// In so many neighbours it is looked how far apart the records of an entity are; more are tried up to the
// last.
constexpr uint64_t kSpanLookedMin = 4'096, kSpanLookedMax = 16'384;
// Where keys may come again anywhere, so many records are looked at for them.
constexpr uint64_t kDistinctLookedMax = 200'000;
// Rows of a request that are looked at for matches, evenly; their share stands for the rest.
constexpr size_t kMatchSample = 500;
// Where an entity has no row: it began where rows are not taken from.
constexpr size_t kNoRow = SIZE_MAX;

std::string KeysOf(const EntityPlan& plan, const Record& record) {
  return plan.partition_key.Of(record) + '\0' + plan.row_key.Of(record);
}

bool IsSameEachTime(const Condition& condition) {
  return condition.kind == Condition::Kind::kEquals || condition.kind == Condition::Kind::kBetween ||
         condition.kind == Condition::Kind::kOneOf;
}

}  // namespace

EntityModel::EntityModel(const Layout& layout, const RecordGenerator& generator)
    : layout_(layout),
      generator_(generator),
      rows_(layout.entities.size()),
      before_(layout.entities.size()),
      taken_(layout.entities.size()) {
  uint64_t taken = 0;
  for (const Run& run : ChooseRuns()) {
    Take(run);
    taken += run.count();
  }
  scale_ =
      static_cast<double>(std::max<uint64_t>(generator.experiment().records, 1)) / static_cast<double>(taken);
  for (size_t place = 0; place < rows_.size(); ++place) {
    std::vector<Row>& rows = rows_[place];
    std::sort(rows.begin(), rows.end());
    if (layout.entities[place].list_of) ShareList(place);
    if (layout.entities[place].fold_name) {
      const auto same = [](const Row& a, const Row& b) { return !(a < b); };  // They are in order.
      rows.erase(std::unique(rows.begin(), rows.end(), same), rows.end());
    }
    AddUp(place);
    largest_.push_back(LargestOf(place));
  }
  stored_bytes_ /= static_cast<double>(taken);
}

std::vector<EntityModel::Run> EntityModel::ChooseRuns() const {
  const uint64_t records = std::max<uint64_t>(generator_.experiment().records, 1);
  std::vector<Run> all = {{.end = records, .tail = records}};
  if (records <= kRowsMax) return all;
  const bool folds = std::any_of(layout_.entities.begin(), layout_.entities.end(),
                                 [](const EntityPlan& plan) { return plan.fold_name.has_value(); });
  if (!folds) return {{.end = records, .tail = records, .step = records / kRowsMax + 1}};
  const uint64_t span = SpanOfFolds(), length = std::max(2 * span, kRunMin);
  const uint64_t count = std::max(kRowsMax / (span + length), kRunsMin);
  if (count * (span + length) >= records) return all;
  std::vector<Run> runs;
  for (uint64_t i = 0; i < count; ++i) {
    // Not all begin where an entity does.
    const auto shift = static_cast<uint64_t>(std::fmod(static_cast<double>(i) * std::numbers::phi, 1) *
                                             static_cast<double>(span));
    const uint64_t first = i * (records / count) + shift, end = first + length;
    runs.push_back({.lead = first - std::min(first, span),
                    .first = first,
                    .end = end,
                    .tail = std::max(end, std::min(end + span, records))});
  }
  return runs;
}

// How far apart the records of one entity are at most, from the first to behind the last.
uint64_t EntityModel::SpanOfFolds() const {
  const uint64_t begin = generator_.experiment().records / 2;
  std::vector<std::unordered_map<std::string, uint64_t>> first(layout_.entities.size());
  uint64_t span = 1, limit = kSpanLookedMin;
  Record record;
  for (uint64_t looked = 0; looked < limit; ++looked) {
    generator_.Make(begin + looked, &record);
    for (size_t place = 0; place < layout_.entities.size(); ++place) {
      const EntityPlan& plan = layout_.entities[place];
      if (!plan.fold_name || !plan.Takes(record)) continue;
      const auto [found, is_new] = first[place].try_emplace(KeysOf(plan, record), looked);
      span = std::max(span, looked - found->second + 1);
    }
    // What fills much of what was looked at may be longer still.
    if (looked + 1 == limit && span > limit / 2 && limit < kSpanLookedMax) limit *= 2;
  }
  return std::min(span, kSpanLookedMax / 2);
}

void EntityModel::Take(const Run& run) {
  const std::vector<Field>& fields = generator_.experiment().fields;
  std::vector<std::unordered_map<std::string, size_t>> begun(layout_.entities.size());  // And their rows.
  Record record;
  for (uint64_t from = run.lead; from < run.tail; from += run.step) {
    const uint64_t number = DrawnFrom(from, run.step, run.tail);
    const bool counts = number >= run.first && number < run.end;
    generator_.Make(number, &record);
    for (size_t place = 0; place < layout_.entities.size(); ++place) {
      const EntityPlan& plan = layout_.entities[place];
      if (!plan.Takes(record)) continue;
      std::vector<Row>& rows = rows_[place];
      size_t row = counts ? rows.size() : kNoRow;
      if (plan.fold_name) row = begun[place].try_emplace(KeysOf(plan, record), row).first->second;
      if (!counts && row == kNoRow) continue;
      const bool begins = row == rows.size();
      const Entity entity = EntityOf(plan, record, fields);
      const uint64_t bytes = EntitySizeBytes(entity) - (begins ? 0 : SharedBytes(plan, record));
      if (counts) stored_bytes_ += static_cast<double>(bytes);
      if (counts) ++taken_[place];
      if (begins) {
        rows.push_back({entity.partition_key(), entity.row_key(), number, bytes});
      } else if (row != kNoRow) {
        rows[row].bytes += bytes;
      }
    }
  }
}

// What a record adds nothing to where another one is in its entity already. A pack has a line feed, of two
// bytes, between two.
uint64_t EntityModel::SharedBytes(const EntityPlan& plan, const Record& record) const {
  const std::vector<Field>& fields = generator_.experiment().fields;
  Entity shared(plan.partition_key.Of(record), plan.row_key.Of(record));
  if (plan.list_of) {
    shared.Set(ListPropertyOf(fields[*plan.list_of]), "");
    return EntitySizeBytes(shared) - 2;
  }
  for (const size_t field : plan.fields) shared.AppendProperty(fields[field].name, record.values[field]);
  if (!plan.fold_packs) return EntitySizeBytes(shared);
  shared.Set(plan.fold_name->text(), "");
  return EntitySizeBytes(shared) - 2;
}

void EntityModel::ShareList(size_t place) {
  const EntityPlan& plan = layout_.entities[place];
  std::vector<Row>& rows = rows_[place];
  const double share = is_sample() ? 1 - DistinctShareOf(plan) : 1;
  Record record;
  for (size_t i = 0; i < rows.size(); ++i) {
    generator_.Make(rows[i].record, &record);
    const uint64_t shared = SharedBytes(plan, record);
    rows[i].bytes -= shared;
    const bool is_first = i == 0 || rows[i - 1] < rows[i];
    if (is_sample() || !is_first) stored_bytes_ -= share * static_cast<double>(shared);
  }
}

void EntityModel::AddUp(size_t place) {
  const bool is_list = layout_.entities[place].list_of.has_value();
  std::vector<uint64_t>& before = before_[place];
  before.push_back(0);
  for (const Row& row : rows_[place]) {
    before.push_back(before.back() + (is_list ? row.bytes : UnitsOfSize(row.bytes)));
  }
}

// Of those of the first records that have a place there: how many entities they are in, for each.
double EntityModel::DistinctShareOf(const EntityPlan& plan) const {
  std::unordered_set<std::string> keys;
  uint64_t count = 0;
  Record record;
  for (uint64_t number = 0; number < std::min(generator_.experiment().records, kDistinctLookedMax);
       ++number) {
    generator_.Make(number, &record);
    if (!plan.Takes(record)) continue;
    keys.insert(KeysOf(plan, record));
    ++count;
  }
  return count == 0 ? 1 : static_cast<double>(keys.size()) / static_cast<double>(count);
}

EntityModel::Largest EntityModel::LargestOf(size_t place) const {
  const std::vector<Row>& rows = rows_[place];
  const std::vector<uint64_t>& before = before_[place];
  Largest largest;
  uint64_t most = 0;
  for (size_t first = 0, i = 0; i < rows.size(); ++i) {
    if (rows[i].partition_key != rows[first].partition_key) first = i;
    if (before[i + 1] - before[first] <= most) continue;
    most = before[i + 1] - before[first];
    largest.partition_key = rows[first].partition_key;
  }
  if (most > 0) largest.share = static_cast<double>(most) / static_cast<double>(before.back());
  return largest;
}

EntityModel::Sum EntityModel::SumOf(size_t place) const {
  return {.entities = static_cast<double>(rows_[place].size()),
          .units = static_cast<double>(before_[place].back()),
          .records = static_cast<double>(taken_[place])};
}

double EntityModel::UnitsOfOne(size_t place, size_t first, size_t last) const {
  if (layout_.entities[place].list_of) return UnitsOfList(place, first, last);
  if (first == last) last = rows_[place].size(), first = 0;
  if (first == last) return 1;
  const std::vector<uint64_t>& before = before_[place];
  return static_cast<double>(before[last] - before[first]) / static_cast<double>(last - first);
}

double EntityModel::UnitsOfList(size_t place, size_t first, size_t last) const {
  if (first == last) return 1;  // Nothing is on it yet.
  Record record;
  generator_.Make(rows_[place][first].record, &record);
  const uint64_t shared = SharedBytes(layout_.entities[place], record);
  const double listed = scale_ * static_cast<double>(before_[place][last] - before_[place][first]);
  return static_cast<double>(UnitsOfSize(shared + static_cast<uint64_t>(listed)));
}

double EntityModel::UnitsAt(const std::string& table, const std::string& partition_key,
                            const std::string& row_key) const {
  const Row wanted{partition_key, row_key};
  std::optional<size_t> first_place;
  for (size_t place = 0; place < rows_.size(); ++place) {
    if (layout_.entities[place].table != table) continue;
    if (!first_place) first_place = place;
    const std::vector<Row>& rows = rows_[place];
    const auto [first, last] = std::equal_range(rows.begin(), rows.end(), wanted);
    if (first == last) continue;
    return UnitsOfOne(place, static_cast<size_t>(first - rows.begin()),
                      static_cast<size_t>(last - rows.begin()));
  }
  return first_place ? UnitsOfOne(*first_place, 0, 0) : 1;
}

EntityModel::Answer EntityModel::Ask(const QueryPlan& plan, const QueryPart& part, const Op& op,
                                     const KnownFields& known, uint64_t top) const {
  Answer all = AskOne(part.entity, plan, part, op, known, top);
  for (const size_t entity : part.also) {
    const Answer one = AskOne(entity, plan, part, op, known, top);
    all.scanned += one.scanned;
    all.returned += one.returned;
    all.units += one.units;
  }
  return FirstOf(all, top);
}

// As far as it goes until `top` are found.
EntityModel::Answer EntityModel::FirstOf(const Answer& all, uint64_t top) {
  const auto wanted = static_cast<double>(top);
  if (top == 0 || all.returned <= wanted) return all;
  const double share = wanted / all.returned;
  return {.scanned = all.scanned * share, .returned = wanted, .units = all.units * share};
}

// The rows of its keys, from the first to behind the last.
std::pair<size_t, size_t> EntityModel::FoundBy(size_t entity, const QueryPart& part) const {
  const std::vector<Row>& rows = rows_[entity];
  const auto at = [&](const std::string& partition_key, const std::string& row_key) {
    const auto found = std::lower_bound(rows.begin(), rows.end(), Row{partition_key, row_key, 0});
    return static_cast<size_t>(found - rows.begin());
  };
  const size_t first = at(part.partition_lower, part.row_lower);
  size_t last = rows.size();
  if (part.kind <= PlanKind::kPartition) {
    last = part.row_upper.empty() ? at(part.partition_upper, "") : at(part.partition_lower, part.row_upper);
  } else if (!part.partition_upper.empty()) {
    last = at(part.partition_upper, "");
  }
  return {first, std::max(first, last)};
}

double EntityModel::ShareOf(size_t place, const std::string& partition_key) const {
  const std::vector<Row>& rows = rows_[place];
  const auto first = std::lower_bound(rows.begin(), rows.end(), Row{partition_key, "", 0});
  const auto last = std::lower_bound(first, rows.end(), Row{Behind(partition_key), "", 0});
  return rows.empty() ? 0 : static_cast<double>(last - first) / static_cast<double>(rows.size());
}

void EntityModel::VisitFound(const QueryPart& part, const Op& op, const KnownFields& known, double returned,
                             const std::function<void(const Record& record, double count)>& visit) const {
  const std::vector<Row>& rows = rows_[part.entity];
  const auto [first, last] = FoundBy(part.entity, part);
  // A few are the first of them, in order; of many some from all over.
  const double wanted = std::ceil(returned / scale_);
  const size_t stride = wanted <= static_cast<double>(kMatchSample) ? 1 : (last - first) / kMatchSample + 1;
  std::vector<Record> found;
  Record record;
  for (size_t i = first; i < last && (stride > 1 || static_cast<double>(found.size()) < wanted);
       i += stride) {
    generator_.Make(rows[i].record, &record);
    // Whose keys are those of a list is on it.
    if (layout_.entities[part.entity].list_of || Matches(op, known, record)) found.push_back(record);
  }
  // One that is not in the sample, or was written since: it is the one that is asked for.
  if (found.empty() && returned > 0) found.push_back(known.probe);
  for (const Record& one : found) visit(one, returned / static_cast<double>(found.size()));
}

double EntityModel::MatchesAmong(size_t entity, size_t begin, size_t end, size_t sample, const Op& op,
                                 const KnownFields& known) const {
  const size_t stride = std::max<size_t>(1, (end - begin) / sample);
  size_t looked = 0, matched = 0;
  Record record;
  // Each time others of them.
  for (size_t i = begin + times_looked_++ % stride; i < end; i += stride, ++looked) {
    generator_.Make(rows_[entity][i].record, &record);
    if (Matches(op, known, record)) ++matched;
  }
  return static_cast<double>(matched) / static_cast<double>(looked);
}

EntityModel::Answer EntityModel::AskOne(size_t entity, const QueryPlan& plan, const QueryPart& part,
                                        const Op& op, const KnownFields& known, uint64_t top) const {
  const auto [begin, end] = FoundBy(entity, part);
  const size_t found = end - begin;
  if (layout_.entities[entity].list_of && part.kind == PlanKind::kPoint) {
    // One entity, which lists what is found.
    return {.scanned = 1,
            .returned = std::max(static_cast<double>(found) * scale_, 1.0),
            .units = UnitsOfOne(entity, begin, end)};
  }
  if (part.kind == PlanKind::kPoint) {
    // A point is asked for by who has the keys of a record: one written since, or not in the sample, is there
    // too.
    const bool there = found > 0 || plan.parts.size() == 1;
    if (!there) return {};
    return {.scanned = 1, .returned = 1, .units = UnitsOfOne(entity, begin, end)};
  }
  double share = 1;
  if (!plan.residual.empty() && found > 0) {
    const bool is_same = std::all_of(op.where.begin(), op.where.end(), IsSameEachTime);
    const auto look = [&](size_t sample) { return MatchesAmong(entity, begin, end, sample, op, known); };
    if (is_same) {
      const auto [held, is_new] = shares_.try_emplace({&op, entity, part.filter.whole()});
      if (is_new) held->second = look(found);
      share = held->second;
    } else {
      share = look(kMatchSample);
    }
  }
  const double scanned = static_cast<double>(found) * scale_;
  const double units = static_cast<double>(before_[entity][end] - before_[entity][begin]) * scale_;
  return FirstOf({.scanned = scanned, .returned = scanned * share, .units = units}, top);
}

}  // namespace partita::lab
