#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/user_key.h"
#include "engine/io/sim_runtime.h"
#include "engine/store.h"
#include "test/support/into.h"
#include "test/support/small_store.h"

namespace partita {
namespace {

constexpr int kThrottledRows = 500;

// Takes every row, or one in so many.
class Sieve : public RowSink {
 public:
  explicit Sieve(uint64_t one_in = 1) : one_in_(one_in) {}
  Verdict Add(std::string_view user_key, Version, std::string_view) override {
    if (seen_++ % one_in_ != 0) return Verdict::kPassed;
    keys.emplace_back(user_key);
    return Verdict::kTaken;
  }
  std::vector<std::string> keys;

 private:
  const uint64_t one_in_;
  uint64_t seen_ = 0;
};

// A table of three partitions on two shards, in files and memtables, in virtual time.
class StoreThrottleTest : public testing::Test {
 protected:
  StoreThrottleTest() : disk_(3), runtime_({.seed = 3, .shards = 2}, disk_) {
    store_ = std::move(runtime_.RunToEnd(Store::Open(runtime_, SmallStoreOptions(2, 256u << 10)))).value();
    Store::TableSpec spec;
    spec.account = "acme";
    spec.name = "rows";
    spec.raw = true;
    spec.split_partitions = {"b"};
    table_ = runtime_.RunToEnd(store_->CreateTable(spec))->id;
    for (const char* partition : {"a", "b", "c"}) {
      for (int i = 0; i < kThrottledRows; ++i) EXPECT_TRUE(Put(partition, i).ok());
      if (*partition == 'a') EXPECT_TRUE(runtime_.RunToEnd(store_->FlushMemtables()).ok());
    }
    runtime_.AdvanceTime(10 * kNanosPerSecond);
  }
  ~StoreThrottleTest() override { EXPECT_TRUE(runtime_.RunToEnd(store_->Close()).ok()); }

