#include "engine/rowless_sweep.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "engine/base/user_key.h"
#include "engine/io/sim_runtime.h"
#include "engine/store.h"
#include "test/engine/rowless_rows.h"
#include "test/support/small_store.h"

namespace partita {
namespace {

// Scans of what was deleted, as of queues that are kept in tables. covers: F13 F14 F36

class RowlessSweepTest : public testing::Test, protected Rows {
 protected:
  explicit RowlessSweepTest(uint64_t seed = 11)
      : disk_(seed), runtime_({.seed = seed, .shards = 2}, disk_), random_(seed) {
    Open();
    table = MakeTable("rows");
  }
  ~RowlessSweepTest() override { EXPECT_TRUE(runtime_.RunToEnd(store_->Close()).ok()); }
  void Reopen() {
    ASSERT_TRUE(runtime_.RunToEnd(store_->Close()).ok());
    store_.reset();
    Open();
  }
  void Open() {
    StoreOptions options = SmallStoreOptions(2, memtable_bytes_);
    options.log_tail_bytes = 1u << 20;  // No write waits, so that a sweep comes behind all of them.
    store_ = std::move(runtime_.RunToEnd(Store::Open(runtime_, options))).value();
  }

  TableId MakeTable(const std::string& name) {
    Store::TableSpec spec{.account = "default", .name = name, .raw = true, .split_partitions = {}};
    return runtime_.RunToEnd(store_->CreateTable(std::move(spec)))->id;
  }
  void Write(std::vector<std::string> keys, WriteKind kind) {
    const WriteOutcome outcome = runtime_.RunToEnd(WriteRows(*store_, table, keys, kind));
    ASSERT_TRUE(outcome.status.ok()) << outcome.status.ToString();
    for (const std::string& key : keys) {
      if (kind == WriteKind::kPut) {
        rows_.insert(key);
      } else {
        rows_.erase(key);
      }
    }
  }
  // Of partition "p", unless told otherwise; `rows` below `end`, a hundred at a time.
  void WriteSpan(int begin, int end, WriteKind kind, const std::string& partition = "p") {
    for (int at = begin; at < end; at += 100) {
      std::vector<std::string> keys;
      for (int row = at; row < std::min(at + 100, end); ++row) keys.push_back(Key(partition, row));
      Write(std::move(keys), kind);
    }
  }
  void Put(int begin, int end, const std::string& partition = "p") {
    WriteSpan(begin, end, WriteKind::kPut, partition);
  }
  void Delete(int begin, int end, const std::string& partition = "p") {
    WriteSpan(begin, end, WriteKind::kDelete, partition);
  }
  void Flush() { ASSERT_TRUE(runtime_.RunToEnd(store_->FlushMemtables()).ok()); }
  // The sweep comes to its end, unless told otherwise.
  void Pause(uint64_t nanos = 2'000'000'000) { runtime_.RunToEnd(Sleep(nanos)); }
  static Task<int> Sleep(uint64_t nanos) {
    co_await SleepFor(nanos);
    co_return 0;
  }

  ScanRequest From(std::string lower, uint32_t limit = 1) const {
    ScanRequest request;
    request.lower = std::move(lower);
    request.upper = TableUpperBound(table);
    request.limit = limit;
    return request;
  }
  // Entries looked at for one page; what it shows is as it must be.
  uint64_t Scan(const ScanRequest& request) {
    KeyTaker taken;
    Result<ScanAnswer> page = runtime_.RunToEnd(store_->Scan(request, &taken));
    EXPECT_TRUE(page.ok()) << page.status().ToString();
    if (!page.ok()) return 0;
    const bool forward = request.direction == Direction::kForward;
    const std::string& end = forward ? request.upper : request.lower;
    const std::string& reached = page->done ? end : page->next_key;
    std::vector<std::string> expected(rows_.lower_bound(forward ? request.lower : reached),
                                      rows_.lower_bound(forward ? reached : request.upper));
    if (!forward) std::reverse(expected.begin(), expected.end());
    EXPECT_EQ(taken.keys, expected);
    return page->scanned;
  }
  uint64_t First(const std::string& partition = "p") { return Scan(From(Key(partition, 0))); }

  static Task<void> PutDurably(RowlessSweepTest* self, std::string key) {
    const std::vector<std::string> keys{std::move(key)};
    const WriteOutcome outcome =
        co_await WriteRows(*self->store_, self->table, keys, WriteKind::kPut, DurabilityLevel::kPower);
    EXPECT_TRUE(outcome.status.ok()) << outcome.status.ToString();
  }
  static Task<int> PutBesideScans(RowlessSweepTest* self, std::string key) {
    TaskGroup put;
    put.Spawn(self->runtime_.shard_executor(ShardId(0)), PutDurably(self, std::move(key)));
    while (put.running() > 0) {
      const ScanRequest first = self->From(self->Key("p", 0));
      KeyTaker taken;
      Result<ScanAnswer> page = co_await self->store_->Scan(first, &taken);
      EXPECT_TRUE(page.ok());
      co_await SleepFor(20'000);
    }
    co_await put.Join();
    co_return 0;
  }

  SimDisk disk_;
  SimRuntime runtime_;
  uint64_t memtable_bytes_ = 256u << 10;
  std::unique_ptr<Store> store_;
  std::mt19937_64 random_;
  std::set<std::string> rows_;
};

TEST_F(RowlessSweepTest, TheFirstScanAfterManyDeletesLooksAtFewEntries) {
  Put(0, 4000);
  Flush();
  Delete(0, 3000);
  Pause();
  EXPECT_LE(First(), 700u);  // The last of them, for which no sweep was due.
  Pause();
  EXPECT_LE(First(), 80u);
  // Backward, and from within.
  ScanRequest backward = From(TableLowerBound(table));
  backward.direction = Direction::kBackward;
  backward.upper = Key("p", 2999);
  EXPECT_LE(Scan(backward), 80u);
  EXPECT_LE(Scan(From(Key("p", 1234))), 80u);
  EXPECT_LE(Scan(From(TableLowerBound(table), 500)), 600u);
}

TEST_F(RowlessSweepTest, AScanThatWalkedFarIsTheLastThatDoes) {
  Put(0, 1500);
  Delete(100, 600);  // Too few to be looked at for themselves.
  Pause();
  EXPECT_GE(Scan(From(Key("p", 0), 200)), 700u);
  Pause();
  EXPECT_LE(Scan(From(Key("p", 0), 200)), 250u);
  EXPECT_LE(Scan(From(Key("p", 100))), 10u);
}

// Longer than a sweep before others have their turn, in both directions.
TEST_F(RowlessSweepTest, ALongSweepGoesOnWhereItEnded) {
  constexpr int kRows = 80'000;
  memtable_bytes_ = 64u << 20;  // All is there still when the store opens again.
  Reopen();
  Put(0, kRows + 1);
  Put(0, 200, "z");
  Delete(0, kRows);
  ScanRequest backward = From(TableLowerBound(table));
  backward.direction = Direction::kBackward;
  backward.upper = Key("p", kRows);
  for (const bool forward : {true, false}) {
    Reopen();
    const uint64_t walked = forward ? First() : Scan(backward);
    EXPECT_GE(walked, static_cast<uint64_t>(kRows));
    Delete(0, 100, "z");  // And a hint of something else in between.
    First("z");
    Pause(30'000'000'000);
    EXPECT_LE(First(), 80u);
    EXPECT_LE(Scan(backward), 80u);
    EXPECT_LE(First("z"), 80u);
    Put(0, 100, "z");
  }
}

TEST_F(RowlessSweepTest, AStretchGoesOverPartitionsAndEndsWithTheTable) {
  const TableId first = table;
  table = MakeTable("next");
  Put(0, 100, "a");
  table = first;
  for (const char* partition : {"a", "b", "c"}) Put(0, 800, partition);
  for (const char* partition : {"a", "b", "c"}) Delete(0, 800, partition);
  Pause();
  for (const char* partition : {"a", "b"}) First(partition);  // What was deleted after the last sweep.
  Pause();
  EXPECT_LE(First("a"), 100u);
  EXPECT_LE(First("b"), 100u);
  EXPECT_LE(Scan(From(TableLowerBound(table))), 100u);
}

TEST_F(RowlessSweepTest, RowsPutIntoWhatWasDeletedAreSeenAtOnce) {
  Put(0, 3000);
  Delete(0, 2500);
  Pause();
  ASSERT_LE(First(), 80u);
  for (const int row : {1200, 700, 2400, 0}) {
    Put(row, row + 1);
    First();
    Scan(From(TableLowerBound(table), 10));
  }
  // Deleted again, they are soon forgotten again.
  for (const int row : {1200, 700, 2400, 0}) Delete(row, row + 1);
  for (int i = 0; i < 4; ++i) {
    First();
    Pause();
  }
  EXPECT_LE(First(), 80u);
}

TEST_F(RowlessSweepTest, AQueueStaysQuickWhileItIsUsed) {
  Put(0, 200);
  uint64_t entries = 0;
  for (int i = 0; i < 5000; ++i) {
    Put(200 + i, 201 + i);
    if (i >= 1000) entries += First();
    Delete(i, i + 1);
    if (i % 20 == 0) Pause(2'000'000);
  }
  EXPECT_LE(entries / 4000, 100u);
  // Empty most of the time.
  Delete(5000, 5200);
  entries = 0;
  for (int i = 5200; i < 6000; ++i) {
    Put(i, i + 1);
    entries += First();
    Delete(i, i + 1);
    entries += First();
    if (i % 20 == 0) Pause(2'000'000);
  }
  EXPECT_LE(entries / 1600, 100u);
}

TEST_F(RowlessSweepTest, WritesOfOtherPartitionsCutNothing) {
  Put(0, 2000, "a");
  Put(0, 2000, "b");
  Delete(0, 1900, "b");
  Pause();
  ASSERT_LE(First("b"), 80u);
  Put(2000, 2100, "a");  // Right in front of what was deleted.
  EXPECT_LE(First("b"), 80u);
  Put(2000, 2100, "b");
  EXPECT_LE(First("b"), 80u);
}

// Of what is in doubt nothing is leapt over (F15).
TEST_F(RowlessSweepTest, ARowInDoubtWithinAStretchIsAnswered) {
  Put(0, 3000);
  Delete(0, 2500);
  Pause();
  ASSERT_LE(First(), 80u);
  const std::vector<std::string> keys{Key("p", 1200)};
  runtime_.AddFault({.effect = SimEffect::kSlow,
                     .operations = SimOps(SimOp::kFlush),
                     .path_prefix = "log-",
                     .count = 1,
                     .delay_ns = 60'000'000'000});
  const WriteOutcome outcome =
      runtime_.RunToEnd(WriteRows(*store_, table, keys, WriteKind::kPut, DurabilityLevel::kPower));
  EXPECT_EQ(outcome.status.code(), Code::kUnknown) << outcome.status.ToString();
  KeyTaker taken;
  const Result<ScanAnswer> page = runtime_.RunToEnd(store_->Scan(From(Key("p", 0)), &taken));
  EXPECT_EQ(page.code(), Code::kUnknown) << page.status().ToString();
  Pause(60'000'000'000);
  rows_.insert(keys[0]);
  First();
}

// A row that was decided before the sweep began, and becomes visible behind it, is in no stretch.
TEST_F(RowlessSweepTest, RowsThatAreNotVisibleYetAreNotPassedOver) {
  for (int round = 0; round < 40 && !HasFailure(); ++round) {
    Put(0, 200);
    Delete(0, 150);
    const std::string key = Key("p", 20 + 3 * round);
    runtime_.RunToEnd(PutBesideScans(this, key));
    rows_.insert(key);
    First();
    Pause();
    First();
    Scan(From(TableLowerBound(table), 100));
  }
}

TEST_F(RowlessSweepTest, NothingIsKnownOfARangeThatWasAway) {
  Put(0, 3000);
  Put(0, 10, "q");
  Delete(0, 2500);
  Pause();
  ASSERT_LE(First(), 80u);
  const std::string key = Key("p", 0);
  const uint32_t home = store_->CatalogCopy().FindRange(key)->owner.value;
  ASSERT_TRUE(runtime_.RunToEnd(store_->MoveRange(key, ShardId(1 - home))).ok());
  First();
  Put(100, 200);
  First();
  ASSERT_TRUE(runtime_.RunToEnd(store_->MoveRange(key, ShardId(home))).ok());
  First();
  Put(50, 51);
  First();
  ASSERT_TRUE(runtime_.RunToEnd(store_->SplitRange(EncodeUserKey(table, "q", ""))).ok());
  First();
  Scan(From(TableLowerBound(table), 1000));
}

TEST_F(RowlessSweepTest, ATableMadeAnewHasItsRows) {
  Put(0, 3000);
  Delete(0, 3000);
  First();
  Pause();
  ASSERT_LE(First(), 80u);
  ASSERT_TRUE(runtime_.RunToEnd(store_->DeleteTable("default", "rows")).ok());
  rows_.clear();
  table = MakeTable("rows");
  Put(0, 300);
  EXPECT_LE(First(), 80u);
  Scan(From(TableLowerBound(table), 1000));
}

// A stretch that a row has cut in its midst is whole again once that is deleted.
TEST_F(RowlessSweepTest, WhatIsFoundBetweenTwoStretchesClosesTheGap) {
  Put(0, 4000);
  Flush();
  Delete(0, 4000);
  Pause();
  First();
  Pause();
  EXPECT_LE(First(), 2u);
  Put(2000, 2001);
  Delete(2000, 2001);
  Scan(From(Key("p", 2000)));
  Pause();
  First();
  Pause();
  EXPECT_LE(First(), 2u);
}

// Of others somebody may be waiting for theirs.
TEST_F(RowlessSweepTest, ALongSweepLetsAHintBehindItBe) {
  constexpr int kRows = 80'000;
  memtable_bytes_ = 64u << 20;
  Reopen();
  Put(0, kRows + 1);
  Put(0, 200, "z");
  Delete(0, kRows);
  Reopen();
  First();
  Pause(100'000);
  Delete(0, 100, "z");
  First("z");
  Pause(100'000'000);
  EXPECT_LE(First("z"), 80u);
}

// Not even by the first scan, which comes before any sweep has.
TEST_F(RowlessSweepTest, BlocksOfWhichAllIsDeletedAreNotRead) {
  Put(0, 4000);
  Flush();
  Delete(0, 3000);
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    ScanRequest request = From(Key("p", 0));
    request.direction = direction;
    if (direction == Direction::kBackward) {
      request.lower = TableLowerBound(table);
      request.upper = Key("p", 3000);
    }
    KeyTaker taken;
    Result<ScanAnswer> page = runtime_.RunToEnd(store_->Scan(request, &taken));
    ASSERT_TRUE(page.ok());
    EXPECT_EQ(taken.keys.size(), direction == Direction::kForward ? 1u : 0u);
    EXPECT_LE(page->blocks.blocks_read, 3u);
    EXPECT_GE(page->blocks.blocks_skipped, 8u);
  }
}

// ---- At random, against a set of keys.

class RowlessRandomTest : public RowlessSweepTest, public testing::WithParamInterface<uint64_t> {
 protected:
  RowlessRandomTest() : RowlessSweepTest(GetParam()) {}

  int Below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  std::string Partition() { return std::string(1, static_cast<char>('p' + Below(3))); }
  void Step() {
    const int longest = Below(4) > 0 ? 30 : Below(3) > 0 ? 600 : kRows;
    const int begin = Below(kRows), length = 1 + Below(longest);
    const int end = std::min(begin + length, kRows);
    switch (Below(14)) {
      case 0:
      case 1:
        return Put(begin, std::min(begin + 1 + Below(20), kRows), Partition());
      case 2:
      case 3:
      case 4:
        return Delete(begin, end, Partition());
      case 5:
        return Pause(Below(3) == 0 ? 2'000'000'000 : 1'000'000);
      case 6:
        return Below(3) == 0 ? Put(begin, end, Partition()) : Flush();
      case 7:
        return ChangeRanges();
      default:
        return ScanSome();
    }
  }
  void ScanSome() {
    ScanRequest request = From(TableLowerBound(table), static_cast<uint32_t>(1 + Below(50)));
    if (Below(2) == 0) request.lower = Key(Partition(), Below(kRows));
    if (Below(2) == 0) request.upper = Key(Partition(), Below(kRows));
    if (Below(2) == 0) request.direction = Direction::kBackward;
    if (request.lower >= request.upper) return;
    if (Below(4) == 0) {
      ScanOnly(request);
    } else {
      Scan(request);
    }
  }
  // Of some intervals, as filters ask for them.
  void ScanOnly(ScanRequest request) {
    std::vector<ScanInterval> only;
    const std::string partition = Partition();
    for (int row = Below(200); row < kRows; row += Below(400)) {
      const int end = row + 1 + Below(300);
      only.push_back({Key(partition, row), Key(partition, end)});
      row = end;
    }
    if (only.empty()) return;
    request.only = only;
    request.limit = UINT32_MAX;
    KeyTaker taken;
    Result<ScanAnswer> page = runtime_.RunToEnd(store_->Scan(request, &taken));
    EXPECT_TRUE(page.ok() && page->done);
    std::vector<std::string> expected;
    for (const ScanInterval& interval : only) {
      for (auto key = rows_.lower_bound(interval.lower); key != rows_.end() && *key < interval.upper; ++key) {
        if (*key >= request.lower && *key < request.upper) expected.push_back(*key);
      }
    }
    if (request.direction == Direction::kBackward) std::reverse(expected.begin(), expected.end());
    EXPECT_EQ(taken.keys, expected);
  }
  void ChangeRanges() {
    const std::string bound = EncodeUserKey(table, Partition(), "");
    const uint32_t owner = store_->CatalogCopy().FindRange(bound)->owner.value;
    // What cannot be is refused, which is none of this test's business.
    switch (Below(4)) {
      case 0:
        (void)runtime_.RunToEnd(store_->SplitRange(bound));
        break;
      case 1:
        (void)runtime_.RunToEnd(store_->MergeRanges(bound));
        break;
      case 2:
        (void)runtime_.RunToEnd(store_->MoveRange(bound, ShardId(1 - owner)));
        break;
      default:
        ASSERT_TRUE(runtime_.RunToEnd(store_->CompactAll()).ok());
    }
  }

  static constexpr int kRows = 1500;
};

TEST_P(RowlessRandomTest, EveryPageShowsTheRowsThereAre) {
  for (const char* partition : {"p", "q", "r"}) Put(0, kRows, partition);
  for (int step = 0; step < 400 && !HasFailure(); ++step) Step();
  // All of it, in pages.
  ScanRequest request = From(TableLowerBound(table), 1000);
  for (auto key = rows_.begin(); key != rows_.end(); key = rows_.lower_bound(request.lower)) {
    request.lower = *key;
    Scan(request);
    std::advance(key, std::min<ptrdiff_t>(std::distance(key, rows_.end()), 1000) - 1);
    request.lower = *key + '\0';
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RowlessRandomTest, testing::Range<uint64_t>(1, 25));

}  // namespace
}  // namespace partita
