#include "engine/memory_lender.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/user_key.h"
#include "engine/io/sim_runtime.h"
#include "engine/store.h"
#include "engine/world.h"
#include "sstable/cached_rows.h"
#include "test/support/small_store.h"

namespace partita {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

// Memtables may have 32 MiB, in steps of 2, and the cache has 16 of its own.
class MemoryLenderTest : public testing::Test {
 protected:
  static MemoryPlan Plan() {
    MemoryPlan plan;
    plan.memtable_bytes = 32 * kMiB;
    plan.cache_bytes = 16 * kMiB;
    return plan;
  }
  ~MemoryLenderTest() override {
    while (!chunks_.empty()) Release();
  }
  // Where `in_time`, what is due in the background is done at once; else never.
  void Acquire(size_t chunks, bool in_time = true) {
    for (size_t i = 0; i < chunks; ++i) {
      chunks_.push_back(pool_.Acquire());
      if (is_due_ && in_time) lender_.TakeBack();
      is_due_ = false;
    }
  }
  void Release() {
    pool_.Release(chunks_.back());
    chunks_.pop_back();
  }
  void Touch() {
    while (lender_.TouchForMemtables()) {
    }
    lender_.NoteTouched();
  }
  size_t TouchedMiB() { return pool_.touched_bytes() / kMiB; }
  size_t CacheMiB() { return (cache_.statistics().capacity_bytes + kMiB / 2) / kMiB; }

