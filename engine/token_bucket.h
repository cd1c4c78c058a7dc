#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>

namespace partita {

// A token bucket is one number: the time at which it will be full again. Taking tokens moves it into the
// future, by the time in which so many flow in; an idle bucket is full, so it need not be remembered at all.
//
// 1. A bucket holds what flows in within kBurst. It gives `tokens` when it then owes nothing, that is when it
//    is full again within kBurst. What costs more than a whole bucket is given by a full one, which owes the
//    rest.
// 2. Who is refused is told a wait that would suffice, and a promise is noted: the next one who is refused is
//    told the time behind it. So callers who wait come back one after another, not all for the same token. A
//    promise binds nobody, since the bucket does not know who calls: who comes early competes. Promises reach
//    kPromiseMax into the future, so a flood of refused calls makes nobody wait for longer than that.
//
// Why kBurst is two seconds: HTTP clients wait whole seconds (Retry-After). A bucket that holds less than
// such a wait and its round trip would overflow meanwhile, and clients that obey would never reach the
// target. The price: 10 s that begin with a full bucket let 12 s' worth through.
//
// Times are in sixteenths of a nanosecond, so that rates up to 10 million a second are met to 0.03 %.

// A point in time, or a duration.
using BucketTime = uint64_t;
inline constexpr BucketTime kBucketTimePerNano = 16;
inline constexpr BucketTime kBucketSecond = kBucketTimePerNano * 1'000'000'000;
inline constexpr BucketTime kBurst = 2 * kBucketSecond;
inline constexpr BucketTime kPromiseMax = 1 * kBucketSecond;

// What one token takes to flow in. 0: no limit.
constexpr BucketTime TokenTime(uint64_t tokens_per_second) {
  return tokens_per_second == 0 ? 0 : (kBucketSecond + tokens_per_second / 2) / tokens_per_second;
}

// The state of one bucket. `cost` is what the tokens take to flow in.
struct TokenBucket {
  BucketTime full_at = 0;
  BucketTime promised_until = 0;

  static bool Gives(BucketTime full_at, BucketTime cost, BucketTime now) {
    return std::max(full_at, now) + std::min(cost, kBurst) <= now + kBurst;
  }
  bool Gives(BucketTime cost, BucketTime now) const { return Gives(full_at, cost, now); }
  bool IsFull(BucketTime now) const { return full_at <= now; }
  // Also what it does not have, which it then owes.
  void Take(BucketTime cost, BucketTime now) { full_at = std::max(full_at, now) + cost; }

  // The wait to tell somebody who is refused. REQUIRES: !Gives(cost, now).
  BucketTime Promise(BucketTime cost, BucketTime now) {
    const BucketTime need = std::min(cost, kBurst);
    const BucketTime queue = std::max(promised_until, full_at);
    promised_until = std::min(queue, full_at + kPromiseMax) + need;
    return promised_until - now - kBurst;
  }
};

// The same for callers on many threads; lock-free.
class SharedTokenBucket {
 public:
  // False, and nothing is taken, when it does not give.
  bool TryTake(BucketTime cost, BucketTime now) {
    BucketTime full_at = full_at_.load(std::memory_order_relaxed);
    while (TokenBucket::Gives(full_at, cost, now)) {
      const BucketTime next = std::max(full_at, now) + cost;
      if (full_at_.compare_exchange_weak(full_at, next, std::memory_order_relaxed)) return true;
    }
    return false;
  }
  void Take(BucketTime cost, BucketTime now) {
    BucketTime full_at = full_at_.load(std::memory_order_relaxed);
    while (
        !full_at_.compare_exchange_weak(full_at, std::max(full_at, now) + cost, std::memory_order_relaxed)) {
    }
  }
  // What was taken comes back, as if it had not been.
  void GiveBack(BucketTime cost) { full_at_.fetch_sub(cost, std::memory_order_relaxed); }
  bool Gives(BucketTime cost, BucketTime now) const {
    return TokenBucket::Gives(full_at_.load(std::memory_order_relaxed), cost, now);
  }
  // As TokenBucket's; 0 when it gives by now. Promises made at the same time may be the same.
  BucketTime Promise(BucketTime cost, BucketTime now) {
    TokenBucket bucket{full_at_.load(std::memory_order_relaxed),
                       promised_until_.load(std::memory_order_relaxed)};
    if (bucket.Gives(cost, now)) return 0;
    const BucketTime wait = bucket.Promise(cost, now);
    promised_until_.store(bucket.promised_until, std::memory_order_relaxed);
    return wait;
  }

 private:
  // Written by any thread; nothing else is ordered by them.
  std::atomic<BucketTime> full_at_{0};
  std::atomic<BucketTime> promised_until_{0};
};

}  // namespace partita
