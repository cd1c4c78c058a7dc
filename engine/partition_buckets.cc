#include "engine/partition_buckets.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "engine/base/assert.h"
#include "engine/base/checksum.h"

namespace partita {

namespace {

// Beyond that many rounds the holder was probably interrupted.
constexpr unsigned kSpinsBeforeYield = 256;

class SpinLock {
 public:
  void lock() {
    for (unsigned spins = 0; held_.exchange(true, std::memory_order_acquire);) {
      while (held_.load(std::memory_order_relaxed)) {
        if (++spins < kSpinsBeforeYield) {
          __builtin_ia32_pause();
        } else {
          std::this_thread::yield();
        }
      }
    }
  }
  void unlock() { held_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> held_{false};
};

constexpr uint32_t kCallsASweep = 1024;

}  // namespace

// A partition's key as slots hold it: itself where it has room there, else its hash under a secret, by which
// nobody can make two partitions into one.
class PartitionBuckets::Key {
 public:
  static constexpr size_t kRoom = 64 - sizeof(uint64_t) - sizeof(TokenBucket) - sizeof(uint8_t);

  Key(std::string_view partition, const Hash128& secret) : bytes_(partition) {
    if (partition.size() > kRoom) {
      digest_ = KeyedHash(partition, secret);
      bytes_ = {reinterpret_cast<const char*>(&digest_), sizeof digest_};
      form_ = kIsHash;
      hash_ = digest_.low;
    } else {
      form_ = static_cast<uint8_t>(partition.size());
      hash_ = Hash64(partition);
    }
    hash_ |= 1;
  }
  Key(const Key&) = delete;
  Key& operator=(const Key&) = delete;

  // Never 0, which says that a slot is free.
  uint64_t hash() const { return hash_; }
  std::string_view bytes() const { return bytes_; }
  // Their number, or that they are a hash.
  uint8_t form() const { return form_; }

 private:
  static constexpr uint8_t kIsHash = 255;
  static_assert(sizeof(Hash128) <= kRoom && kRoom < kIsHash);

  Hash128 digest_;
  uint64_t hash_ = 0;
  std::string_view bytes_;
  uint8_t form_ = 0;
};

// One bucket; one line of the cache. Free when `hash` is 0.
struct alignas(64) PartitionBuckets::Slot {
  uint64_t hash = 0;
  TokenBucket bucket;
  uint8_t key_form = 0;
  char key_bytes[Key::kRoom] = {};

  bool IsFree() const { return hash == 0; }
  bool Is(const Key& key) const {
    return hash == key.hash() && key_form == key.form() &&
           std::memcmp(key_bytes, key.bytes().data(), key.bytes().size()) == 0;
  }
  void Set(const Key& key) {
    hash = key.hash();
    bucket = TokenBucket();
    key_form = key.form();
    std::memcpy(key_bytes, key.bytes().data(), key.bytes().size());
  }
};

class alignas(64) PartitionBuckets::Stripe {
 public:
  // The bucket of the key, or null when it is full and so not remembered.
  Slot* Find(const Key& key) {
    if (slots_ == nullptr) return nullptr;
    for (size_t i = key.hash() & mask_; !slots_[i].IsFree(); i = (i + 1) & mask_) {
      if (slots_[i].Is(key)) return &slots_[i];
    }
    return nullptr;
  }

  // The bucket of the key, made if need be. Valid until the next call.
  Slot& FindOrAdd(const Key& key, BucketTime now) {
    if (slots_ == nullptr || taken_ * 2 > mask_) Rebuild(now);
    Slot* full = nullptr;
    size_t i = key.hash() & mask_;
    for (; !slots_[i].IsFree(); i = (i + 1) & mask_) {
      if (slots_[i].Is(key)) return slots_[i];
      if (full == nullptr && slots_[i].bucket.IsFull(now)) full = &slots_[i];
    }
    const bool is_new = full == nullptr;
    if (is_new) full = &slots_[i];
    full->Set(key);
    if (is_new) ++taken_;
    return *full;
  }

