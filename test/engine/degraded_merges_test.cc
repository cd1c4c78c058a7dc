#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>

#include "engine/base/clock.h"
#include "engine/base/user_key.h"
#include "engine/io/sim_runtime.h"
#include "engine/store.h"
#include "test/engine/stalled_fixture.h"
#include "test/support/small_store.h"

namespace partita {
namespace {

// Two shards, of which the second is damaged or not; the first has two tables. While a shard is damaged no
// file is removed, so what is merged for the room that it gives back, or for the number of files, takes more
// of both. covers: F39
class DegradedMergesTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    Open(/*degraded=*/false);
    for (const char* name : {"damaged", "kept", "damagedtoo", "dropped"})
      ASSERT_TRUE(runtime_->RunToEnd(MakeRawTable(store_.get(), name)).ok());
    Put(TableId(1), "row", "some");
    Flush();
    ASSERT_TRUE(runtime_->RunToEnd(store_->Close()).ok());
    if (IsDegraded()) disk_.FlipBit("meta/shard-1-1", 60, 2);
    Open(IsDegraded());
    ASSERT_EQ(store_->open_report().damaged_shards.size(), IsDegraded() ? 1u : 0u);
  }
  void TearDown() override { EXPECT_TRUE(runtime_->RunToEnd(store_->Close()).ok()); }

  static bool IsDegraded() { return GetParam(); }
  void Open(bool degraded) {
    StoreOptions options = SmallStoreOptions(/*shards=*/2, /*memtable_data_bytes=*/1u << 20);
    options.open_degraded = degraded;
    store_.reset();
    runtime_ = std::make_unique<SimRuntime>(SimOptions{.seed = ++lives_, .shards = 2}, disk_);
    Result<std::unique_ptr<Store>> opened = runtime_->RunToEnd(Store::Open(*runtime_, std::move(options)));
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    store_ = std::move(opened).value();
  }
  void Put(TableId table, const std::string& row, const std::string& content) {
    const std::string key = EncodeUserKey(table, "p", row);
    const WriteOp op{.user_key = key, .content = content};
    const WriteRequest request{.table = table, .ops = {&op, 1}};
    ASSERT_TRUE(runtime_->RunToEnd(store_->Write(request)).status.ok());
  }
  void Flush() { ASSERT_TRUE(runtime_->RunToEnd(store_->FlushMemtables()).ok()); }
  // By a while, and by who asks for it, of the first shard.
  uint64_t CompactionsAtLast() {
    runtime_->AdvanceTime(60 * kNanosPerSecond);
    EXPECT_TRUE(runtime_->RunToEnd(store_->CompactAll()).ok());
    return store_->Statistics()[0].compactions;
  }
  void ExpectMergesUnlessDegraded() {
    const size_t files = disk_.ListFiles("tables/").size();
    const uint64_t compactions = CompactionsAtLast();
    if (IsDegraded()) {
      EXPECT_EQ(compactions, 0u);
      EXPECT_EQ(disk_.ListFiles("tables/").size(), files);
    } else {
      EXPECT_GT(compactions, 0u);
    }
  }

  SimDisk disk_{9};
  uint64_t lives_ = 0;
  std::unique_ptr<SimRuntime> runtime_;
  std::unique_ptr<Store> store_;
};
INSTANTIATE_TEST_SUITE_P(SoundOrDamaged, DegradedMergesTest, testing::Bool());

TEST_P(DegradedMergesTest, SmallFilesStayAsTheyAre) {
  for (int row = 0; row < 20; ++row) {
    Put(TableId(2), std::to_string(100 + row), "some");
    Flush();
  }
  ExpectMergesUnlessDegraded();
}

TEST_P(DegradedMergesTest, SlicesThatKeepWhatDroppedTablesHadStayAsTheyAre) {
  std::mt19937_64 random(4);
  std::string content(9'000, ' ');
  for (int row = 0; row < 100; ++row) {
    for (char& byte : content) byte = static_cast<char>(random());
    Put(TableId(4), std::to_string(100 + row), content);
  }
  Put(TableId(2), "kept", "some");
  Flush();
  ASSERT_TRUE(runtime_->RunToEnd(store_->DeleteTable("acct", "dropped")).ok());
  ExpectMergesUnlessDegraded();
}

}  // namespace
}  // namespace partita