  std::string Key(const std::string& partition, int i) {
    return EncodeUserKey(table_, partition, std::to_string(10'000 + i));
  }
  Status Put(const std::string& partition, int i, size_t size = 10,
             Precondition precondition = Precondition::kNone) {
    const std::string key = Key(partition, i);
    const std::string value(size, 'v');
    const WriteOp op{.precondition = precondition, .user_key = key, .content = value};
    return runtime_
        .RunToEnd(store_->Write({.table = table_, .ops = {&op, 1}, .durability = DurabilityLevel::kMemory}))
        .status;
  }
  Status Get(const std::string& key) {
    std::string content;
    const Shard::ReadAnswer answer = store_->TryGet(key, &content);
    if (answer.state != Shard::ReadState::kNeedsIo) return Status();
    return runtime_.RunToEnd(store_->Get(key, &content)).status();
  }
  Result<ScanAnswer> Scan(std::string lower, std::string upper, RowSink* sink,
                          Direction direction = Direction::kForward) {
    ScanRequest request;
    request.lower = std::move(lower);
    request.upper = std::move(upper);
    request.direction = direction;
    request.limit = UINT32_MAX;
    return runtime_.RunToEnd(store_->Scan(request, sink));
  }
  void Set(const ThroughputTargets& targets) { ASSERT_TRUE(store_->throttle().SetTargets(targets).ok()); }
  // Tokens left in a partition's bucket.
  int Left(const std::string& partition) {
    int left = 0;
    while (Put(partition, 0).ok()) ++left;
    return left;
  }

  SimDisk disk_;
  SimRuntime runtime_;
  std::unique_ptr<Store> store_;
  TableId table_;
};

TEST_F(StoreThrottleTest, AScanCostsWhatItLooksAtNotWhatItGives) {
  Set({.partition_rate = 500});
  Sieve sieve(100);
  Result<ScanAnswer> answer = Scan(Key("a", 0), Key("b", 0), &sieve);
  ASSERT_TRUE(answer.ok());
  EXPECT_TRUE(answer->done);
  EXPECT_EQ(answer->rows, 5u);
  EXPECT_NEAR(Left("a"), 1'000 - kThrottledRows, 3);
  EXPECT_NEAR(Left("b"), 1'000, 3);
}

// Whatever the target, the pages of a scan together give every row once, in order, in the time that all of
// its rows take to flow in, but for the burst and a slice.
TEST_F(StoreThrottleTest, AThrottledScanGoesOnPageByPageAtTheTargetsRate) {
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    Set({.account_rate = 100});
    runtime_.AdvanceTime(10 * kNanosPerSecond);
    Sieve sieve;
    std::string lower = TableLowerBound(table_), upper = TableUpperBound(table_);
    const uint64_t begin = runtime_.clock().MonotonicNanos();
    uint64_t pages = 0;
    for (bool done = false; !done; ++pages) {
      const size_t before = sieve.keys.size();
      Result<ScanAnswer> page = Scan(lower, upper, &sieve, direction);
      while (page.code() == Code::kThrottled) {
        EXPECT_EQ(sieve.keys.size(), before);
        runtime_.AdvanceTime(page.status().retry_after_us() * 1'000);
        page = Scan(lower, upper, &sieve, direction);
      }
      ASSERT_TRUE(page.ok());
      EXPECT_GT(sieve.keys.size(), before);
      done = page->done;
      (direction == Direction::kForward ? lower : upper) = page->next_key;
    }
    const double seconds = static_cast<double>(runtime_.clock().MonotonicNanos() - begin) / kNanosPerSecond;
    EXPECT_NEAR(seconds, (3 * kThrottledRows - 200) / 100.0, 0.7);
    EXPECT_GT(pages, 10u);
    ASSERT_EQ(sieve.keys.size(), 3u * kThrottledRows);
    if (direction == Direction::kBackward) std::reverse(sieve.keys.begin(), sieve.keys.end());
    EXPECT_EQ(std::set<std::string>(sieve.keys.begin(), sieve.keys.end()).size(), 3u * kThrottledRows);
    EXPECT_TRUE(std::is_sorted(sieve.keys.begin(), sieve.keys.end()));
  }
}

TEST_F(StoreThrottleTest, AScanThatComesToAPartitionInDebtEndsThereAndSaysSoNextTime) {
  Set({.partition_rate = 1'000});
  EXPECT_NEAR(Left("b"), 2'000, 3);
  Sieve sieve;
  Result<ScanAnswer> page = Scan(TableLowerBound(table_), TableUpperBound(table_), &sieve);
  ASSERT_TRUE(page.ok());
  EXPECT_FALSE(page->done);
  EXPECT_GE(sieve.keys.size(), static_cast<size_t>(kThrottledRows));
  EXPECT_LE(sieve.keys.size(), static_cast<size_t>(kThrottledRows) + 2 * kEntriesPerSlice);
  Result<ScanAnswer> next = Scan(page->next_key, TableUpperBound(table_), &sieve);
  EXPECT_EQ(next.code(), Code::kThrottled);
  // Another partition is not slowed.
  Sieve other;
  EXPECT_TRUE(Scan(Key("c", 0), TableUpperBound(table_), &other)->done);
}

// Which partition a page begins in its bounds may not tell.
TEST_F(StoreThrottleTest, APageThatBeginsInAPartitionInDebtIsRefusedWhateverItsBounds) {
  Set({.partition_rate = 10});
  EXPECT_NEAR(Left("a"), 20, 1);
  EXPECT_NEAR(Left("c"), 20, 1);
  Sieve sieve;
  const std::string lower = TableLowerBound(table_), upper = TableUpperBound(table_);
  EXPECT_EQ(Scan(lower, upper, &sieve).code(), Code::kThrottled);
  EXPECT_EQ(Scan(lower, upper, &sieve, Direction::kBackward).code(), Code::kThrottled);
  EXPECT_EQ(
      Scan(Key("a", 0), PrefixSuccessor(PartitionPrefix(Key("a", 0))), &sieve, Direction::kBackward).code(),
      Code::kThrottled);
  EXPECT_EQ(sieve.keys.size(), 0u);
}

// An aggregate that tries a refused page again would count what that had given twice.
TEST_F(StoreThrottleTest, APageThatBeginsWithAPointIsRefusedBeforeItGivesAnything) {
  Set({.partition_rate = 10});
  const ScanInterval intervals[] = {{Key("a", 0), Key("a", 0) + '\0'}, {Key("a", 100), Key("a", 200)}};
  ScanRequest request;
  request.lower = intervals[0].lower;
  request.upper = intervals[1].upper;
  request.only = intervals;
  request.limit = UINT32_MAX;
  Sieve before;
  ASSERT_TRUE(runtime_.RunToEnd(store_->Scan(request, &before)).ok());
  ASSERT_EQ(before.keys.front(), Key("a", 0));
  Left("a");
  Sieve sieve;
  EXPECT_EQ(runtime_.RunToEnd(store_->Scan(request, &sieve)).code(), Code::kThrottled);
  EXPECT_EQ(sieve.keys.size(), 0u);
  // From a partition that owes nothing into one that does.
  const ScanInterval across[] = {{Key("a", 0), Key("a", 0) + '\0'}, {Key("b", 0), Key("b", 400)}};
  Set({.partition_rate = 1'000});
  runtime_.AdvanceTime(10 * kNanosPerSecond);
  Left("b");
  request.upper = across[1].upper;
  request.only = across;
  const Result<ScanAnswer> page = runtime_.RunToEnd(store_->Scan(request, &sieve));
  ASSERT_TRUE(page.ok()) << page.status().ToString();
  EXPECT_FALSE(page->done);
  EXPECT_EQ(sieve.keys.front(), Key("a", 0));
}

TEST_F(StoreThrottleTest, LargeRowsCostByTheirKiBInScansToo) {
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(Put("large", i, 5'000).ok());
  Set({.partition_rate = 500});
  Sieve sieve;
  ASSERT_TRUE(Scan(Key("large", 0), TableUpperBound(table_), &sieve)->done);
  EXPECT_NEAR(Left("large"), 1'000 - 100 * 5, 3);
}

TEST_F(StoreThrottleTest, ReadsCostWhatTheyFindAndNothingFoundCostsOne) {
  ASSERT_TRUE(Put("large", 0, 9'000).ok());
  Set({.partition_rate = 100});
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(Get(Key("large", 0)).ok());
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(Get(Key("large", 7)).ok());
  EXPECT_NEAR(Left("large"), 200 - 10 * 9 - 10, 3);
  EXPECT_EQ(Get(Key("large", 0)).code(), Code::kThrottled);
  // In files, where it is not known before.
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(Get(Key("a", i)).ok()) << i;
  EXPECT_EQ(Get(Key("a", 200)).code(), Code::kThrottled);
}

// Each waits for the disk before it is known what it costs; pages do between their rows.
TEST_F(StoreThrottleTest, CallsThatComeAtOnceAreNotAllAdmittedByTheSameTokens) {
  constexpr int kCalls = 50;
  for (const char* partition : {"read", "scanned"}) {
    for (int i = 0; i < kCalls; ++i) ASSERT_TRUE(Put(partition, i, 9'000).ok());
  }
  ASSERT_TRUE(runtime_.RunToEnd(store_->FlushMemtables()).ok());
  Set({.partition_rate = 10});
  ScanRequest request;
  request.lower = Key("scanned", 0);
  request.upper = Key("scanned", kCalls);
  request.limit = UINT32_MAX;
  std::vector<std::optional<Result<ScanAnswer>>> pages(kCalls);
  for (auto& page : pages) runtime_.Spawn(Into(store_->Scan(request, nullptr), &page));
  runtime_.RunUntilIdle();
  EXPECT_EQ(std::count_if(pages.begin(), pages.end(), [](const auto& page) { return page->ok(); }), 1);

  std::vector<std::string> keys, contents(kCalls);
  for (int i = 0; i < kCalls; ++i) keys.push_back(Key("read", i));
  std::vector<std::optional<Result<Shard::ReadAnswer>>> reads(kCalls);
  for (size_t i = 0; i < kCalls; ++i) {
    runtime_.Spawn(Into(store_->Get(keys[i], &contents[i]), &reads[i]));
  }
  runtime_.RunUntilIdle();
  // Of 20 tokens: two of nine each, and one that is owed.
  EXPECT_LE(std::count_if(reads.begin(), reads.end(), [](const auto& read) { return read->ok(); }), 3);
}

TEST_F(StoreThrottleTest, RefusedWritesCostAndThrottledOnesAreNotApplied) {
  Set({.partition_rate = 50});
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(Put("a", 1, 10, Precondition::kAbsent).code(), Code::kAlreadyExists);
  Status throttled = Put("a", kThrottledRows + 1);
  ASSERT_EQ(throttled.code(), Code::kThrottled);
  EXPECT_GT(throttled.retry_after_us(), 0u);
  EXPECT_LE(throttled.retry_after_us(), 20'000u);
  Set(ThroughputTargets::Off());
  std::string content;
  EXPECT_EQ(store_->TryGet(Key("a", kThrottledRows + 1), &content).state, Shard::ReadState::kAbsent);
}

TEST_F(StoreThrottleTest, TablesMadeUnderALimitHaveItAtOnce) {
  Set({.partition_rate = 10});
  Store::TableSpec spec;
  spec.account = "acme";
  spec.name = "later";
  spec.raw = true;
  table_ = runtime_.RunToEnd(store_->CreateTable(spec))->id;
  EXPECT_NEAR(Left("p"), 20, 1);
}

}  // namespace
}  // namespace partita
