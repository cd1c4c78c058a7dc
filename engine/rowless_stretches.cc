#include "engine/rowless_stretches.h"

#include <algorithm>
#include <utility>

#include "engine/base/assert.h"
#include "engine/base/user_key.h"

namespace partita {

namespace {

// A sweep that finds less was not worth it.
constexpr uint64_t kEntriesWorthIt = 64;

// The first stretch that begins behind the key.
template <typename Set>
auto FirstBehind(const Set& set, std::string_view key) {
  return std::upper_bound(set.begin(), set.end(), key,
                          [](std::string_view k, const auto& stretch) { return k < stretch->keys.lower; });
}

}  // namespace

RowlessStretches::RowlessStretches() { Publish({}); }

bool RowlessStretches::Leap(Direction direction, Version visible, std::string* bound) const {
  if (size() == 0) return false;
  return published_.With([&](const Set& set) {
    return direction == Direction::kForward ? LeapForward(set, visible, bound)
                                            : LeapBackward(set, visible, bound);
  });
}

bool RowlessStretches::LeapForward(const Set& set, Version visible, std::string* bound) {
  auto next = FirstBehind(set, *bound);
  if (next == set.begin()) return false;
  const Stretch* last = std::prev(next)->get();
  if (*bound >= last->keys.upper || !last->KnownAt(visible)) return false;
  while (next != set.end() && (*next)->keys.lower == last->keys.upper && (*next)->KnownAt(visible)) {
    last = (next++)->get();
  }
  *bound = last->keys.upper;
  return true;
}

bool RowlessStretches::LeapBackward(const Set& set, Version visible, std::string* bound) {
  auto at = std::lower_bound(set.begin(), set.end(), *bound, [](const auto& stretch, const std::string& key) {
    return stretch->keys.lower < key;
  });
  if (at == set.begin()) return false;
  const Stretch* last = (--at)->get();
  if (*bound > last->keys.upper || !last->KnownAt(visible)) return false;
  while (at != set.begin()) {
    const Stretch* below = std::prev(at)->get();
    if (below->keys.upper != last->keys.lower || !below->KnownAt(visible)) break;
    last = below;
    --at;
  }
  *bound = last->keys.lower;
  return true;
}

// ---- Hints.

void RowlessStretches::Hint(std::string_view user_key) {
  std::lock_guard lock(mutex_);
  hint_ = user_key;
}

bool RowlessStretches::TakeHint(std::string* user_key) {
  std::lock_guard lock(mutex_);
  *user_key = std::exchange(hint_, std::string());
  return !user_key->empty();
}

bool RowlessStretches::has_hint() const {
  std::lock_guard lock(mutex_);
  return !hint_.empty();
}

bool RowlessStretches::NoteDeletes(uint64_t count, std::string_view last_key) {
  deletes_ += count;
  if (deletes_ < deletes_wanted_) return false;
  deletes_ = 0;
  Hint(last_key);
  return true;
}

// ---- What makes stretches untrue.

void RowlessStretches::NoteRow(std::string_view user_key) {
  if (watching_) {
    if (user_key < hint_watched_) {
      if (user_key > row_below_) row_below_ = user_key;
    } else if (row_above_.empty() || user_key < row_above_) {
      row_above_ = user_key;
    }
  }
  const auto behind = FirstBehind(*set_, user_key);
  if (behind == set_->begin()) return;
  const Stretch& stretch = **std::prev(behind);
  // Released with the row's version, at the latest.
  if (user_key < stretch.keys.upper) stretch.cut.store(true, std::memory_order_release);
}

void RowlessStretches::Forget(std::string_view lower, std::string_view upper) {
  for (const auto& stretch : *set_) {
    if (KeyRangesOverlap(lower, upper, stretch->keys.lower, stretch->keys.upper)) {
      stretch->cut.store(true, std::memory_order_release);
    }
  }
  forgot_ = forgot_ || KeyRangesOverlap(lower, upper, watched_.lower, watched_.upper);
}

// ---- The sweep.

std::optional<RowlessStretches::Interval> RowlessStretches::Watch(std::string_view hint, Interval bounds) {
  PARTITA_ASSERT(!watching_ && !bounds.upper.empty());
  PARTITA_ASSERT(hint >= bounds.lower && hint < bounds.upper);
  Set left;  // What was cut is in the way of what is found anew.
  for (const auto& stretch : *set_) {
    if (!stretch->cut.load(std::memory_order_relaxed)) left.push_back(stretch);
  }
  if (left.size() < set_->size()) Publish(std::move(left));
  const auto behind = FirstBehind(*set_, hint);
  if (behind != set_->end()) bounds.upper = std::min(bounds.upper, (*behind)->keys.lower);
  auto before = behind;
  if (before != set_->begin() && (*std::prev(before))->keys.lower == hint) {
    --before;
    bounds.upper = hint;
  }
  if (before != set_->begin()) bounds.lower = std::max(bounds.lower, (*std::prev(before))->keys.upper);
  if (hint < bounds.lower || bounds.lower >= bounds.upper) {
    watches_ = !set_->empty();
    return std::nullopt;
  }
  watches_ = watching_ = true;
  hint_watched_ = hint;
  row_below_.clear();
  row_above_.clear();
  forgot_ = false;
  watched_ = bounds;
  return bounds;
}

bool RowlessStretches::Add(Interval keys, Version since, uint64_t entries) {
  PARTITA_ASSERT(watching_ && keys.lower < keys.upper);
  PARTITA_ASSERT(keys.lower >= watched_.lower && keys.upper <= watched_.upper);
  const bool above = keys.lower >= hint_watched_;
  PARTITA_ASSERT(above || keys.upper <= hint_watched_);
  if (forgot_) return false;
  if (above ? !row_above_.empty() && keys.upper > row_above_ : keys.lower <= row_below_) return false;
  Set next = *set_;
  const auto behind = FirstBehind(next, keys.lower);
  next.insert(behind,
              std::make_shared<const Stretch>(std::move(keys), since, entries, dropped_worth_ + entries));
  JoinSmall(&next);
  Shrink(&next);
  Publish(std::move(next));
  return true;
}

void RowlessStretches::EndWatch(std::optional<uint64_t> entries) {
  PARTITA_ASSERT(watching_);
  watching_ = false;
  watched_ = {};
  watches_ = !set_->empty();
  if (!entries) return;
  deletes_wanted_ = *entries >= kEntriesWorthIt ? std::clamp(*entries / 4, kDeletesMin, kDeletesMax)
                                                : std::clamp(2 * deletes_wanted_, kDeletesFirst, kDeletesMax);
}

// REQUIRES: neither was cut; on the strand, so none is meanwhile.
std::shared_ptr<const RowlessStretches::Stretch> RowlessStretches::Joined(const Stretch& left,
                                                                          const Stretch& right) {
  return std::make_shared<const Stretch>(Interval{left.keys.lower, right.keys.upper},
                                         std::max(left.since, right.since), left.entries + right.entries,
                                         std::max(left.worth, right.worth));
}

namespace {
template <typename Stretch>
bool MayJoin(const Stretch& left, const Stretch& right) {
  return left.keys.upper == right.keys.lower && !left.cut.load(std::memory_order_relaxed) &&
         !right.cut.load(std::memory_order_relaxed);
}
}  // namespace

void RowlessStretches::JoinSmall(Set* set) {
  for (size_t i = 0; i + 1 < set->size();) {
    const Stretch &left = *(*set)[i], &right = *(*set)[i + 1];
    if (MayJoin(left, right) && left.entries + right.entries <= 2 * kEntriesMax) {
      (*set)[i] = Joined(left, right);
      set->erase(set->begin() + static_cast<ptrdiff_t>(i) + 1);
    } else {
      ++i;
    }
  }
}

// Joins the two smallest neighbours, or drops what is worth the least.
void RowlessStretches::Shrink(Set* set) {
  const auto key_bytes = [set] {
    size_t bytes = 0;
    for (const auto& stretch : *set) bytes += stretch->keys.lower.size() + stretch->keys.upper.size();
    return bytes;
  };
  while (set->size() > kStretchesMax || key_bytes() > kKeyBytesMax) {
    size_t best = set->size();
    uint64_t fewest = UINT64_MAX;
    for (size_t i = 0; i + 1 < set->size(); ++i) {
      const Stretch &left = *(*set)[i], &right = *(*set)[i + 1];
      if (!MayJoin(left, right) || left.entries + right.entries >= fewest) continue;
      fewest = left.entries + right.entries;
      best = i;
    }
    if (best < set->size()) {
      (*set)[best] = Joined(*(*set)[best], *(*set)[best + 1]);
      set->erase(set->begin() + static_cast<ptrdiff_t>(best) + 1);
    } else {
      const auto least = std::min_element(set->begin(), set->end(),
                                          [](const auto& a, const auto& b) { return a->worth < b->worth; });
      dropped_worth_ = std::max(dropped_worth_, (*least)->worth);
      set->erase(least);
    }
  }
}

void RowlessStretches::Publish(Set set) {
  size_.store(set.size(), std::memory_order_relaxed);
  auto next = std::make_unique<const Set>(std::move(set));
  const Set* shown = next.get();
  published_.Show(std::move(next));
  set_ = shown;
}

}  // namespace partita
