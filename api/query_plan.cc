#include "api/query_plan.h"

#include <algorithm>

#include "api/key_boxes.h"
#include "api/zone_filter.h"
#include "engine/base/user_key.h"

namespace partita {
namespace {

constexpr char kSeparator = '\0';
constexpr char kAfterPartition = '\1';

// ---- Keys without the table id: PartitionKey, separator, RowKey, in ordered text.

// The first key at or behind (partition, row). No entity's PartitionKey holds a zero byte, so a bound that
// does lies behind the partition named by what stands before it.
std::string FirstKeyFrom(std::string_view partition_key, std::string_view row_key) {
  const size_t zero = partition_key.find(kSeparator);
  std::string key = OrderedText(partition_key.substr(0, zero));
  if (zero != partition_key.npos) return key + kAfterPartition;
  key.push_back(kSeparator);
  AppendOrderedText(&key, row_key);
  return key;
}

// Where the keys up to (partition, row) inclusive end; without a row, with the partition.
std::string EndOfKeysUpTo(std::string_view partition_key, const std::optional<std::string>& row_key) {
  const size_t zero = partition_key.find(kSeparator);
  std::string key = OrderedText(partition_key.substr(0, zero));
  if (zero != partition_key.npos || !row_key) return key + kAfterPartition;
  key.push_back(kSeparator);
  AppendOrderedText(&key, *row_key);
  key.push_back('\0');  // What follows a key directly.
  return key;
}

PlanInterval IntervalOf(const KeyRange& range) {
  PlanInterval interval;
  if (range.start) {
    interval.lower = FirstKeyFrom(range.start->partition_key, range.start->row_key.value_or(""));
  }
  if (range.end) interval.upper = EndOfKeysUpTo(range.end->partition_key, range.end->row_key);
  return interval;
}

// An end of an interval of RowKeys as it continues a PartitionKey and its separator: `k 00`, just before k,
// is where k begins, and `k 01` what follows k directly.
std::string_view RowEnd(const std::string& end, bool* behind) {
  *behind = end.back() != '\0';
  return std::string_view(end).substr(0, end.size() - 1);
}

void AppendRowEnd(std::string* key, const std::string& end) {
  if (end.empty()) return;
  bool behind = false;
  key->append(RowEnd(end, &behind));
  if (behind) key->push_back('\0');
}

// The keys of a box as one interval; false when other keys lie in it, too. Rows narrow the first and the
// last partition of an interval over several, at best.
bool ToInterval(const KeyBox& box, PlanInterval* out) {
  const KeyInterval& partitions = box.partitions;
  const KeyInterval& rows = box.rows;
  out->lower = partitions.lower;
  out->upper = partitions.upper;
  if (!out->lower.empty() && out->lower.back() == kSeparator) AppendRowEnd(&out->lower, rows.lower);
  if (!out->upper.empty() && out->upper.back() == kAfterPartition && !rows.upper.empty()) {
    out->upper.back() = kSeparator;
    AppendRowEnd(&out->upper, rows.upper);
  }
  return rows.open() || partitions.IsPoint();
}

bool IsEmpty(const PlanInterval& interval) {
  return !interval.upper.empty() && interval.lower >= interval.upper;
}

void Cut(PlanInterval* interval, const PlanInterval& by) {
  interval->lower = std::max(interval->lower, by.lower);
  interval->upper = NearerEnd(interval->upper, by.upper);
}

// Sorted, overlaps and neighbours joined.
std::vector<PlanInterval> Joined(std::vector<PlanInterval> intervals) {
  std::erase_if(intervals, IsEmpty);
  const auto before = [](const PlanInterval& a, const PlanInterval& b) { return a.lower < b.lower; };
  std::sort(intervals.begin(), intervals.end(), before);
  std::vector<PlanInterval> joined;
  for (PlanInterval& interval : intervals) {
    PlanInterval* last = joined.empty() ? nullptr : &joined.back();
    if (last == nullptr || (!last->upper.empty() && last->upper < interval.lower)) {
      joined.push_back(std::move(interval));
    } else if (!last->upper.empty() && (interval.upper.empty() || interval.upper > last->upper)) {
      last->upper = std::move(interval.upper);
    }
  }
  return joined;
}

// ---- Kinds.

// PartitionKey and separator of the one partition the interval lies in; empty when it spans several.
std::string_view PartitionOf(const PlanInterval& interval) {
  const std::string_view lower = interval.lower;
  const size_t separator = lower.find(kSeparator);
  if (separator == lower.npos || interval.upper.size() <= separator) return {};
  const std::string_view upper = interval.upper;
  if (upper.substr(0, separator) != lower.substr(0, separator)) return {};
  const char end = upper[separator];
  const bool within = end == kSeparator || (end == kAfterPartition && upper.size() == separator + 1);
  return within ? lower.substr(0, separator + 1) : std::string_view();
}

PlanKind KindOfOne(const PlanInterval& interval) {
  const bool from_start = interval.lower.empty() || interval.lower == std::string_view("\0", 1);
  if (from_start && interval.upper.empty()) return PlanKind::kTableScan;
  if (interval.IsPoint()) return PlanKind::kPoint;
  const std::string_view partition = PartitionOf(interval);
  if (partition.empty()) return PlanKind::kPartitionRange;
  const bool whole = interval.lower.size() == partition.size() && interval.upper.back() == kAfterPartition &&
                     interval.upper.size() == partition.size();
  return whole ? PlanKind::kPartition : PlanKind::kRowRange;
}

PlanKind KindOf(const std::vector<PlanInterval>& intervals) {
  if (intervals.empty()) return PlanKind::kNothing;
  if (intervals.size() == 1) return KindOfOne(intervals.front());
  const auto is_point = [](const PlanInterval& interval) { return interval.IsPoint(); };
  if (std::all_of(intervals.begin(), intervals.end(), is_point)) return PlanKind::kPoints;
  const std::string_view first = PartitionOf(intervals.front());
  const auto same = [first](const PlanInterval& interval) { return PartitionOf(interval) == first; };
  if (!first.empty() && std::all_of(intervals.begin(), intervals.end(), same)) return PlanKind::kRowRanges;
  return PlanKind::kRanges;
}

// The roots of what the filter joins by `and`, from left to right.
std::vector<size_t> Conjuncts(const Filter& filter) {
  const std::vector<FilterNode>& nodes = filter.nodes();
  std::vector<size_t> roots, pending;
  if (!nodes.empty()) pending.push_back(nodes.size() - 1);
  while (!pending.empty()) {
    const size_t root = pending.back();
    pending.pop_back();
    if (nodes[root].kind == FilterNodeKind::kAnd) {
      pending.push_back(root - 1);
      pending.push_back(root - 1 - nodes[root - 1].size);
    } else {
      roots.push_back(root);
    }
  }
  return roots;
}

}  // namespace

std::string BoundOf(const QueryPosition& position) {
  return FirstKeyFrom(position.partition_key, position.row_key);
}

// A bound without a separator lies between two partitions, where no key is.
QueryPosition PositionOf(std::string_view bound) {
  const size_t separator = std::min(bound.find(kSeparator), bound.size());
  QueryPosition position{.partition_key = Utf8FromOrdered(bound.substr(0, separator))};
  if (separator < bound.size()) position.row_key = Utf8FromOrdered(bound.substr(separator + 1));
  return position;
}

std::string_view PlanKindName(PlanKind kind) {
  constexpr std::string_view kNames[] = {"empty",     "point",           "points", "row-range", "row-ranges",
                                         "partition", "partition-range", "ranges", "table-scan"};
  return kNames[static_cast<size_t>(kind)];
}

bool PlanInterval::IsPoint() const {
  return upper.size() == lower.size() + 1 && upper.back() == '\0' && upper.starts_with(lower) &&
         lower.find(kSeparator) != lower.npos;
}

bool KeyRange::Contains(std::string_view partition_key, std::string_view row_key) const {
  if (open()) return true;
  const std::string key = FirstKeyFrom(partition_key, row_key);
  const PlanInterval interval = IntervalOf(*this);
  return IsInKeyRange(key, interval.lower, interval.upper);
}

QueryPlan PlanQuery(const Filter& filter, const KeyRange& range) {
  KeyBoxes keys = KeyBoxes::All(/*exact=*/true);
  size_t work_left = kPlanWorkMax;
  bool exact = true;  // The intervals say all that the conjuncts left out of the residual say.
  std::vector<size_t> left_over;
  const std::vector<size_t> conjuncts = Conjuncts(filter);
  for (const size_t root : conjuncts) {
    KeyBoxes boxes =
        conjuncts.size() == 1 ? BoxesOf(filter, &work_left) : BoxesOf(filter.Subtree(root), &work_left);
    if (!boxes.exact) left_over.push_back(root);
    boxes.exact = true;
    keys = Intersection(std::move(keys), std::move(boxes), &work_left);
    exact = exact && keys.exact;
  }

  QueryPlan plan;
  const PlanInterval allowed = IntervalOf(range);
  for (const KeyBox& box : keys.boxes) {
    PlanInterval interval;
    exact = ToInterval(box, &interval) && exact;
    Cut(&interval, allowed);
    plan.intervals.push_back(std::move(interval));
  }
  plan.intervals = Joined(std::move(plan.intervals));
  plan.kind = KindOf(plan.intervals);
  if (plan.kind == PlanKind::kNothing) return plan;
  if (!exact || left_over.size() == conjuncts.size()) {
    plan.residual = filter;
  } else {
    for (const size_t root : left_over) {
      plan.residual = Filter::And(std::move(plan.residual), filter.Subtree(root));
    }
  }
  return plan;
}

void CutBefore(QueryPlan* plan, const QueryPosition& position) {
  const PlanInterval rest{.lower = BoundOf(position)};
  for (PlanInterval& interval : plan->intervals) Cut(&interval, rest);
  std::erase_if(plan->intervals, IsEmpty);
}

void CutFrom(QueryPlan* plan, const QueryPosition& position) {
  const PlanInterval rest{.upper = BoundOf(position)};
  for (PlanInterval& interval : plan->intervals) Cut(&interval, rest);
  std::erase_if(plan->intervals, IsEmpty);
}

void AppendCut(const QueryPlan& plan, const PlanInterval& owned, QueryPlan* part) {
  for (PlanInterval interval : plan.intervals) {
    Cut(&interval, owned);
    if (!IsEmpty(interval)) part->intervals.push_back(std::move(interval));
  }
}

// ---- In words.

namespace {

std::string Quoted(std::string_view ordered) {
  std::string text;
  AppendQuoted(&text, Utf8FromOrdered(ordered));
  return text;
}

std::string RowBounds(const PlanInterval& interval, std::string_view partition) {
  std::string text = "PartitionKey eq " + Quoted(partition.substr(0, partition.size() - 1));
  const std::string_view lower = std::string_view(interval.lower).substr(partition.size());
  const std::string_view upper = std::string_view(interval.upper).substr(partition.size());
  if (interval.IsPoint()) return text + " and RowKey eq " + Quoted(lower);
  const auto bound = [&text](std::string_view key, std::string_view exclusive, std::string_view inclusive) {
    const bool behind = key.ends_with('\0');
    if (behind) key.remove_suffix(1);
    text += " and RowKey " + std::string(behind ? inclusive : exclusive) + " " + Quoted(key);
  };
  if (!lower.empty()) bound(lower, "ge", "gt");
  if (interval.upper[partition.size() - 1] == kSeparator) bound(upper, "lt", "le");
  return text;
}

// One end of an interval over partitions. `at`: the operator for just before a key, `behind`: just after it.
std::string PartitionBound(std::string_view end, std::string_view at, std::string_view behind) {
  if (end.empty()) return {};
  const size_t separator = end.find(kSeparator);
  if (separator == end.npos) {
    return "PartitionKey " + std::string(behind) + " " + Quoted(end.substr(0, end.size() - 1));
  }
  const std::string partition = Quoted(end.substr(0, separator));
  std::string_view row = end.substr(separator + 1);
  if (row.empty()) return "PartitionKey " + std::string(at) + " " + partition;
  const bool after = row.ends_with('\0');
  if (after) row.remove_suffix(1);
  return "(PartitionKey, RowKey) " + std::string(after ? behind : at) + " (" + partition + ", " +
         Quoted(row) + ")";
}

std::string BoundsOfInterval(const PlanInterval& interval) {
  const std::string_view partition = PartitionOf(interval);
  if (!partition.empty()) return RowBounds(interval, partition);
  const std::string lower = PartitionBound(interval.lower, "ge", "gt");
  const std::string upper = PartitionBound(interval.upper, "lt", "le");
  if (lower.empty() && upper.empty()) return "all";
  return lower.empty() || upper.empty() ? lower + upper : lower + " and " + upper;
}

}  // namespace

Explanation Explain(const QueryPlan& plan, size_t bounds_max) {
  Explanation explanation;
  explanation.kind = std::string(PlanKindName(plan.kind));
  explanation.residual = plan.residual.ToString();
  for (const PlanInterval& interval : plan.intervals) {
    if (explanation.bounds.size() == bounds_max) break;
    explanation.bounds.push_back(BoundsOfInterval(interval));
  }
  const ZoneFilter zones(plan.residual);
  if (zones.useful()) explanation.zone_maps.assign(zones.properties().begin(), zones.properties().end());
  return explanation;
}

}  // namespace partita