  size_t CountActive(BucketTime now) const {
    size_t active = 0;
    for (size_t i = 0; i < slots(); ++i) {
      if (!slots_[i].IsFree() && !slots_[i].bucket.IsFull(now)) ++active;
    }
    return active;
  }

  // Gives back memory that is needed no more. Returns how many buckets are not full.
  size_t Sweep(BucketTime now) {
    const size_t active = CountActive(now);
    if (slots() > kSlotsMin && active * 8 <= slots()) Rebuild(now);
    return active;
  }

  // Takes from the account. Costs far below its rate are gathered: threads that share an account then seldom
  // meet at its bucket.
  bool TryTake(const Charge& charge, BucketTime now) {
    SharedTokenBucket* account = charge.account;
    const BucketTime token = charge.account_token;
    const BucketTime cost = charge.tokens * token;
    const BucketTime least = charge.Least(token);
    const bool is_same = owed_to_ == account && owed_token_ == token;
    if (owed_ + cost <= kGatheredMax && (owed_ == 0 || is_same)) {
      if (!account->Holds(token, owed_ + least, now)) return false;
      owed_to_ = account;
      owed_token_ = token;
      owed_ += cost;
      return true;
    }
    if (owed_ > 0) owed_to_->Take(owed_token_, std::exchange(owed_, 0), now);
    return account->TryTake(token, least, cost, now);
  }

  void GiveBack(SharedTokenBucket* account, BucketTime cost) {
    if (owed_to_ == account) {
      const BucketTime gathered = std::min(owed_, cost);
      owed_ -= gathered;
      cost -= gathered;
    }
    account->GiveBack(cost);
  }

  // Once in so many calls: it is time to sweep a stripe.
  bool IsTimeToSweep() { return ++calls_ % kCallsASweep == 0; }

  size_t slots() const { return slots_ == nullptr ? 0 : mask_ + 1; }

  SpinLock lock;

 private:
  void Rebuild(BucketTime now);

  // Of an account's time: with all stripes together 4 ms' worth.
  static constexpr BucketTime kGatheredMax = kBucketSecond / 65'536;

