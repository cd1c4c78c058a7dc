#include "engine/background_meter.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/user_key.h"
#include "engine/io/sim_runtime.h"
#include "engine/store.h"
#include "test/support/hand_set_clock.h"
#include "test/support/small_store.h"

namespace partita {
namespace {

class MeterClock : public HandSetClock {
 public:
  uint64_t ThreadCpuNanos() override { return cpu_ns; }

  std::atomic<uint64_t> cpu_ns{5 * kNanosPerSecond};
};

class BackgroundMeterTest : public testing::Test {
 protected:
  BackgroundLoad Of(BackgroundWork work) { return meter_.Read()[static_cast<size_t>(work)]; }
  MeterClock clock_;
  BackgroundMeter meter_{clock_};
};

TEST_F(BackgroundMeterTest, AJobShowsInEachSecondThatItTakes) {
  for (int second = 0; second < 120; ++second) {
    for (int i = 0; i < 10; ++i) {
      meter_.Note(BackgroundWork::kCompaction, 1'000);
      clock_.cpu_ns += kNanosPerSecond / 40;
      clock_.now_ns += kNanosPerSecond / 10;
    }
    const BackgroundLoad load = Of(BackgroundWork::kCompaction);
    ASSERT_EQ(load.last_second.bytes_per_second, 10'000) << second;
    ASSERT_EQ(load.last_minute.bytes_per_second, 10'000) << second;
    ASSERT_EQ(load.bytes, 10'000u * (second + 1));
    if (second > 0) ASSERT_DOUBLE_EQ(load.last_second.cores, 0.25) << second;
  }
  EXPECT_EQ(Of(BackgroundWork::kFlush).bytes, 0u);
}

TEST_F(BackgroundMeterTest, WhatIsLongOverIsForgottenByTheRatesAndKeptInTheSums) {
  meter_.Note(BackgroundWork::kFlush, 600);
  clock_.now_ns += 2 * kNanosPerSecond;
  EXPECT_EQ(Of(BackgroundWork::kFlush).last_second.bytes_per_second, 0);
  EXPECT_EQ(Of(BackgroundWork::kFlush).last_minute.bytes_per_second, 300) << "of two seconds so far";
  clock_.now_ns += 58 * kNanosPerSecond;
  EXPECT_EQ(Of(BackgroundWork::kFlush).last_minute.bytes_per_second, 10);
  clock_.now_ns += kNanosPerSecond;
  EXPECT_EQ(Of(BackgroundWork::kFlush).last_minute.bytes_per_second, 0);
  clock_.now_ns += 3 * kNanosPerSecond;  // The same slot again.
  meter_.Note(BackgroundWork::kFlush, 60);
  clock_.now_ns += kNanosPerSecond;
  EXPECT_EQ(Of(BackgroundWork::kFlush).last_second.bytes_per_second, 60);
  EXPECT_EQ(Of(BackgroundWork::kFlush).bytes, 660u);
}

TEST_F(BackgroundMeterTest, TimeOfOtherWorkInBetweenIsNotCounted) {
  meter_.Note(BackgroundWork::kFlush, 1);
  clock_.cpu_ns += 100;
  meter_.Note(BackgroundWork::kFlush, 1);
  clock_.cpu_ns += 10'000;
  meter_.Note(BackgroundWork::kCompaction, 1);  // Began somewhere in between.
  clock_.cpu_ns += 7;
  meter_.Note(BackgroundWork::kCompaction, 1);
  EXPECT_EQ(Of(BackgroundWork::kFlush).cpu_ns, 100u);
  EXPECT_EQ(Of(BackgroundWork::kCompaction).cpu_ns, 7u);
}

TEST_F(BackgroundMeterTest, ThreadsTogetherLoseNothingOfTheSums) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20'000; ++i) {
        meter_.Note(BackgroundWork::kScrub, 3);
        if (i % 100 == 0) clock_.now_ns += kNanosPerSecond / 10;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Of(BackgroundWork::kScrub).bytes, 240'000u);
}

Status PutRow(SimRuntime& runtime, Store& store, TableId table, int row) {
  const std::string key = EncodeUserKey(table, "p", std::to_string(row));
  const std::string content(500, 'x');
  const WriteOp op{.user_key = key, .content = content};
  const WriteRequest request{.table = table, .ops = std::span<const WriteOp>(&op, 1)};
  return runtime.RunToEnd(store.Write(request)).status;
}

TEST(StoreBackgroundTest, EachKindOfWorkIsItsShards) {
  SimDisk disk(3);
  SimRuntime runtime({.seed = 3, .shards = 2}, disk);
  auto store = std::move(runtime.RunToEnd(Store::Open(runtime, SmallStoreOptions(2)))).value();
  Store::TableSpec spec{.account = "default", .name = "rows", .raw = true, .split_partitions = {}};
  const TableId table = runtime.RunToEnd(store->CreateTable(std::move(spec)))->id;
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(PutRow(runtime, *store, table, i % 100).ok());
  ASSERT_TRUE(runtime.RunToEnd(store->FlushMemtables()).ok());
  ASSERT_TRUE(runtime.RunToEnd(store->CompactAll()).ok());
  ASSERT_TRUE(runtime.RunToEnd(store->Scrub({})).ok());
  const uint32_t owner = store->RangesOf(table)[0].owner.value;
  const std::vector<ShardStatistics> shards = store->Statistics();
  const auto bytes = [&](uint32_t shard, BackgroundWork work) {
    return shards[shard].background[static_cast<size_t>(work)].bytes;
  };
  EXPECT_GE(bytes(owner, BackgroundWork::kFlush), shards[owner].bytes_flushed);
  EXPECT_GT(shards[owner].bytes_compaction_written, 0u);
  EXPECT_GE(bytes(owner, BackgroundWork::kCompaction), shards[owner].bytes_compaction_written);
  EXPECT_GT(bytes(owner, BackgroundWork::kScrub), 500u);
  EXPECT_EQ(bytes(owner, BackgroundWork::kBackup), 0u);
  EXPECT_EQ(bytes(1 - owner, BackgroundWork::kFlush), 0u);
  EXPECT_TRUE(runtime.RunToEnd(store->Close()).ok());
}

// Its reader stays when the job has ended, and is everybody's.
TEST(StoreBackgroundTest, WhatIsReadOfATableIsNotWorkOfTheJobThatMadeIt) {
  SimDisk disk(3);
  SimRuntime runtime({.seed = 3, .shards = 1}, disk);
  auto store = std::move(runtime.RunToEnd(Store::Open(runtime, SmallStoreOptions(1)))).value();
  Store::TableSpec spec{.account = "default", .name = "rows", .raw = true, .split_partitions = {}};
  const TableId table = runtime.RunToEnd(store->CreateTable(std::move(spec)))->id;
  ASSERT_TRUE(PutRow(runtime, *store, table, 1).ok());
  ASSERT_TRUE(runtime.RunToEnd(store->FlushMemtables()).ok());
  const auto flush_bytes = [&] {
    return store->Statistics()[0].background[static_cast<size_t>(BackgroundWork::kFlush)].bytes;
  };
  const uint64_t flushed = flush_bytes(), reads = disk.operation_count(SimOp::kRead);
  EXPECT_GT(flushed, 0u);
  std::string content;
  ASSERT_TRUE(runtime.RunToEnd(store->Get(EncodeUserKey(table, "p", "1"), &content)).ok());
  EXPECT_GT(disk.operation_count(SimOp::kRead), reads) << "it came from a cache, so nothing is shown";
  EXPECT_EQ(flush_bytes(), flushed);
  EXPECT_TRUE(runtime.RunToEnd(store->Close()).ok());
}

}  // namespace
}  // namespace partita
