#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/batch_record.h"
#include "engine/io/local_meta_store.h"
#include "engine/manifest.h"
#include "test/engine/range_fixture.h"
#include "wal/log_salvage.h"

namespace partita {
namespace {

// Moves beside logs that are slow or fail. covers: F12 F36

// Moves beside a log whose flushes take long.
class SlowLogTest : public RangeTest {
 public:
  using RangeTest::RangeTest;

 protected:
  static constexpr uint64_t kSlowFlushNanos = 2'000'000'000;

  // Rows in two ranges, all durable, as are versions for the next writes.
  void OpenSplitAndFlushed() {
    ASSERT_TRUE(Open().ok());
    MakeTable();
    Fill();
    ASSERT_TRUE(Split(3).ok());
    ASSERT_TRUE(Put(1, 1, "takes the lease of versions", DurabilityLevel::kMemory).ok());
    ASSERT_TRUE(runtime_->RunToEnd(store_->Barrier()).ok());
  }
  void SlowLogOf(int partition) {
    SimFault slow;
    slow.effect = SimEffect::kSlow;
    slow.operations = SimOps(SimOp::kFlush);
    slow.path_prefix = "log-1-" + std::to_string(OwnerOf(partition).value) + "/";
    slow.delay_ns = kSlowFlushNanos;
    runtime_->AddFault(slow);
  }
};

// What of unflushed or failed writes a loss of power leaves on the disk depends on the seed.
class RangeSeedTest : public SlowLogTest, public testing::WithParamInterface<uint64_t> {
 public:
  RangeSeedTest() : SlowLogTest(GetParam()) {}
};

INSTANTIATE_TEST_SUITE_P(Seeds, RangeSeedTest, testing::Range(uint64_t{1}, uint64_t{13}));

// A prefix of what a shard decided, also where a part of it went away (F12).
TEST_P(RangeSeedTest, WhatIsOlderThanWhatMovedSurvivesToo) {
  ASSERT_NO_FATAL_FAILURE(OpenSplitAndFlushed());
  SlowLogOf(4);
  ASSERT_TRUE(Put(1, 0, "stays", DurabilityLevel::kMemory).ok());
  ASSERT_TRUE(Put(4, 0, "moves", DurabilityLevel::kMemory).ok());
  ASSERT_TRUE(Move(4, (OwnerOf(4).value + 1) % kShards).ok());
  LosePower();
  ASSERT_TRUE(Open().ok());
  ExpectRows("opened again");
  ASSERT_TRUE(Close().ok());
}

// What came after the last write of the range does not go along, so nothing of it need survive the move.
TEST_F(SlowLogTest, AMoveDoesNotWaitForWhatItsOldShardTookLater) {
  ASSERT_NO_FATAL_FAILURE(OpenSplitAndFlushed());
  ASSERT_TRUE(Put(4, 0, "moves").ok());
  SlowLogOf(4);
  ASSERT_TRUE(Put(1, 0, "stays", DurabilityLevel::kMemory).ok());
  const auto moved = Move(4, (OwnerOf(4).value + 1) % kShards);
  ASSERT_TRUE(moved.ok()) << moved.status().ToString();
  EXPECT_LT(moved->pause_ns, kSlowFlushNanos);
  ExpectRows("moved");
  ASSERT_TRUE(Close().ok());
}

TEST_P(RangeSeedTest, AMoveToAShardWhoseLogFailsIsNotMadeAndCostsNothing) {
  ASSERT_TRUE(Open().ok());
  MakeTable();
  Fill();
  Compact();
  ASSERT_TRUE(Split(3).ok());
  const ShardId home = OwnerOf(4);
  const uint32_t away = (home.value + 1) % kShards;
  ASSERT_TRUE(Move(1, away).ok());
  SimFault fault;
  fault.operations = SimOps(SimOp::kWrite, SimOp::kFlush);
  fault.path_prefix = "log-1-" + std::to_string(away) + "/";
  runtime_->AddFault(fault);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Move(4, away).status().code(), Code::kIoError);
  EXPECT_EQ(OwnerOf(4), home);
  ASSERT_TRUE(Put(4, 0, "its fence was lifted").ok());
  LosePower();
  ASSERT_TRUE(Open().ok());
  ExpectRows("opened again");
  ASSERT_TRUE(Put(1, 0, "the log works again").ok());
  LosePower();
  ASSERT_TRUE(Open().ok());
  ExpectRows("its next record counts");
  ASSERT_TRUE(Move(4, away).ok());
  for (int r = 1; r < kRows; ++r) ASSERT_TRUE(Put(4, r, "moved at last").ok());
  LosePower();
  ASSERT_TRUE(Open().ok());
  ExpectRows("moved and opened again");
  ASSERT_TRUE(Close().ok());
}

// ---- What records say of ranges.

using PartitionEpoch = std::pair<std::string, RangeEpoch>;

// Of each record of a log that nobody has open, in order.
std::vector<PartitionEpoch> RecordsOf(SimDisk& disk, ShardId shard) {
  std::vector<PartitionEpoch> records;
  SimRuntime runtime({.seed = 1}, disk);
  LocalLogOptions options{.shard = shard, .directory = LogDirectory(1, shard)};
  options.store = **runtime.RunToEnd(ReadStoreId(runtime.files()));
  const auto read = runtime.RunToEnd(
      SalvageLog(runtime.files(), options, LogPosition(0), [&records](const LogRecord& record) {
        BatchRecordReader reader = std::move(BatchRecordReader::Open(record.payload)).value();
        Entry entry;
        EXPECT_TRUE(reader.Next(&entry));
        records.emplace_back(DecodeUserKey(entry.user_key)->partition_key, reader.header().epoch);
        return Status();
      }));
  EXPECT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_TRUE(read->damages.empty());
  return records;
}

TEST_F(RangeTest, RecordsNameTheEpochOfTheRangeThatTheyWereWrittenTo) {
  ASSERT_TRUE(Open(/*shards=*/1).ok());
  MakeTable();
  std::vector<PartitionEpoch> written;
  std::set<uint64_t> epochs;
  for (int change = 0; change < 6; ++change) {
    for (const int partition : {1, 4}) {
      ASSERT_TRUE(Put(partition, change, "some").ok());
      const RangeEpoch epoch = store_->CatalogCopy().FindRange(Bound(partition))->epoch;
      written.emplace_back("p" + std::to_string(partition), epoch);
      epochs.insert(epoch.value);
    }
    ASSERT_TRUE((change % 2 == 0 ? Split(3) : Merge(3)).ok());
  }
  EXPECT_GT(epochs.size(), 5u);
  Crash(/*power=*/false);
  EXPECT_EQ(RecordsOf(*disk_, ShardId(0)), written);
}

}  // namespace
}  // namespace partita