  bool is_due_ = false;
  ChunkPool pool_{32 * kMiB, [this] { is_due_ |= lender_.OnAbove(); }};
  BlockCache cache_{16 * kMiB, 16 * kMiB + MemoryLender::LentMax(Plan())};
  MemoryLender lender_{Plan(), &pool_, &cache_};
  std::vector<uint8_t*> chunks_;
};

TEST_F(MemoryLenderTest, TheCacheHasWhatMemtablesLeave) {
  EXPECT_EQ(CacheMiB(), 16u);
  Acquire(3);
  lender_.Look(100 * kNanosPerSecond);
  EXPECT_EQ(lender_.left_bytes(), 7 * kMiB);
  EXPECT_EQ(CacheMiB(), 16u + 32 - 7);
}

TEST_F(MemoryLenderTest, WhatOpenTablesKeepIsTakenOutOfWhatIsLentAndThenOutOfTheCache) {
  cache_.CountResident(10 * kMiB);
  lender_.Look(100 * kNanosPerSecond);
  EXPECT_EQ(CacheMiB(), 16u + 32 - 4 - 10);
  cache_.CountResident(28 * kMiB);
  lender_.Look(101 * kNanosPerSecond);
  EXPECT_EQ(CacheMiB(), 16u + 32 - 4 - 38);
  cache_.CountResident(62 * kMiB);
  lender_.Look(102 * kNanosPerSecond);
  EXPECT_GE(CacheMiB(), 16u / 8);
  EXPECT_LE(CacheMiB(), 16u / 4);
  cache_.CountResident(-100 * static_cast<int64_t>(kMiB));
  lender_.Look(103 * kNanosPerSecond);
  EXPECT_EQ(CacheMiB(), 16u + 32 - 4);
}

// So that it can be told as a store is opened, when nothing is lent yet, and an alert on it does not flap.
TEST_F(MemoryLenderTest, WhatIsBeyondIsTheSameWhateverMemtablesUse) {
  cache_.CountResident(30 * kMiB);  // More than the cache can give, and less than that and what is lent.
  const size_t beyond = 30 * kMiB - cache_.WithheldMax();
  EXPECT_EQ(lender_.bytes_beyond(), beyond);
  lender_.Look(100 * kNanosPerSecond);
  ASSERT_EQ(CacheMiB(), 16u + 32 - 4 - 30);
  EXPECT_EQ(lender_.bytes_beyond(), beyond);
  Acquire(32);
  ASSERT_LE(CacheMiB(), 16u / 4);
  EXPECT_EQ(lender_.bytes_beyond(), beyond);
  cache_.CountResident(-20 * static_cast<int64_t>(kMiB));
  EXPECT_EQ(lender_.bytes_beyond(), 0u);
}

TEST_F(MemoryLenderTest, BurstsThatComeAgainAndAgainEmptyTheCacheFewTimes) {
  uint64_t now = 100;
  int emptied = 0;
  // A burst at once, and then nothing.
  const auto pass = [&](int seconds, size_t burst) {
    const size_t before = CacheMiB();
    Acquire(burst);
    for (int i = 0; i < seconds; ++i, ++now) {
      lender_.Look(now * kNanosPerSecond);
      if (i == 0) emptied += CacheMiB() < before;
      while (!chunks_.empty()) Release();
    }
  };
  pass(90, 0);
  ASSERT_EQ(CacheMiB(), 16u + 32 - 4);
  for (int minute = 0; minute < 10; ++minute) pass(60, 16);
  EXPECT_GE(emptied, 1);
  EXPECT_LE(emptied, 3);
  EXPECT_LT(CacheMiB(), 16u + 32 - 16) << "it is left to them";
  pass(600, 0);
  EXPECT_EQ(CacheMiB(), 16u + 32 - 4) << "until they are over";
}

TEST_F(MemoryLenderTest, ItIsTakenBackAStepBeforeMemtablesNeedIt) {
  lender_.Look(100 * kNanosPerSecond);
  EXPECT_EQ(CacheMiB(), 16u + 32 - 4);
  for (size_t used = 1; used <= 32; ++used) {
    Acquire(1);
    EXPECT_GE(lender_.left_bytes(), std::min(used + 2, size_t{32}) * kMiB) << used;
    EXPECT_LE(lender_.left_bytes(), std::min(used + 4, size_t{32}) * kMiB) << used;
    EXPECT_EQ(CacheMiB(), 16 + 32 - lender_.left_bytes() / kMiB) << used;
  }
  EXPECT_EQ(CacheMiB(), 16u);
}

TEST_F(MemoryLenderTest, WhereTheBackgroundIsLateWritersTakeItBack) {
  lender_.Look(100 * kNanosPerSecond);
  for (size_t used = 1; used <= 32; ++used) {
    Acquire(1, /*in_time=*/false);
    EXPECT_GE(lender_.left_bytes(), used * kMiB) << used;
    EXPECT_LE(used + CacheMiB(), 16u + 32) << used;
  }
}

TEST_F(MemoryLenderTest, TwoStepsMoreThanMemtablesUseAreTouchedAhead) {
  Touch();
  EXPECT_EQ(TouchedMiB(), 4u);
  for (size_t used = 1; used <= 32; ++used) {
    Acquire(1);
    if (lender_.IsTouchingDue()) Touch();
    EXPECT_GE(TouchedMiB(), std::min(used + 2, size_t{32})) << used;
    EXPECT_LE(TouchedMiB(), std::min(used + 4, size_t{32})) << used;
  }
  while (chunks_.size() > 4) Release();
  for (uint64_t now = 100; now < 200; now += 10) lender_.Look(now * kNanosPerSecond);
  EXPECT_EQ(TouchedMiB(), 8u);  // The rest was given back.
  EXPECT_TRUE(lender_.IsTouchingDue());
  Touch();
  EXPECT_EQ(TouchedMiB(), 8u);
  Acquire(6);
  Touch();
  EXPECT_EQ(TouchedMiB(), 14u);
}

TEST_F(MemoryLenderTest, WhereNobodyTouchesAheadItIsLentAndTakenBackAllTheSame) {
  Touch();
  lender_.Look(100 * kNanosPerSecond);
  for (size_t used = 1; used <= 32; ++used) {
    Acquire(1);
    EXPECT_GE(lender_.left_bytes(), std::min(used + 2, size_t{32}) * kMiB) << used;
  }
}

TEST_F(MemoryLenderTest, ItIsLentAgainOnceMemtablesWereQuietForLong) {
  Acquire(20);
  while (chunks_.size() > 2) Release();
  uint64_t now_ns = 100 * kNanosPerSecond;
  const auto look_for = [&](uint64_t seconds) {
    for (const uint64_t end = now_ns + seconds * kNanosPerSecond; now_ns < end; now_ns += kNanosPerSecond)
      lender_.Look(now_ns);
  };
  look_for(31);
  EXPECT_EQ(lender_.left_bytes(), 24 * kMiB);
  Acquire(8);  // Less than before, but not nothing.
  while (chunks_.size() > 2) Release();
  look_for(20);
  EXPECT_EQ(lender_.left_bytes(), 24 * kMiB);
  look_for(12);
  EXPECT_EQ(lender_.left_bytes(), 14 * kMiB);
  look_for(60);
  EXPECT_EQ(lender_.left_bytes(), 6 * kMiB);
  EXPECT_EQ(CacheMiB(), 16u + 32 - 6);
}

TEST_F(MemoryLenderTest, WhatHadPinsIsTakenBackAtTheNextLook) {
  lender_.Look(100 * kNanosPerSecond);
  std::vector<BlockPin> pins;
  for (uint64_t i = 0; i < 60'000; ++i) {
    const BlockKey key = CachedRowKey({ObjectId(1), i * 4096}, i);
    cache_.AddRow(key, std::string(1000, 'r'));
    if (i % 100 == 0) pins.push_back(cache_.Lookup(key));
  }
  Acquire(32);
  EXPECT_EQ(lender_.left_bytes(), 32 * kMiB);  // Writers do not wait for it.
  EXPECT_GT(CacheMiB(), 30u);
  pins.clear();
  lender_.Look(101 * kNanosPerSecond);
  EXPECT_EQ(CacheMiB(), 16u);
}

// A store lends by itself while it is read, and takes back while it is written.
TEST(MemoryLenderStoreTest, AStoreThatIsReadLendsAndOneThatIsWrittenTakesBack) {
  SimDisk disk(3);
  SimRuntime runtime({.seed = 3, .shards = 1}, disk);
  StoreOptions options = SmallStoreOptions(1, 64u << 20);
  options.log_segment_bytes = 8u << 20;
  std::unique_ptr<Store> store = std::move(runtime.RunToEnd(Store::Open(runtime, options))).value();
  Store::TableSpec spec;
  spec.account = "acme";
  spec.name = "rows";
  spec.raw = true;
  const TableId table = runtime.RunToEnd(store->CreateTable(spec))->id;
  const auto put = [&](int row, size_t size) {
    const std::string key = EncodeUserKey(table, "p", std::to_string(row)), content(size, 'v');
    const WriteOp op{.user_key = key, .content = content};
    const WriteRequest request{.table = table, .ops = {&op, 1}, .durability = DurabilityLevel::kMemory};
    return runtime.RunToEnd(store->Write(request)).status;
  };
  const MemoryPlan plan = store->memory_plan();
  EXPECT_EQ(store->CacheStats().capacity_bytes, plan.cache_bytes);
  ASSERT_TRUE(put(0, 100).ok());
  std::string content;
  for (int second = 0; second < 10; ++second) {
    for (int i = 0; i < 100; ++i) {
      store->TryGet(EncodeUserKey(table, "p", "0"), &content);
    }
    runtime.AdvanceTime(kNanosPerSecond);
    ASSERT_TRUE(put(0, 100).ok());  // Lets the worker run.
  }
  const uint64_t lent = store->CacheStats().capacity_bytes;
  EXPECT_GT(lent, plan.cache_bytes + plan.memtable_bytes / 2);
  EXPECT_LE(lent, plan.cache_bytes + plan.memtable_bytes);
  uint64_t least = lent;
  for (int row = 1; row < 400; ++row) {
    ASSERT_TRUE(put(row, 60'000).ok()) << row;
    least = std::min(least, store->CacheStats().capacity_bytes);
  }
  EXPECT_LT(least, lent - 3 * kMiB);
  EXPECT_TRUE(runtime.RunToEnd(store->Close()).ok());
}

// Not for who opens it, does one thing and closes it.
TEST(MemoryLenderStoreTest, AStoreThatIsUsedForLongerTouchesWhatMemtablesWillTake) {
  SimDisk disk(3);
  SimRuntime runtime({.seed = 3, .shards = 1}, disk);
  StoreOptions options = SmallStoreOptions(1);
  options.memory_bytes = uint64_t{1} << 30;
  std::unique_ptr<Store> store = std::move(runtime.RunToEnd(Store::Open(runtime, options))).value();
  Store::TableSpec spec{.account = "acme", .name = "rows", .raw = true, .split_partitions = {}};
  const TableId table = runtime.RunToEnd(store->CreateTable(spec))->id;
  const auto put = [&] {
    const std::string key = EncodeUserKey(table, "p", "r");
    const WriteOp op{.user_key = key, .content = "v"};
    const WriteRequest request{.table = table, .ops = {&op, 1}, .durability = DurabilityLevel::kPower};
    ASSERT_TRUE(runtime.RunToEnd(store->Write(request)).status.ok());
  };
  const uint64_t two_steps = 2 * store->memory_plan().memtable_bytes / MemoryLender::kStepShare;
  EXPECT_GT(two_steps, 8 * kMiB);
  const uint64_t before = ResidentSetBytes();
  put();
  EXPECT_LT(ResidentSetBytes(), before + two_steps / 2);
  runtime.AdvanceTime(kNanosPerSecond);
  put();
  put();
  EXPECT_GT(ResidentSetBytes(), before + two_steps * 3 / 4);
  EXPECT_TRUE(runtime.RunToEnd(store->Close()).ok());
}

// A hundred ranges that refer to one small file have no more for the cache than that.
TEST(MemoryLenderStoreTest, AFileThatRangesShareIsTouchedForOnce) {
  constexpr int kRanges = 100;
  SimDisk disk(4);
  SimRuntime runtime({.seed = 4, .shards = 1}, disk);
  StoreOptions options = SmallStoreOptions(1, /*memtable_data_bytes=*/4 * kMiB);
  options.memory_bytes = uint64_t{1} << 30;
  std::unique_ptr<Store> store = std::move(runtime.RunToEnd(Store::Open(runtime, options))).value();
  Store::TableSpec spec{.account = "acme", .name = "rows", .raw = true, .split_partitions = {}};
  const auto partition = [](int i) { return "p" + std::to_string(kRanges + i); };
  for (int i = 1; i < kRanges; ++i) spec.split_partitions.push_back(partition(i));
  const TableId table = runtime.RunToEnd(store->CreateTable(spec))->id;
  std::mt19937_64 random(4);
  const auto put = [&](int i) {
    const std::string key = EncodeUserKey(table, partition(i), "r");
    std::string content(4'000, ' ');
    for (char& byte : content) byte = static_cast<char>(random());
    const WriteOp op{.user_key = key, .content = content};
    const WriteRequest request{.table = table, .ops = {&op, 1}, .durability = DurabilityLevel::kPower};
    ASSERT_TRUE(runtime.RunToEnd(store->Write(request)).status.ok());
  };
  for (int i = 0; i < kRanges; ++i) put(i);
  ASSERT_TRUE(runtime.RunToEnd(store->FlushMemtables()).ok());
  ASSERT_EQ(store->Statistics()[0].levels[0].files, 1u);
  const uint64_t two_steps = 2 * store->memory_plan().memtable_bytes / MemoryLender::kStepShare;
  const uint64_t before = ResidentSetBytes();
  for (int i = 0; i < 3; ++i) {
    runtime.AdvanceTime(kNanosPerSecond);
    put(i);
  }
  EXPECT_LT(ResidentSetBytes(), before + two_steps + 32 * kMiB);
  EXPECT_TRUE(runtime.RunToEnd(store->Close()).ok());
}

}  // namespace
}  // namespace partita
