#include "engine/flush_queue.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <string>

#include "engine/base/user_key.h"
#include "engine/io/sim_runtime.h"
#include "engine/store.h"
#include "test/engine/stalled_fixture.h"
#include "test/support/into.h"
#include "test/support/small_store.h"

// Memtables that are written two at a time, and become tables in the order of their age.

namespace partita {
namespace {

class FlushQueueTest : public testing::Test {
 protected:
  FlushQueueTest() { Publish({}); }

  // Views whose frozen memtables are these, by number, the newest first; each ends at its number's position.
  void Publish(std::vector<size_t> frozen) {
    auto view = std::make_unique<ReadView>();
    for (size_t number : frozen) view->frozen.push_back(Frozen(number));
    views_.Publish(std::move(view));
  }
  MemtableRef Frozen(size_t number) {
    while (memtables_.size() <= number) memtables_.push_back(std::make_shared<Memtable>(pool_));
    return {memtables_[number], LogPosition(number), 0};
  }
  // 0: none.
  uint64_t Take() {
    const std::optional<MemtableRef> taken = queue_.Take();
    return taken ? taken->last.value : 0;
  }
  void Add(size_t number) { queue_.Add({Frozen(number), {}}); }
  uint64_t BeginInstall() {
    const std::optional<FlushQueue::Written> next = queue_.BeginInstall();
    return next ? next->memtable.last.value : 0;
  }

  ChunkPool pool_{1 << 20};
  std::vector<std::shared_ptr<Memtable>> memtables_;
  ReadViewPublisher views_{[] {}};
  std::function<LogPosition()> end_ = [] { return LogPosition(~uint64_t{0}); };
  FlushQueue queue_{views_, [this] { return end_(); }};
};

TEST_F(FlushQueueTest, GivesEachOnceTheOldestFirst) {
  EXPECT_EQ(Take(), 0u);
  Publish({3, 2, 1});
  EXPECT_EQ(Take(), 1u);
  EXPECT_EQ(Take(), 2u);
  EXPECT_TRUE(queue_.HasUntaken());
  EXPECT_EQ(Take(), 3u);
  EXPECT_EQ(Take(), 0u);
  EXPECT_FALSE(queue_.HasUntaken());
  queue_.GiveBack(*memtables_[2]);
  EXPECT_EQ(Take(), 2u);
}

// What a move brings along is not flushed before the move is made. covers: F67
TEST_F(FlushQueueTest, GivesNothingThatEndsBehind) {
  Publish({3, 2, 1});
  end_ = [] { return LogPosition(2); };
  EXPECT_EQ(Take(), 1u);
  EXPECT_EQ(Take(), 0u);
  EXPECT_FALSE(queue_.HasUntaken());
  end_ = [] { return LogPosition(3); };
  EXPECT_TRUE(queue_.HasUntaken());
  EXPECT_EQ(Take(), 2u);
}

// Else it could be told of no end, and then see a memtable that is behind one.
TEST_F(FlushQueueTest, LooksBeforeItAsksForTheEnd) {
  end_ = [this] {
    Publish({1});
    return LogPosition(~uint64_t{0});
  };
  EXPECT_EQ(Take(), 0u);
}

TEST_F(FlushQueueTest, InstallsOneAfterTheOtherInTheOrderOfTheirAge) {
  Publish({2, 1});
  Take(), Take();
  Add(2);
  EXPECT_EQ(BeginInstall(), 0u) << "an older one is being written";
  Add(1);
  EXPECT_EQ(BeginInstall(), 1u);
  EXPECT_EQ(BeginInstall(), 0u) << "one is being installed";
  Publish({2});
  queue_.EndInstall();
  EXPECT_EQ(Take(), 0u);
  EXPECT_EQ(BeginInstall(), 2u);
  Publish({});
  queue_.EndInstall();
  EXPECT_EQ(BeginInstall(), 0u);
}

TEST_F(FlushQueueTest, WhatCouldNotBeInstalledIsWrittenAnew) {
  Publish({1});
  Take();
  Add(1);
  ASSERT_EQ(BeginInstall(), 1u);
  queue_.EndInstall();
  EXPECT_EQ(Take(), 1u);
}

TEST_F(FlushQueueTest, GivesWhatIsWrittenAndWaits) {
  Publish({3, 2, 1});
  Take(), Take(), Take();
  Add(2);
  const std::vector<FlushQueue::Written> written = queue_.TakeWritten();
  ASSERT_EQ(written.size(), 1u);
  EXPECT_EQ(written[0].memtable.last.value, 2u);
  EXPECT_EQ(Take(), 2u) << "it is nobody's again";
}

TEST(FlushLanesTest, ASecondOneOnlyWhereAnotherShardHasNone) {
  FlushLanes lanes(2);
  lanes.Enter();
  EXPECT_TRUE(lanes.TryEnterBeside());
  EXPECT_FALSE(lanes.TryEnterBeside());
  EXPECT_FALSE(lanes.AreCrowded());
  lanes.Enter();  // The other shard's own waits for nobody.
  EXPECT_TRUE(lanes.AreCrowded());
  lanes.Leave();
  EXPECT_FALSE(lanes.TryEnterBeside());
  lanes.Leave();
  EXPECT_TRUE(lanes.TryEnterBeside());
}

// A store of two shards, all of whose rows are one's.
class FlushBesideTest : public testing::TestWithParam<uint64_t> {
 protected:
  static constexpr int kRows = 30;

