#include "engine/flush_queue.h"

#include <algorithm>
#include <utility>

#include "engine/base/assert.h"

namespace partita {

std::vector<FlushQueue::Taken>::iterator FlushQueue::Find(const Memtable* memtable) {
  return std::find_if(taken_.begin(), taken_.end(),
                      [memtable](const Taken& taken) { return taken.table.get() == memtable; });
}

const MemtableRef* FlushQueue::OldestUntaken(const ReadView& view) {
  const LogPosition end = end_();
  for (auto at = view.frozen.rbegin(); at != view.frozen.rend() && at->last < end; ++at) {
    if (Find(at->table.get()) == taken_.end()) return &*at;
  }
  return nullptr;
}

std::optional<MemtableRef> FlushQueue::Take() {
  ViewPin view;  // Let go behind the lock, as memtables may go with it.
  std::lock_guard lock(mutex_);
  view = views_.Pin();
  const MemtableRef* oldest = OldestUntaken(*view);
  if (oldest == nullptr) return std::nullopt;
  taken_.push_back({oldest->table, std::nullopt});
  return *oldest;
}

bool FlushQueue::HasUntaken() {
  ViewPin view;  // Let go behind the lock, as memtables may go with it.
  std::lock_guard lock(mutex_);
  view = views_.Pin();
  return OldestUntaken(*view) != nullptr;
}

void FlushQueue::Add(Written written) {
  std::lock_guard lock(mutex_);
  const auto taken = Find(written.memtable.table.get());
  PARTITA_ASSERT(taken != taken_.end() && !taken->written);
  taken->written = std::move(written);
}

void FlushQueue::GiveBack(const Memtable& memtable) {
  std::lock_guard lock(mutex_);
  const auto taken = Find(&memtable);
  PARTITA_ASSERT(taken != taken_.end() && !taken->written);
  taken_.erase(taken);
}

std::optional<FlushQueue::Written> FlushQueue::BeginInstall() {
  ViewPin view;
  std::lock_guard lock(mutex_);
  if (installing_ != nullptr) return std::nullopt;
  view = views_.Pin();
  if (view->frozen.empty()) return std::nullopt;
  const auto oldest = Find(view->frozen.back().table.get());
  if (oldest == taken_.end() || !oldest->written) return std::nullopt;
  installing_ = oldest->table.get();
  return std::exchange(oldest->written, std::nullopt);
}

void FlushQueue::EndInstall() {
  std::lock_guard lock(mutex_);
  const auto installed = Find(std::exchange(installing_, nullptr));
  PARTITA_ASSERT(installed != taken_.end());
  taken_.erase(installed);
}

std::vector<FlushQueue::Written> FlushQueue::TakeWritten() {
  std::lock_guard lock(mutex_);
  std::vector<Written> written;
  for (Taken& taken : taken_) {
    if (taken.written) written.push_back(std::move(*taken.written));
  }
  std::erase_if(taken_, [](const Taken& taken) { return taken.written.has_value(); });
  return written;
}

bool FlushLanes::TryEnterBeside() {
  uint32_t flushing = flushing_.load();
  do {
    if (flushing >= shards_) return false;
  } while (!flushing_.compare_exchange_weak(flushing, flushing + 1));
  return true;
}

}  // namespace partita
