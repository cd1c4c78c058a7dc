#include "engine/read_view.h"

#include <algorithm>
#include <optional>

#include "engine/base/assert.h"
#include "engine/range_search.h"
#include "engine/strand.h"
#include "memtable/memtable_iterator.h"

namespace partita {

const RangeView* ReadView::FindRange(std::string_view user_key) const {
  return RangeHolding(user_key, ranges);
}

Lookup ReadView::GetFromMemtables(std::string_view user_key, Version at_most) const {
  // Newer memtables hold newer versions of a key, so the first answer is the newest.
  Lookup found = active->Get(user_key, at_most);
  for (const MemtableRef& memtable : frozen) {
    if (found.state != LookupState::kAbsent) return found;
    found = memtable.table->Get(user_key, at_most);
  }
  return found;
}

bool ReadView::MemtablesHoldAnyOf(std::string_view first, std::string_view last) const {
  if (active->HoldsAnyOf(first, last)) return true;
  return std::any_of(frozen.begin(), frozen.end(),
                     [&](const MemtableRef& memtable) { return memtable.table->HoldsAnyOf(first, last); });
}

namespace {

struct FirstAndLast {
  std::string_view first, last;
};

std::optional<FirstAndLast> KeysOf(const Memtable& memtable) {
  MemtableIterator first(memtable, Direction::kForward, kVersionMax);
  MemtableIterator last(memtable, Direction::kBackward, kVersionMax);
  if (first.SeekToFirst() != IterState::kEntry || last.SeekToFirst() != IterState::kEntry)
    return std::nullopt;
  return FirstAndLast{first.entry().user_key, last.entry().user_key};
}

}  // namespace

bool ReadView::LiesOnNothing(const Memtable& memtable) const {
  const std::optional<FirstAndLast> keys = KeysOf(memtable);
  if (!keys) return false;
  for (auto older = frozen.rbegin(); older != frozen.rend() && older->table.get() != &memtable; ++older) {
    const std::optional<FirstAndLast> of_older = KeysOf(*older->table);
    if (of_older && of_older->first <= keys->last && of_older->last >= keys->first) return false;
  }
  const std::string end = std::string(keys->last) + '\0';
  for (const RangeView& range : ranges) {
    for (size_t level = 0; level < kLevels; ++level) {
      if (!range.levels->Overlapping(level, keys->first, end).empty()) return false;
    }
  }
  return true;
}

void ViewPin::Release() {
  if (view_ == nullptr) return;
  publisher_->Unpin(view_);
  publisher_ = nullptr;
  view_ = nullptr;
}

ReadViewPublisher::~ReadViewPublisher() {
  Reclaim();
  PARTITA_ASSERT(retired_.empty());
  delete current_.load();
}

void ReadViewPublisher::Show(std::unique_ptr<ReadView> next) {
  const ReadView* old = current_.exchange(next.release(), std::memory_order_acq_rel);
  if (old == nullptr) return;
  std::lock_guard lock(mutex_);
  old->pins_.fetch_or(ReadView::kRetired, std::memory_order_acq_rel);
  retired_.push_back({++retired_so_far_, std::unique_ptr<const ReadView>(old)});
}

ReadViewPublisher::Guard::Guard(ReadViewPublisher& publisher)
    : publisher_(publisher), slot_(HazardSlots::Slot()) {
  if (slot_ == nullptr) {
    // No slot left: pin under the lock that reclaiming takes, so the view cannot go meanwhile.
    std::lock_guard lock(publisher.mutex_);
    view_ = publisher.current_.load(std::memory_order_acquire);
    view_->pins_.fetch_add(1, std::memory_order_acq_rel);
    return;
  }
  view_ = HazardSlots::Protect(slot_, publisher.current_);
}

ReadViewPublisher::Guard::~Guard() {
  if (slot_ == nullptr) {
    publisher_.Unpin(view_);
    return;
  }
  slot_->store(nullptr, std::memory_order_release);
}

ViewPin ReadViewPublisher::Guard::ToPin() const {
  view_->pins_.fetch_add(1, std::memory_order_acq_rel);
  return ViewPin(&publisher_, view_);
}

void ReadViewPublisher::Unpin(const ReadView* view) {
  const uint32_t before = view->pins_.fetch_sub(1, std::memory_order_acq_rel);
  PARTITA_ASSERT((before & ~ReadView::kRetired) > 0);
  if (before == (ReadView::kRetired | 1)) Reclaim();
}

// The barrier, a system call, outside the lock, which the strand takes: its caller may lose its core there.
// Nothing leaves retired_ meanwhile, so that it keeps nobody else from reclaiming.
void ReadViewPublisher::Reclaim() {
  PARTITA_ASSERT(!Strand::AnyHeldByThisThread());
  uint64_t passed = 0;
  {
    std::lock_guard lock(mutex_);
    if (retired_.empty()) return;
    passed = retired_so_far_;
  }
  HazardSlots::HeavyBarrier();
  std::vector<std::unique_ptr<const ReadView>> free;
  bool held = false;
  {
    std::lock_guard lock(mutex_);
    for (Retired& retired : retired_) {
      if (retired.number > passed) break;  // Who retired it reclaims, too.
      // Slot first, count second: a reader raises the count before it clears its slot.
      if (HazardSlots::Holds(retired.view.get())) {
        held = true;
        continue;
      }
      if (retired.view->pins_.load(std::memory_order_acquire) != ReadView::kRetired) continue;
      free.push_back(std::move(retired.view));
    }
    std::erase_if(retired_, [](const Retired& retired) { return retired.view == nullptr; });
  }
  if (held && on_held_) on_held_();
  // Freed outside the lock: a view may hold the last reference to whole memtables and tables.
}

size_t ReadViewPublisher::retired_count() {
  std::lock_guard lock(mutex_);
  return retired_.size();
}

}  // namespace partita
