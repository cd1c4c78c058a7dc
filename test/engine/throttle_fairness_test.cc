#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "test/support/small_throttle.h"

namespace partita {
namespace {

// Who calls again as soon as a call of his got through, and when he was told to after one that did not.
struct ObedientClient {
  std::string partition;
  size_t entities = 1;
  uint64_t due = 0;
  uint64_t served = 0;
};

class ThrottleFairnessTest : public SmallThrottle {
 protected:
  // `costly` clients whose calls are of `entities` behind `singles` whose calls are of one. Each partition
  // has `clients_each` of them.
  static std::vector<ObedientClient> Clients(size_t singles, size_t costly, size_t entities,
                                             size_t clients_each = SIZE_MAX) {
    std::vector<ObedientClient> clients;
    for (size_t i = 0; i < singles + costly; ++i) {
      clients.push_back(
          {.partition = std::to_string(i / clients_each), .entities = i < singles ? 1 : entities});
    }
    return clients;
  }
  // Counts what gets through behind the first `warmup` seconds. Returns the entities of that. A client comes
  // up to `late_nanos` later than he was told.
  uint64_t Run(std::vector<ObedientClient>* clients, uint64_t warmup, uint64_t seconds,
               uint64_t late_nanos = 1) {
    constexpr uint64_t kStepNanos = 50'000;
    uint64_t entities = 0;
    for (uint64_t now = 0; now < (warmup + seconds) * kNanosPerSecond; now += kStepNanos) {
      const size_t first = random_() % clients->size();  // Of those who come at one time.
      for (size_t i = 0; i < clients->size(); ++i) {
        ObedientClient& client = (*clients)[(first + i) % clients->size()];
        if (client.due > now) continue;
        const Status status = Write(orders_, client.partition, client.entities);
        client.due = now + status.retry_after_us() * 1'000 + random_() % late_nanos;
        if (!status.ok() || now < warmup * kNanosPerSecond) continue;
        ++client.served;
        entities += client.entities;
      }
      clock_.now_ns += kStepNanos;
    }
    return entities;
  }
  static void ExpectServed(const std::vector<ObedientClient>& clients, double calls, double within) {
    for (const ObedientClient& client : clients) {
      EXPECT_NEAR(static_cast<double>(client.served), calls, within) << "of " << client.entities;
    }
  }

