#include "sstable/block_passing.h"

#include "sstable/files_beneath.h"
#include "sstable/table_scan.h"

namespace partita {

BlockPassing::BlockPassing(const TableProperties& properties, const DataBlock& top, TableScan& scan,
                           FilesBeneath& beneath)
    : top_(top), scan_(scan), beneath_(beneath), zones_(*scan.predicate, properties) {}

bool BlockPassing::MayPass(const Place& place) {
  const std::string_view record = place.index.value(place.at);
  looks_cost_ += 8 + scan_.predicate->cost();
  if (zones_.BlockMayMatch(record)) return false;
  const Version version_max = TableZones::BlockVersionMax(record);
  if (version_max > scan_.visible) return false;
  if (beneath_.nothing()) return true;
  FenceBefore(place, &first_);
  place.index.KeyTo(place.at, &last_);
  const size_t before = beneath_.cost();
  const bool hides = beneath_.MayMatch(first_, last_, version_max);
  looks_cost_ += beneath_.cost() - before;
  return !hides;
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
  if (!scan_.Passed(8 + scan_.predicate->cost() + beneath_.TakeCost())) return false;
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
