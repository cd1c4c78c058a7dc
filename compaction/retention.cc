#include "compaction/retention.h"

#include <algorithm>

#include "engine/base/coding.h"
#include "engine/base/user_key.h"

namespace partita {

RetentionFilter::RetentionFilter(RetentionPolicy policy, std::function<bool(TableId)> is_dead_table,
                                 std::function<bool(const Entry&)> droppable)
    : points_(std::move(policy.snapshots)),
      is_dead_table_(std::move(is_dead_table)),
      droppable_(std::move(droppable)) {
  points_.push_back(policy.visible);
  std::sort(points_.begin(), points_.end());
  points_.erase(std::unique(points_.begin(), points_.end()), points_.end());
  // A snapshot above `visible` adds nothing: all versions above `visible` are kept anyway.
  points_.erase(std::upper_bound(points_.begin(), points_.end(), policy.visible), points_.end());
}

bool RetentionFilter::IsDead(std::string_view user_key) {
  if (!is_dead_table_) return false;
  TableId table(LoadBe32(user_key.data()));
  if (known_table_ != table) {
    known_table_ = table;
    known_dead_ = is_dead_table_(table);
  }
  return known_dead_;
}

// The index of the lowest point at or above `version`; points_.size() above all of them.
size_t RetentionFilter::StripeOf(Version version) const {
  return std::lower_bound(points_.begin(), points_.end(), version) - points_.begin();
}

Result<Fate> RetentionFilter::Judge(const Entry& entry) {
  if (entry.user_key.size() <= kTableIdSize) return Status::Corruption("user key shorter than its table id");
  int order = started_ ? last_key_.compare(entry.user_key) : -1;
  bool same_key = order == 0;
  if (order > 0 || (same_key && last_version_ <= entry.version)) {
    return Status::Corruption("entries of a job out of order");
  }
  started_ = true;
  last_version_ = entry.version;
  if (!same_key) {
    last_key_.assign(entry.user_key);
    served_stripe_ = kNoStripe;
  }
  if (IsDead(entry.user_key)) return Fate::kDeadTable;

  size_t stripe = StripeOf(entry.version);
  if (stripe == points_.size()) return Fate::kKeep;  // Above the visible version.
  if (served_stripe_ == stripe) return Fate::kShadowed;
  served_stripe_ = stripe;
  bool goes = entry.kind == EntryKind::kTombstone && stripe == 0 && droppable_ && droppable_(entry);
  return goes ? Fate::kTombstoneDropped : Fate::kKeep;
}

bool RetentionFilter::KeepsAll(std::string_view first, std::string_view last) {
  if (first.size() <= kTableIdSize || last.size() <= kTableIdSize) return false;
  if (started_ && first <= last_key_) return false;
  if (!is_dead_table_) return true;
  return LoadBe32(first.data()) == LoadBe32(last.data()) && !IsDead(first);
}

void RetentionFilter::Passed(std::string_view last_key) {
  started_ = true;
  last_key_.assign(last_key);
  last_version_ = Version(0);  // All its versions went out.
  served_stripe_ = kNoStripe;
}

}  // namespace partita