  void SetUp() override {
    Open();
    table_ = runtime_->RunToEnd(MakeRawTable(store_.get(), "rows"))->id;
  }
  void Open() {
    runtime_ = std::make_unique<SimRuntime>(SimOptions{.seed = GetParam(), .shards = 2}, disk_);
    Result<std::unique_ptr<Store>> opened = runtime_->RunToEnd(Store::Open(*runtime_, SmallStoreOptions(2)));
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    store_ = std::move(opened).value();
  }
  void TearDown() override {
    if (store_ != nullptr) EXPECT_TRUE(runtime_->RunToEnd(store_->Close()).ok());
  }

  // What the first write of a table meets; the memtables behind it are written meanwhile.
  void FirstFlushMeets(SimFault fault) {
    fault.operations = SimOps(SimOp::kWrite);
    fault.path_prefix = "tables/";
    fault.count = 1;
    fault_ = runtime_->AddFault(fault);
  }
  // All rows over and over, until the flush behind the first is written.
  void WriteUntilBehind() {
    for (; passes_ < 6; ++passes_) {
      for (int row = 0; row < kRows; ++row) ASSERT_TRUE(Put(row, passes_ + 1).ok());
    }
    runtime_->AdvanceTime(1'000'000'000);
    ASSERT_EQ(runtime_->FaultHits(fault_), 1u);
  }
  Status Put(int row, int pass) {
    const std::string key = KeyOf(row);
    const std::string content = ContentOf(pass);
    const WriteOp op{.user_key = key, .content = content};
    const WriteRequest request{
        .table = table_, .ops = std::span<const WriteOp>(&op, 1), .durability = DurabilityLevel::kPower};
    return runtime_->RunToEnd(store_->Write(request)).status;
  }
  std::string KeyOf(int row) const { return EncodeUserKey(table_, "p", std::to_string(10'000 + row)); }
  static std::string ContentOf(int pass) { return std::string(1000, static_cast<char>('a' + pass)); }
  void ExpectTheLastOfEachRow() {
    for (int row = 0; row < kRows; ++row) {
      std::string content;
      const auto answer = runtime_->RunToEnd(store_->Get(KeyOf(row), &content));
      ASSERT_TRUE(answer.ok()) << answer.status().ToString();
      EXPECT_EQ(content, ContentOf(passes_)) << row;
    }
  }
  // Everything on the disk is referred to.
  void ExpectNothingLeftBehind() {
    uint64_t files = 0;
    for (const ShardStatistics& shard : store_->Statistics()) {
      for (const ShardStatistics::Level& level : shard.levels) files += level.files;
    }
    EXPECT_EQ(disk_.ListFiles("tables/").size(), files);
  }
  uint64_t Flushes() {
    uint64_t flushes = 0;
    for (const ShardStatistics& shard : store_->Statistics()) flushes += shard.flushes;
    return flushes;
  }

  SimDisk disk_{GetParam()};
  std::unique_ptr<SimRuntime> runtime_;
  std::unique_ptr<Store> store_;
  TableId table_;
  size_t fault_ = 0;
  int passes_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Seeds, FlushBesideTest, testing::Range(uint64_t{1}, uint64_t{5}));

const SimFault kStands{.effect = SimEffect::kSlow, .delay_ns = 20'000'000'000};

TEST_P(FlushBesideTest, WhatIsWrittenWaitsForWhatIsOlder) {
  FirstFlushMeets(kStands);
  WriteUntilBehind();
  EXPECT_EQ(Flushes(), 0u);
  EXPECT_GE(disk_.ListFiles("tables/").size(), 2u) << "one was written beside it";
  ExpectTheLastOfEachRow();
  runtime_->AdvanceTime(40'000'000'000);
  EXPECT_GE(Flushes(), 3u);
  ExpectTheLastOfEachRow();
  ExpectNothingLeftBehind();
}

// covers: F22
TEST_P(FlushBesideTest, AFailedOneIsWrittenAnewBeforeThose) {
  FirstFlushMeets({.effect = SimEffect::kError, .code = Code::kIoError});
  WriteUntilBehind();
  runtime_->AdvanceTime(40'000'000'000);
  EXPECT_GE(Flushes(), 3u);
  ExpectTheLastOfEachRow();
  ExpectNothingLeftBehind();
}

// What waits for it gives its space back. covers: F54 F56
TEST_P(FlushBesideTest, OneThatFindsNoSpaceIsHelpedByThose) {
  FirstFlushMeets(kStands);
  WriteUntilBehind();
  const std::vector<std::string> files = disk_.ListFiles("tables/");
  ASSERT_GE(files.size(), 2u);
  runtime_->AddFault({.operations = SimOps(SimOp::kFlush), .path_prefix = files[0], .code = Code::kNoSpace});
  for (int i = 0; i < 400 && disk_.FileExists(files[0]); ++i) runtime_->AdvanceTime(100'000'000);
  EXPECT_FALSE(disk_.FileExists(files[0]));
  EXPECT_FALSE(disk_.FileExists(files[1]));
  runtime_->AdvanceTime(40'000'000'000);
  EXPECT_GE(Flushes(), 3u);
  ExpectTheLastOfEachRow();
  ExpectNothingLeftBehind();
}

// Who waits for the first flush hears of the first one. covers: F22
TEST_P(FlushBesideTest, ANewerOneThatFailsIsNoFailureOfTheFirst) {
  FirstFlushMeets(kStands);
  std::optional<Status> flushed;
  for (int row = 0; row < kRows; ++row) ASSERT_TRUE(Put(row, 1).ok());
  runtime_->Spawn(Into(store_->FlushMemtables(), &flushed));
  runtime_->AdvanceTime(1'000'000'000);
  ASSERT_EQ(disk_.ListFiles("tables/").size(), 1u);
  const size_t fault =
      runtime_->AddFault({.operations = SimOps(SimOp::kFlush), .path_prefix = "tables/", .count = 1});
  WriteUntilBehind();
  ASSERT_EQ(runtime_->FaultHits(fault), 1u);
  EXPECT_FALSE(flushed);
  for (const ShardStatistics& shard : store_->Statistics()) EXPECT_TRUE(shard.flush_error.ok());
  runtime_->AdvanceTime(40'000'000'000);
  ASSERT_TRUE(flushed);
  EXPECT_TRUE(flushed->ok()) << flushed->ToString();
  ExpectTheLastOfEachRow();
  ExpectNothingLeftBehind();
}

// covers: F12 F37
TEST_P(FlushBesideTest, AfterALossOfPowerAllIsReplayed) {
  FirstFlushMeets(kStands);
  WriteUntilBehind();
  runtime_->CrashNow();
  (void)runtime_->RunToEnd(store_->Close());
  store_.reset();
  runtime_.reset();
  disk_.CrashPower();
  Open();
  ExpectTheLastOfEachRow();
  runtime_->AdvanceTime(40'000'000'000);
  ExpectNothingLeftBehind();
}

TEST_P(FlushBesideTest, ClosingLeavesNothingThatIsNotInstalled) {
  FirstFlushMeets(kStands);
  WriteUntilBehind();
  runtime_->AddFault(
      {.operations = SimOps(SimOp::kFlush), .path_prefix = disk_.ListFiles("tables/").front()});
  ASSERT_TRUE(runtime_->RunToEnd(store_->Close()).ok());
  EXPECT_THAT(disk_.ListFiles("tables/"), testing::IsEmpty());
  store_.reset();
  Open();
  ExpectTheLastOfEachRow();
}

}  // namespace
}  // namespace partita