  std::mt19937_64 random_{7};
};

TEST_F(ThrottleFairnessTest, ClientsThatObeyShareABucketEvenly) {
  Set(ThroughputTargets::Storage());
  std::vector<ObedientClient> clients = Clients(50, 0, 0);
  EXPECT_NEAR(static_cast<double>(Run(&clients, 10, 10)), 20'000, 200);
  ExpectServed(clients, 400, 20);
}

TEST_F(ThrottleFairnessTest, ClientsThatObeyGetAsManyCallsThroughWhateverTheseCost) {
  Set(ThroughputTargets::Storage());
  std::vector<ObedientClient> clients = Clients(40, 10, 100);
  EXPECT_NEAR(static_cast<double>(Run(&clients, 10, 20)), 40'000, 400);
  ExpectServed(clients, 40'000.0 / (40 + 10 * 100), 2);
}

TEST_F(ThrottleFairnessTest, SoDoThoseOfAnAccountInPartitionsOfTheirOwn) {
  Set({.account_rate = 2'000});
  std::vector<ObedientClient> clients = Clients(40, 10, 100, 1);
  EXPECT_NEAR(static_cast<double>(Run(&clients, 10, 20)), 40'000, 400);
  ExpectServed(clients, 40'000.0 / (40 + 10 * 100), 2);
}

// Calls of two seconds' flow, which is all that a bucket ever holds, and further than promises reach: turns
// go by chance behind them.
TEST_F(ThrottleFairnessTest, NobodyStarvesWhereCallsCostMoreThanPromisesReach) {
  for (const size_t costly : {1, 3}) {
    Set({.partition_rate = 100});
    clock_.now_ns += 1'000 * kNanosPerSecond;
    std::vector<ObedientClient> clients = Clients(20, costly, 200);
    constexpr double kTokens = 15'000;
    EXPECT_NEAR(static_cast<double>(Run(&clients, 10, 150, 2'000'000)), kTokens, 600);
    const double even = kTokens / static_cast<double>(20 + costly * 200);
    for (const ObedientClient& client : clients) {
      EXPECT_GE(static_cast<double>(client.served), client.entities == 1 ? even / 4 : 0.75 * even)
          << "of " << client.entities;
    }
  }
}

// Nobody waits: of the calls of either kind the same part gets through.
TEST_F(ThrottleFairnessTest, CallsThatJustComeHaveTheSameChanceWhateverTheyCost) {
  Set(ThroughputTargets::Storage());
  uint64_t offered[2] = {}, given[2] = {};
  for (uint64_t i = 0; i < 600'000; ++i, clock_.now_ns += 100'000) {
    const bool is_costly = random_() % 100 == 0;
    const bool is_given = Write(orders_, "p", is_costly ? 100 : 1).ok();
    if (i < 100'000) continue;
    ++offered[is_costly];
    given[is_costly] += is_given ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(given[0] + 100 * given[1]), 100'000, 1'000);
  const auto part = [&](bool costly) {
    return static_cast<double>(given[costly]) / static_cast<double>(offered[costly]);
  };
  EXPECT_NEAR(part(true), part(false), 0.1 * part(false));
}

// Of any ten seconds, too: a call in debt is at either end of them.
TEST_F(ThrottleFairnessTest, TransactionsOfAHundredKeepTheTargetToAPercent) {
  Set(ThroughputTargets::Storage());
  const auto offer = [&](uint64_t tenths) {
    uint64_t entities = 0;
    for (uint64_t i = 0; i < tenths * 10; ++i, clock_.now_ns += 10'000'000) {
      entities += Write(orders_, "p", 100).ok() ? 100 : 0;
    }
    return static_cast<double>(entities);
  };
  EXPECT_NEAR(offer(10), 4'000 + 2'000, 100);  // The burst, and what flows in.
  std::vector<double> last;                    // Tenths of a second.
  double sum = 0;
  for (size_t i = 0; i < 400; ++i) {
    last.push_back(offer(1));
    sum += last.back() - (i < 100 ? 0 : last[i - 100]);
    if (i >= 99) ASSERT_NEAR(sum, 20'000, 200) << i;
  }
}

// ---- Promises.

TEST(TokenBucketTest, APromiseIsForAllThatTheCallWillTakeAndNoneIsTakenBack) {
  constexpr BucketTime kToken = TokenTime(100), kNow = 100 * kBucketSecond;
  TokenBucket bucket;
  bucket.Take(kBurst, kNow);
  EXPECT_EQ(bucket.Promise(kToken, 300 * kToken, kNow), kToken);
  const BucketTime promised = bucket.promised_until;
  EXPECT_EQ(promised, bucket.full_at + 300 * kToken);
  EXPECT_EQ(bucket.Promise(kToken, kToken, kNow), 301 * kToken);
  EXPECT_EQ(bucket.promised_until, promised) << "further than kPromiseMax";
  // The first one comes as it was told, and who then asks is told the time behind what is owed.
  const BucketTime then = kNow + kToken;
  ASSERT_TRUE(bucket.Holds(kToken, then));
  bucket.Take(300 * kToken, then);
  EXPECT_EQ(bucket.Promise(kToken, kToken, then), 300 * kToken);
}

TEST(SharedTokenBucketTest, PromisesAreThoseOfATokenBucket) {
  constexpr BucketTime kToken = TokenTime(1'000), kNow = 100 * kBucketSecond;
  SharedTokenBucket shared;
  TokenBucket bucket;
  EXPECT_EQ(shared.Promise(kToken, kToken, kNow), 0u) << "it would give";
  shared.Take(kToken, kBurst, kNow);
  bucket.Take(kBurst, kNow);
  for (const uint64_t tokens : {1, 100, 7, 2'000, 1, 1}) {
    EXPECT_EQ(shared.Promise(kToken, tokens * kToken, kNow), bucket.Promise(kToken, tokens * kToken, kNow));
  }
}

// ---- What is taken of one bucket and not of the other.

TEST(PartitionBucketsGiveBackTest, WhatComesBackIsThereAgainInBothBuckets) {
  constexpr BucketTime kNow = 100 * kBucketSecond;
  SharedTokenBucket account;
  PartitionBuckets buckets;
  // Small costs are gathered, large ones taken at once; of the last one the buckets owe a part.
  for (const BucketTime token : {kBucketSecond / 10'000'000, kBucketSecond / 100}) {
    const PartitionBuckets::Charge charge{
        .tokens = 100, .partition_token = token, .account = &account, .account_token = token};
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(buckets.TryTake("p", charge, kNow), PartitionBuckets::Verdict::kTaken);
      buckets.GiveBack("p", charge);
      EXPECT_TRUE(buckets.Holds("p", kBurst, kNow));
      EXPECT_TRUE(account.Holds(token, kBurst, kNow));
    }
  }
  buckets.GiveBack("never seen", {.tokens = 1, .partition_token = 1});
}

}  // namespace
}  // namespace partita
