#include "engine/memtable_deletes.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/base/merging_iterator.h"

namespace partita {

namespace {
// Entries that one question may look at beyond two for each key of the block: of several memtables each may
// have one, and rows lie between them.
constexpr size_t kLooksSpare = 16;
}  // namespace

MemtableDeletes::MemtableDeletes(const ReadView& view, Direction direction, Version visible)
    : forward_(direction == Direction::kForward), visible_(visible) {
  std::vector<std::unique_ptr<EntryIterator>> sources;
  sources.push_back(view.active->NewIterator(direction, kVersionMax, visible));
  for (const MemtableRef& memtable : view.frozen) {
    sources.push_back(memtable.table->NewIterator(direction, kVersionMax, visible));
  }
  merged_ = MakeMergingIterator(std::move(sources), direction);
}

bool MemtableDeletes::AreAll(std::string_view lower, std::string_view upper, const BlockKeys& keys) {
  const std::string_view begin = forward_ ? lower : upper;
  const bool goes_on = std::exchange(is_placed_, false) && begin == reached_;
  IterState state = goes_on ? merged_->state() : merged_->Seek(begin);
  bool has_last = false, is_clean = true;
  uint64_t sum = 0;
  uint32_t count = 0;
  const size_t looks_begin = looks_;
  const size_t looks_end = looks_ + 2 * size_t{keys.count_max} + kLooksSpare;
  for (; state == IterState::kEntry; state = merged_->Next()) {
    const Entry& entry = merged_->entry();
    if (!IsWithin(entry.user_key, lower, upper)) break;
    if (++looks_ == looks_end) return false;
    if (entry.version > visible_) {
      is_clean = false;  // It may be of a row.
      continue;
    }
    if (has_last && entry.user_key == last_key_) continue;  // An older memtable's.
    last_key_.assign(entry.user_key);
    has_last = true;
    if (entry.kind != EntryKind::kTombstone) is_clean = false;
    if (entry.kind != EntryKind::kTombstone || entry.version <= keys.version_max) continue;
    if (++count > keys.count_max) return false;
    sum += KeySumTerm(entry.user_key, keys.seed);
  }
  is_placed_ = true;
  reached_.assign(forward_ ? upper : lower);
  if (count == 0 || sum != keys.sum) return false;
  const std::string_view shown_upper = keys.shown_upper.empty() ? upper : std::min(upper, keys.shown_upper);
  if (is_clean) Found(std::max(lower, keys.shown_lower), shown_upper, looks_ - looks_begin);
  return true;
}

void MemtableDeletes::Found(std::string_view lower, std::string_view upper, uint64_t entries) {
  const bool goes_on = !found_.upper.empty() && (forward_ ? found_.upper == lower : found_.lower == upper);
  if (!goes_on) found_.entries = 0;
  if (!goes_on || !forward_) found_.lower.assign(lower);
  if (!goes_on || forward_) found_.upper.assign(upper);
  found_.last_key.assign(last_key_);
  found_.entries += entries;
}

}  // namespace partita