  SharedTokenBucket* owed_to_ = nullptr;
  BucketTime owed_token_ = 0;
  BucketTime owed_ = 0;
  size_t mask_ = 0;
  size_t taken_ = 0;  // Slots that are not free.
  uint32_t calls_ = 0;
  std::unique_ptr<Slot[]> slots_;
};

// Moves the buckets that are not full into a table of which they take a quarter at most.
void PartitionBuckets::Stripe::Rebuild(BucketTime now) {
  static_assert(sizeof(Slot) == 64);
  std::vector<BucketTime> debts;
  for (size_t i = 0; i < slots(); ++i) {
    if (!slots_[i].IsFree() && !slots_[i].bucket.IsFull(now)) debts.push_back(slots_[i].bucket.full_at);
  }
  BucketTime forget_until = now;
  if (debts.size() >= kSlotsMax / 2) {
    const auto middle = debts.begin() + static_cast<ptrdiff_t>(debts.size() / 2);
    std::nth_element(debts.begin(), middle, debts.end());
    forget_until = *middle;
  }
  size_t size = kSlotsMin;
  while (size < kSlotsMax && size < debts.size() * 4) size *= 2;
  std::unique_ptr<Slot[]> old = std::exchange(slots_, std::make_unique<Slot[]>(size));
  const size_t old_size = old == nullptr ? 0 : mask_ + 1;
  mask_ = size - 1;
  taken_ = 0;
  for (size_t i = 0; i < old_size; ++i) {
    if (old[i].IsFree() || old[i].bucket.full_at <= forget_until) continue;
    size_t to = old[i].hash & mask_;
    while (!slots_[to].IsFree()) to = (to + 1) & mask_;
    slots_[to] = old[i];
    ++taken_;
  }
  PARTITA_ASSERT(taken_ * 2 <= mask_);
}

PartitionBuckets::PartitionBuckets()
    : secret_(SecretHashKey()), stripes_(std::make_unique<Stripe[]>(kStripes)) {}
PartitionBuckets::~PartitionBuckets() = default;

PartitionBuckets::Stripe& PartitionBuckets::StripeOf(const Key& key) { return stripes_[key.hash() >> 56]; }

PartitionBuckets::Verdict PartitionBuckets::TryTake(std::string_view partition, const Charge& charge,
                                                    BucketTime now) {
  const Key key(partition, secret_);
  Stripe& stripe = StripeOf(key);
  bool sweep = false;
  Verdict verdict = Verdict::kTaken;
  {
    std::lock_guard lock(stripe.lock);
    sweep = stripe.IsTimeToSweep();
    TokenBucket& bucket = stripe.FindOrAdd(key, now).bucket;
    bucket.GoBy(charge.partition_token, now);
    if (!bucket.Holds(charge.Least(charge.partition_token), now)) [[unlikely]] {
      verdict = Verdict::kPartitionRefuses;
    } else if (charge.account != nullptr && !stripe.TryTake(charge, now)) {
      verdict = Verdict::kAccountRefuses;
    } else {
      bucket.Take(charge.tokens * charge.partition_token, now);
    }
  }
  if (sweep) [[unlikely]]
    SweepNext(now);
  return verdict;
}

void PartitionBuckets::Take(std::string_view partition, BucketTime token, BucketTime cost, BucketTime now) {
  const Key key(partition, secret_);
  Stripe& stripe = StripeOf(key);
  std::lock_guard lock(stripe.lock);
  TokenBucket& bucket = stripe.FindOrAdd(key, now).bucket;
  bucket.GoBy(token, now);
  bucket.Take(cost, now);
}

void PartitionBuckets::GiveBack(std::string_view partition, const Charge& charge) {
  const Key key(partition, secret_);
  Stripe& stripe = StripeOf(key);
  std::lock_guard lock(stripe.lock);
  Slot* slot = stripe.Find(key);
  if (slot != nullptr) slot->bucket.GiveBack(charge.tokens * charge.partition_token);
  if (charge.account != nullptr) stripe.GiveBack(charge.account, charge.tokens * charge.account_token);
}

BucketTime PartitionBuckets::Promise(std::string_view partition, BucketTime token, BucketTime cost,
                                     BucketTime now) {
  const Key key(partition, secret_);
  Stripe& stripe = StripeOf(key);
  std::lock_guard lock(stripe.lock);
  Slot* slot = stripe.Find(key);
  if (slot == nullptr) return 0;
  slot->bucket.GoBy(token, now);
  return slot->bucket.Holds(token, now) ? 0 : slot->bucket.Promise(token, cost, now);
}

bool PartitionBuckets::Holds(std::string_view partition, BucketTime token, BucketTime now) {
  const Key key(partition, secret_);
  Stripe& stripe = StripeOf(key);
  std::lock_guard lock(stripe.lock);
  Slot* slot = stripe.Find(key);
  if (slot == nullptr) return true;
  slot->bucket.GoBy(token, now);
  return slot->bucket.Holds(token, now);
}

// So that what was active once is forgotten though nobody comes back to its stripe.
void PartitionBuckets::SweepNext(BucketTime now) {
  Stripe& stripe = stripes_[sweep_next_.fetch_add(1, std::memory_order_relaxed) % kStripes];
  std::lock_guard lock(stripe.lock);
  stripe.Sweep(now);
}

size_t PartitionBuckets::CountActive(BucketTime now) {
  size_t active = 0;
  for (size_t i = 0; i < kStripes; ++i) {
    std::lock_guard lock(stripes_[i].lock);
    active += stripes_[i].Sweep(now);
  }
  return active;
}

size_t PartitionBuckets::slots() {
  size_t slots = 0;
  for (size_t i = 0; i < kStripes; ++i) {
    std::lock_guard lock(stripes_[i].lock);
    slots += stripes_[i].slots();
  }
  return slots;
}

}  // namespace partita
