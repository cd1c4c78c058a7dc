#include "engine/memory_lender.h"

#include <algorithm>

namespace partita {

namespace {

size_t StepOf(const MemoryPlan& plan) {
  return std::max(plan.memtable_bytes / MemoryLender::kStepShare, ChunkPool::kChunkSize);
}

}  // namespace

size_t MemoryLender::LentMax(const MemoryPlan& plan) {
  return plan.memtable_bytes - std::min(plan.memtable_bytes, 2 * StepOf(plan));
}

MemoryLender::MemoryLender(const MemoryPlan& plan, ChunkPool* pool, BlockCache* cache)
    : memtable_bytes_(plan.memtable_bytes),
      cache_bytes_(plan.cache_bytes),
      step_(StepOf(plan)),
      pool_(pool),
      cache_(cache),
      left_bytes_(plan.memtable_bytes),
      left_at_look_(plan.memtable_bytes) {}

void MemoryLender::Look(uint64_t now_ns) {
  std::lock_guard lock(mutex_);
  used_max_ = std::max(used_max_, pool_->TakeUsedMax());
  if (since_ns_ == 0) since_ns_ = now_ns;
  const size_t wanted = std::min(std::max(used_max_, used_max_before_) + 2 * step_, memtable_bytes_);
  // What comes and goes by a step empties no cache.
  if (std::max(wanted, left_bytes()) >= left_at_look_ + 2 * step_) LearnQuietTime(now_ns);
  if (now_ns - since_ns_ >= quiet_ns_) {
    used_max_before_ = used_max_;
    used_max_ = 0;
    since_ns_ = now_ns;
  }
  // Less than a step is not worth the while. Also when nothing changes: what could not be taken back, as it
  // had pins, is tried for again.
  Leave(wanted + step_ <= left_bytes() ? wanted : std::max(left_bytes(), wanted));
  has_lent_ = has_lent_ || left_bytes() < left_at_look_;
  left_at_look_ = left_bytes();
}

// Memory is being taken back, since the last look or now.
void MemoryLender::LearnQuietTime(uint64_t now_ns) {
  if (!has_lent_) return;  // Still the same burst.
  const bool again = taken_back_ns_ != 0 && now_ns - taken_back_ns_ < kTooSoonTimes * quiet_ns_;
  quiet_ns_ = again ? std::min(2 * quiet_ns_, kQuietNanosMax) : kQuietNanos;
  taken_back_ns_ = now_ns;
  has_lent_ = false;
}

bool MemoryLender::OnAbove() {
  if (!is_due_.exchange(true)) {
    pool_->TellAbove(left_bytes());
    return true;
  }
  if (std::unique_lock lock(mutex_, std::try_to_lock); lock.owns_lock()) {
    TakeBackLocked();
  } else {
    pool_->TellAbove(pool_->used_bytes());  // Somebody is at it: the next one will see whether it was enough.
  }
  return false;
}

void MemoryLender::TakeBack() {
  std::lock_guard lock(mutex_);
  TakeBackLocked();
}

void MemoryLender::TakeBackLocked() {
  Leave(std::min(std::max(pool_->used_bytes() + 2 * step_, left_bytes()), memtable_bytes_));
}

void MemoryLender::Leave(size_t bytes) {
  const size_t left = std::min(std::max(bytes, pool_->GiveBackUnused(bytes)), memtable_bytes_);
  left_bytes_.store(left, std::memory_order_relaxed);
  is_due_.store(false);
  touching_is_due_.store(true);
  TellAbove();
  const size_t lent = memtable_bytes_ - left;
  const size_t resident = cache_->resident_bytes();
  cache_->Resize(cache_bytes_ + lent - std::min(lent, resident));
  cache_->Withhold(resident - std::min(lent, resident));
}

size_t MemoryLender::bytes_beyond() const {
  const size_t resident = cache_->resident_bytes();
  return resident - std::min(resident, cache_->WithheldMax());
}

// A step before what is left is used up, or what is touched; of the latter once only until more is.
void MemoryLender::TellAbove() {
  const size_t ready = touching_is_due_.load() ? left_bytes() : std::min(left_bytes(), touched_bytes_);
  pool_->TellAbove(ready == memtable_bytes_ ? SIZE_MAX : std::max(ready, step_) - step_);
}

void MemoryLender::NoteTouched() {
  std::lock_guard lock(mutex_);
  touched_bytes_ = pool_->touched_bytes();
  touching_is_due_.store(false);
  if (!is_due_.load()) TellAbove();  // Else TakeBack will.
}

}  // namespace partita
