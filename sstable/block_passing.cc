#include "sstable/block_passing.h"

#include <utility>

#include "sstable/files_beneath.h"
#include "sstable/index_record.h"
#include "sstable/table_scan.h"

namespace partita {

namespace {
// A look at a deleted key, which is hashed, counts as so many comparisons. So a scan that finds out that more
// is deleted (it leaps) has not passed over all of it.
constexpr size_t kDeletedCost = 16;
}  // namespace

BlockPassing::BlockPassing(const Cursor& cursor)
    : properties_(cursor.properties),
      top_(cursor.top),
      options_(cursor.options),
      scan_(*cursor.options.scan),
      key_sum_seed_(KeySumSeed(cursor.store)) {
  // Where it is not known what lies beneath, nothing is unwanted.
  if (options_.beneath != nullptr && scan_.predicate != nullptr)
    zones_.emplace(*scan_.predicate, properties_);
}

bool BlockPassing::IsUnwanted(const Place& place) {
  if (!zones_) return false;
  const std::string_view record = place.index.value(place.at);
  looks_cost_ += 8 + scan_.predicate->cost();
  if (zones_->BlockMayMatch(record)) return false;
  const Version version_max = TableZones::BlockVersionMax(record);
  if (version_max > scan_.visible) return false;
  if (options_.beneath->nothing()) return true;
  FenceBefore(place, &first_);
  place.index.KeyTo(place.at, &last_);
  const size_t before = options_.beneath->cost();
  const bool hides = options_.beneath->MayMatch(first_, last_, version_max);
  looks_cost_ += options_.beneath->cost() - before;
  return !hides;
}

// What deletes the block's keys deletes whatever lies beneath them, too.
bool BlockPassing::IsDeleted(const Place& place) {
  if (scan_.deleted == nullptr) return false;
  const std::string_view record = place.index.value(place.at);
  const std::optional<uint64_t> sum = IndexRecordKeySum(record);
  if (!sum) return false;
  const BlockKeys keys{.sum = *sum,
                       .seed = key_sum_seed_,
                       .count_max = IndexRecordEntryCount(record),
                       .version_max = TableZones::BlockVersionMax(record),
                       .shown_lower = options_.lower,
                       .shown_upper = options_.upper};
  FenceBefore(place, &first_);
  if (first_.empty()) {
    first_ = properties_.info.smallest;
  } else {
    first_.push_back('\0');
  }
  place.index.KeyTo(place.at, &last_);
  last_.push_back('\0');
  const size_t before = scan_.deleted->looks();
  const bool all = scan_.deleted->AreAll(first_, last_, keys);
  const size_t cost = kDeletedCost * (8 + scan_.deleted->looks() - before);
  looks_cost_ += cost;
  deleted_cost_ += cost;
  return all;
}

void BlockPassing::FenceBefore(const Place& place, std::string* out) const {
  if (place.at > 0) {
    place.index.KeyTo(place.at - 1, out);
  } else if (place.top_at > 0) {
    top_.KeyTo(place.top_at - 1, out);
  } else {
    out->clear();
  }
}

bool BlockPassing::Passed(const Place& place, Direction direction) {
  ++scan_.counts.blocks_skipped;
  size_t cost = std::exchange(deleted_cost_, 0);
  if (zones_) cost += 8 + scan_.predicate->cost() + options_.beneath->TakeCost();
  if (!scan_.Passed(cost)) return false;
  // What is still to come is above this block's fence; backward, at or below that of the block in front.
  if (direction == Direction::kForward) {
    place.index.KeyTo(place.at, &milestone_key_);
  } else {
    FenceBefore(place, &milestone_key_);
  }
  milestone_key_.push_back('\0');
  milestone_ = scan_.Milestone(milestone_key_);
  return true;
}

}  // namespace partita
