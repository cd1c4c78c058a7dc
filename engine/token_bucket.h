#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>

namespace partita {

// A token bucket is one number: the time at which it will be full again. Taking tokens moves it into the
// future, by the time in which so many flow in; an idle bucket is full, so it need not be remembered at all.
//
// 1. A bucket holds what flows in within kBurst. It gives when it holds a token, however many are asked for:
//    what is not there it then owes, and it gives nothing until that is paid. So its rate is exact, and in
//    any time it gives what it held and what flows in, and at most the rest of one call, the last.
// 2. That is fair: who asks for a hundred waits for the same token as who asks for one. (Had it to find a
//    hundred at one moment, it never would beside those who take each token as it flows in.) So of calls that
//    just come each has the same chance, and of callers who wait as they are told each gets as many calls
//    through as any other, whatever the calls cost.
// 3. Who is refused is told a wait that would suffice, and a promise is noted of all that his call will take:
//    the next one who is refused is told the time behind it. So callers who wait come back one after another,
//    not all for the same token. A promise binds nobody, since the bucket does not know who calls: who comes
//    early competes.
// 4. When promises reach further than kPromiseMax none is added: all are told the time behind them, and have
//    the same chance then. So a flood of refused calls makes nobody wait for longer than that and one call.
// 5. A bucket knows by which token it was charged last. When the next charge is by another, since its target
//    was changed, it still owes as many tokens, each of which takes as long as the new one does; promises are
//    void. What it holds stays the same part of a burst. (What flows in between the change and that charge
//    does so at the old rate.)
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

static_assert(TokenTime(1) <= kBurst);

// The state of one bucket. Tokens are told by what they take to flow in: `token` one, `cost` all of a call.
struct TokenBucket {
  BucketTime full_at = 0;
  BucketTime promised_until = 0;
  BucketTime token = 0;  // Of the last charge; 0: none yet.

  // By another token, what full_at is then.
  static BucketTime Converted(BucketTime full_at, BucketTime from, BucketTime to, BucketTime now) {
    const BucketTime empty_at = now + kBurst;
    if (from == 0 || full_at <= empty_at) return full_at;
    return empty_at + static_cast<BucketTime>(static_cast<unsigned __int128>(full_at - empty_at) * to / from);
  }
  // To be called before all that follows.
  void GoBy(BucketTime new_token, BucketTime now) {
    if (token == new_token) [[likely]]
      return;
    full_at = Converted(full_at, token, new_token, now);
    promised_until = 0;
    token = new_token;
  }

  static bool Holds(BucketTime full_at, BucketTime tokens, BucketTime now) {
    return std::max(full_at, now) + tokens <= now + kBurst;
  }
  bool Holds(BucketTime tokens, BucketTime now) const { return Holds(full_at, tokens, now); }
  bool IsFull(BucketTime now) const { return full_at <= now; }
  // Also what it does not have, which it then owes.
  void Take(BucketTime cost, BucketTime now) { full_at = std::max(full_at, now) + cost; }
  // What was taken comes back, also if as much has flowed in since: the bucket then holds more than a burst.
  void GiveBack(BucketTime cost) { full_at -= std::min(full_at, cost); }

  // The wait to tell somebody who is refused. REQUIRES: !Holds(token, now).
  BucketTime Promise(BucketTime token, BucketTime cost, BucketTime now) {
    const BucketTime place = std::max(promised_until, full_at);
    promised_until = place <= full_at + kPromiseMax ? place + cost : place;
    return place + token - now - kBurst;
  }
};

// The same for callers on many threads; lock-free. What is charged in the very moment in which another one
// comes with another token may be counted by either.
class SharedTokenBucket {
 public:
  // False, and nothing is taken, when it does not hold `least`.
  bool TryTake(BucketTime token, BucketTime least, BucketTime cost, BucketTime now) {
    GoBy(token, now);
    BucketTime full_at = full_at_.load(std::memory_order_relaxed);
    while (TokenBucket::Holds(full_at, least, now)) {
      const BucketTime next = std::max(full_at, now) + cost;
      if (full_at_.compare_exchange_weak(full_at, next, std::memory_order_relaxed)) return true;
    }
    return false;
  }
  void Take(BucketTime token, BucketTime cost, BucketTime now) {
    GoBy(token, now);
    Change([=](BucketTime full_at) { return std::max(full_at, now) + cost; });
  }
  void GiveBack(BucketTime cost) {
    Change([=](BucketTime full_at) { return full_at - std::min(full_at, cost); });
  }
  bool Holds(BucketTime token, BucketTime least, BucketTime now) {
    GoBy(token, now);
    return TokenBucket::Holds(full_at_.load(std::memory_order_relaxed), least, now);
  }
  // As TokenBucket's; 0 when it holds a token by now.
  BucketTime Promise(BucketTime token, BucketTime cost, BucketTime now) {
    GoBy(token, now);
    BucketTime promised_until = promised_until_.load(std::memory_order_relaxed);
    while (true) {
      TokenBucket bucket{full_at_.load(std::memory_order_relaxed), promised_until};
      if (bucket.Holds(token, now)) return 0;
      const BucketTime wait = bucket.Promise(token, cost, now);
      if (promised_until_.compare_exchange_weak(promised_until, bucket.promised_until,
                                                std::memory_order_relaxed)) {
        return wait;
      }
    }
  }

 private:
  void GoBy(BucketTime token, BucketTime now) {
    if (token_.load(std::memory_order_relaxed) == token) [[likely]]
      return;
    const BucketTime from = token_.exchange(token, std::memory_order_relaxed);
    Change([=](BucketTime full_at) { return TokenBucket::Converted(full_at, from, token, now); });
    promised_until_.store(0, std::memory_order_relaxed);
  }
  template <typename NextOf>
  void Change(NextOf next_of) {
    BucketTime full_at = full_at_.load(std::memory_order_relaxed);
    while (!full_at_.compare_exchange_weak(full_at, next_of(full_at), std::memory_order_relaxed)) {
    }
  }

  // Written by any thread; nothing else is ordered by them.
  std::atomic<BucketTime> full_at_{0};
  std::atomic<BucketTime> promised_until_{0};
  std::atomic<BucketTime> token_{0};
};

}  // namespace partita
