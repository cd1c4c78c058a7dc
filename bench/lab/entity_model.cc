#include "bench/lab/entity_model.h"

#include <algorithm>

#include "bench/lab/write_planner.h"
#include "engine/base/assert.h"

namespace partita::lab {
namespace {

constexpr uint64_t kRowsMax = 40'000;
// Rows of a request that are looked at for matches, evenly; their share stands for the rest.
constexpr size_t kMatchSample = 500;

}  // namespace

EntityModel::EntityModel(const Layout& layout, const RecordGenerator& generator)
    : layout_(layout), generator_(generator), rows_(layout.entities.size()) {
  const uint64_t records = std::max<uint64_t>(generator.experiment().records, 1);
  // An odd step, so that what repeats with the record's number is seen throughout.
  const uint64_t step = records <= kRowsMax ? 1 : (records / kRowsMax + 1) | 1;
  scale_ = static_cast<double>(step);
  const std::vector<Field>& fields = generator.experiment().fields;
  uint64_t taken = 0;
  Record record;
  for (uint64_t number = 0; number < records; number += step, ++taken) {
    generator.Make(number, &record);
    for (size_t place = 0; place < layout.entities.size(); ++place) {
      const EntityPlan& plan = layout.entities[place];
      if (!plan.Takes(record)) continue;
      Entity entity = EntityOf(plan, record, fields);
      stored_bytes_ += static_cast<double>(EntitySizeBytes(entity));
      rows_[place].push_back({entity.partition_key(), entity.row_key(), number});
    }
  }
  for (size_t place = 0; place < rows_.size(); ++place) {
    std::vector<Row>& rows = rows_[place];
    std::sort(rows.begin(), rows.end());
    const EntityPlan& plan = layout.entities[place];
    if (plan.list_of) {
      ShareList(rows, ListPropertyOf(fields[*plan.list_of]));
      continue;
    }
    if (plan.fold_packs) ShareList(rows, plan.fold_name->text());
    if (!plan.fold_name.has_value()) continue;
    // Folded records share what an entity has once: its keys.
    const size_t before = rows.size();
    const auto same = [](const Row& a, const Row& b) {
      return a.partition_key == b.partition_key && a.row_key == b.row_key;
    };
    for (size_t i = 1; i < rows.size(); ++i) {
      if (!same(rows[i - 1], rows[i])) continue;
      if (plan.fold_packs) continue;
      stored_bytes_ -= static_cast<double>(EntitySizeBytes(Entity(rows[i].partition_key, rows[i].row_key)));
    }
    rows.erase(std::unique(rows.begin(), rows.end(), same), rows.end());
    PARTITA_ASSERT(rows.size() <= before);
  }
  for (const std::vector<Row>& rows : rows_) largest_.push_back(LargestOf(rows));
  stored_bytes_ /= static_cast<double>(std::max<uint64_t>(taken, 1));
}

void EntityModel::ShareList(const std::vector<Row>& rows, const std::string& name) {
  // Records in one list share all of an entity but their own value and a line feed.
  for (size_t i = 1; i < rows.size(); ++i) {
    if (rows[i - 1] < rows[i]) continue;
    Entity empty(rows[i].partition_key, rows[i].row_key);
    empty.Set(name, "");
    stored_bytes_ -= static_cast<double>(EntitySizeBytes(empty)) - 2;
  }
}

EntityModel::Largest EntityModel::LargestOf(const std::vector<Row>& rows) const {
  Largest largest;
  size_t most = 0;
  for (size_t first = 0, i = 0; i < rows.size(); ++i) {
    if (rows[i].partition_key != rows[first].partition_key) first = i;
    if (i - first + 1 <= most) continue;
    most = i - first + 1;
    largest.partition_key = rows[first].partition_key;
  }
  if (most > 0) largest.share = static_cast<double>(most) / static_cast<double>(rows.size());
  return largest;
}

EntityModel::Answer EntityModel::Ask(const QueryPlan& plan, const QueryPart& part, const Op& op,
                                     const KnownFields& known, uint64_t top) const {
  Answer all = AskOne(part.entity, plan, part, op, known, top);
  for (const size_t entity : part.also) {
    const Answer one = AskOne(entity, plan, part, op, known, top);
    all.scanned += one.scanned;
    all.returned += one.returned;
  }
  if (top > 0 && all.returned > static_cast<double>(top)) {
    all.scanned *= static_cast<double>(top) / all.returned;
    all.returned = static_cast<double>(top);
  }
  return all;
}

EntityModel::Answer EntityModel::AskOne(size_t entity, const QueryPlan& plan, const QueryPart& part,
                                        const Op& op, const KnownFields& known, uint64_t top) const {
  const std::vector<Row>& rows = rows_[entity];
  auto first = std::lower_bound(rows.begin(), rows.end(), Row{part.partition_lower, part.row_lower, 0});
  auto last = rows.end();
  if (part.kind <= PlanKind::kPartition) {
    last = part.row_upper.empty()
               ? std::lower_bound(rows.begin(), rows.end(), Row{part.partition_upper, "", 0})
               : std::lower_bound(rows.begin(), rows.end(), Row{part.partition_lower, part.row_upper, 0});
  } else if (!part.partition_upper.empty()) {
    last = std::lower_bound(rows.begin(), rows.end(), Row{part.partition_upper, "", 0});
  }
  last = std::max(first, last);
  const auto found = static_cast<size_t>(last - first);
  if (layout_.entities[entity].list_of && part.kind == PlanKind::kPoint) {
    // One entity, which lists what is found.
    return {1.0, std::max(static_cast<double>(found) * scale_, 1.0)};
  }
  if (part.kind == PlanKind::kPoint) {
    // A point is asked for by who has the keys of a record: one written since, or not in the sample, is there
    // too.
    const bool there = found > 0 || plan.parts.size() == 1;
    return {there ? 1.0 : 0.0, there ? 1.0 : 0.0};
  }
  double share = 1;
  if (!plan.residual.empty() && found > 0) {
    const size_t stride = std::max<size_t>(1, found / kMatchSample);
    size_t looked = 0, matched = 0;
    Record record;
    for (size_t i = 0; i < found; i += stride, ++looked) {
      generator_.Make((first + static_cast<ptrdiff_t>(i))->record, &record);
      if (Matches(op, known, record)) ++matched;
    }
    share = static_cast<double>(matched) / static_cast<double>(looked);
  }
  Answer answer{.scanned = static_cast<double>(found) * scale_};
  answer.returned = answer.scanned * share;
  if (top > 0 && answer.returned > static_cast<double>(top)) {
    answer.scanned *= static_cast<double>(top) / answer.returned;
    answer.returned = static_cast<double>(top);
  }
  return answer;
}

}  // namespace partita::lab
