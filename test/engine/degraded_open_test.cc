#include "test/engine/repair_fixture.h"

// covers: F39 F48 F68. A shard that is damaged keeps nobody from the others, and nothing is removed
// meanwhile.

namespace partita {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

class DegradedOpenTest : public RepairTest, public testing::WithParamInterface<const char*> {
 protected:
  void Damage() {
    const std::string what = GetParam();
    if (what == "Manifest") disk_->FlipBit("meta/shard-1-1", 60, 2);
    if (what == "ManifestGone") disk_->RemoveFile("meta/shard-1-1");
    if (what == "Log") {
      for (const std::string& path : disk_->ListFiles("log-1-1/")) disk_->RemoveFile(path);
    }
  }
  static StoreOptions Degraded() {
    StoreOptions options = SmallStore();
    options.create_if_missing = false;
    options.open_degraded = true;
    options.shards = 1;  // Is not looked at.
    return options;
  }
  WriteOutcome Put(SimRuntime& runtime, Store& store, const std::string& key) {
    WriteOp op;
    op.user_key = key;
    op.content = "new";
    WriteRequest request;
    request.table = TableId(1);
    request.ops = std::span<const WriteOp>(&op, 1);
    return runtime.RunToEnd(store.Write(request));
  }
  // Shard 1 has what table 1 has below "p1", and shard 0 the rest: tables are dealt out by their ids.
  static bool IsDamaged(const Store& store, const std::string& key) {
    for (const RangeDescriptor& range : store.CatalogCopy().ranges) {
      const bool within = key >= range.lower && (range.upper.empty() || key < range.upper);
      if (within) return range.owner == ShardId(1);
    }
    return false;
  }
};

INSTANTIATE_TEST_SUITE_P(Damages, DegradedOpenTest, testing::Values("Manifest", "ManifestGone", "Log"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(DegradedOpenTest, ServesTheOtherShardsAndRemovesNothing) {
  Damage();
  {
    SimRuntime runtime(NextLife(), *disk_);
    EXPECT_EQ(runtime.RunToEnd(Store::Open(runtime, SmallStore())).code(), Code::kCorruption);
  }
  const auto before = AllFiles(*disk_);
  SimRuntime runtime(NextLife(), *disk_);
  auto opened = runtime.RunToEnd(Store::Open(runtime, Degraded()));
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  Store& store = **opened;
  EXPECT_EQ(store.shard_count(), kShards);
  EXPECT_THAT(store.open_report().damaged_shards, testing::ElementsAre(HasSubstr("-1-1")));
  size_t served = 0, refused = 0;
  for (const auto& [key, row] : rows_) {
    std::string content;
    auto read = runtime.RunToEnd(store.Get(key, &content));
    if (IsDamaged(store, key)) {
      ++refused;
      ASSERT_EQ(read.code(), Code::kCorruption);
      EXPECT_THAT(read.status().message(), AllOf(HasSubstr("-1-1"), HasSubstr("partita repair")));
      EXPECT_EQ(store.TryGet(key, &content).state, Shard::ReadState::kNeedsIo);
      continue;
    }
    ++served;
    ASSERT_TRUE(read.ok()) << read.status().ToString();
    ASSERT_EQ(read->state == Shard::ReadState::kFound, row.content.has_value());
    if (row.content) EXPECT_EQ(content, *row.content);
  }
  EXPECT_GT(served, 50u);
  EXPECT_GT(refused, 50u);
  EXPECT_EQ(Put(runtime, store, EncodeUserKey(TableId(1), "p0", "new")).status.code(),
            IsDamaged(store, EncodeUserKey(TableId(1), "p0", "new")) ? Code::kCorruption : Code::kOk);
  EXPECT_EQ(Put(runtime, store, EncodeUserKey(TableId(1), "p1", "new")).status.code(),
            IsDamaged(store, EncodeUserKey(TableId(1), "p1", "new")) ? Code::kCorruption : Code::kOk);
  const std::string within = EncodeUserKey(TableId(1), "p05", "");
  EXPECT_EQ(runtime.RunToEnd(store.SplitRange(within)).code(), Code::kCorruption);
  EXPECT_EQ(runtime.RunToEnd(store.MoveRange(within, ShardId(0))).code(), Code::kCorruption);

  // Compactions, dropped tables: no file goes.
  for (int i = 0; i < 2400; ++i) {
    const std::string key =
        EncodeUserKey(TableId(1), "p" + std::to_string(i % 2), "r" + std::to_string(i * 7919 % 500));
    if (!IsDamaged(store, key)) ASSERT_TRUE(Put(runtime, store, key).status.ok());
    if (i % 200 == 0) ASSERT_TRUE(runtime.RunToEnd(store.FlushMemtables()).ok());
  }
  EXPECT_TRUE(runtime.RunToEnd(store.CompactAll()).ok());
  EXPECT_GT(store.Statistics()[0].bytes_compaction_read, 0u);
  EXPECT_TRUE(runtime.RunToEnd(store.DeleteTable("default", "others")).ok());
  runtime.AdvanceTime(5'000'000'000);
  for (const auto& [path, bytes] : before) {
    if (path.starts_with("tables/")) EXPECT_TRUE(disk_->FileExists(path)) << path;
  }
  auto verified = runtime.RunToEnd(store.Verify(nullptr));
  ASSERT_TRUE(verified.ok());
  EXPECT_EQ(verified->damages.size(), 1u);
  EXPECT_EQ(store.Statistics().size(), kShards);
  EXPECT_EQ(runtime.RunToEnd(store.Backup(runtime.files(), nullptr, BackupOptions())).code(),
            Code::kCorruption);
  EXPECT_TRUE(runtime.RunToEnd(store.Barrier()).ok());
  EXPECT_TRUE(runtime.RunToEnd(store.Close()).ok());
}

TEST_P(DegradedOpenTest, AScanEndsInFrontOfWhatIsDamagedAndSaysSoWhenAskedToGoOn) {
  Damage();
  SimRuntime runtime(NextLife(), *disk_);
  auto opened = runtime.RunToEnd(Store::Open(runtime, Degraded()));
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  Store& store = **opened;
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    ScanRequest request;
    request.lower = TableLowerBound(TableId(1));
    request.upper = TableUpperBound(TableId(1));
    request.direction = direction;
    request.limit = 100'000;
    uint64_t rows = 0;
    Result<ScanAnswer> page = ScanAnswer();
    for (int pages = 0; pages < 100; ++pages) {
      page = runtime.RunToEnd(store.Scan(request, nullptr));
      if (!page.ok() || page->done) break;
      rows += page->rows;
      (direction == Direction::kForward ? request.lower : request.upper) = page->next_key;
    }
    EXPECT_EQ(page.code(), Code::kCorruption);
    // One of the table's two ranges comes first, in one of the directions.
    if (IsDamaged(store, EncodeUserKey(TableId(1), "p1", "")) == (direction == Direction::kForward)) {
      EXPECT_GT(rows, 50u);
    } else {
      EXPECT_EQ(rows, 0u);
    }
  }
  EXPECT_TRUE(runtime.RunToEnd(store.Close()).ok());
}

TEST_P(DegradedOpenTest, NewTablesKeepOffTheDamagedShard) {
  Damage();
  SimRuntime runtime(NextLife(), *disk_);
  auto opened = runtime.RunToEnd(Store::Open(runtime, Degraded()));
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  Store& store = **opened;
  for (const char* name : {"new1", "new2", "new3"}) {
    Store::TableSpec spec;
    spec.account = "default";
    spec.name = name;
    spec.raw = true;
    spec.split_partitions = {"m"};
    // What the damaged shard gave may lie as far ahead of the clock as a lease goes (F17).
    const Version ahead(runtime.clock().WallTicks() + kLeaseTicksMax);
    auto made = runtime.RunToEnd(store.CreateTable(std::move(spec)));
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    for (const RangeDescriptor& range : store.RangesOf(made->id)) EXPECT_EQ(range.owner, ShardId(0));
    for (const char* partition : {"a", "z"}) {
      const WriteOutcome put = Put(runtime, store, EncodeUserKey(made->id, partition, "r"));
      ASSERT_TRUE(put.status.ok()) << put.status.ToString();
      EXPECT_GT(put.version, ahead);
      for (const auto& [key, row] : rows_) ASSERT_GT(put.version, row.version);
    }
  }
  EXPECT_TRUE(runtime.RunToEnd(store.Close()).ok());
}

// covers: F17. The damaged shard was far ahead of the clock and of the other; its manifest is there.
TEST_F(RepairTest, NewTablesOfADegradedStoreAreAboveWhatTheDamagedShardGave) {
  Version given;
  {
    SimOptions life = NextLife();
    life.wall_ticks_start += 3600 * kTicksPerSecond;
    SimRuntime runtime(life, *disk_);
    auto opened = runtime.RunToEnd(Store::Open(runtime, SmallStore()));
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    for (const int row : {10'001, 10'002}) {  // Of table 1, and its two partitions.
      const std::string key = EncodeUserKey(TableId(1), "p" + std::to_string(row % 2), "");
      if ((*opened)->CatalogCopy().FindRange(key)->owner == ShardId(1)) WriteRow(runtime, **opened, row);
    }
    for (const auto& [key, row] : rows_) given = std::max(given, row.version);
    ASSERT_TRUE(runtime.RunToEnd((*opened)->FlushMemtables()).ok());
    ASSERT_TRUE(runtime.RunToEnd((*opened)->Close()).ok());
  }
  for (const std::string& path : disk_->ListFiles("log-1-1/")) disk_->RemoveFile(path);
  SimRuntime runtime(NextLife(), *disk_);
  ASSERT_GT(given.value, runtime.clock().WallTicks() + 1800 * kTicksPerSecond);
  StoreOptions options = SmallStore();
  options.open_degraded = true;
  auto opened = runtime.RunToEnd(Store::Open(runtime, options));
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  Store::TableSpec spec{.account = "default", .name = "new", .raw = true, .split_partitions = {}};
  const Result<TableDescriptor> made = runtime.RunToEnd((*opened)->CreateTable(std::move(spec)));
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  EXPECT_GT(made->created_ticks, given.value);
  EXPECT_TRUE(runtime.RunToEnd((*opened)->Close()).ok());
}

TEST_P(DegradedOpenTest, ReadsOnlyAsWell) {
  Damage();
  const auto before = AllFiles(*disk_);
  {
    SimRuntime runtime(NextLife(), *disk_);
    StoreOptions options = Degraded();
    options.read_only = true;
    auto opened = runtime.RunToEnd(Store::Open(runtime, options));
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    EXPECT_EQ((*opened)->open_report().damaged_shards.size(), 1u);
    EXPECT_TRUE(runtime.RunToEnd((*opened)->Close()).ok());
  }
  EXPECT_EQ(AllFiles(*disk_), before);
}

// What was written meanwhile is kept by the repair that follows.
TEST_P(DegradedOpenTest, IsRepairedAfterwards) {
  Damage();
  {
    SimRuntime runtime(NextLife(), *disk_);
    auto opened = runtime.RunToEnd(Store::Open(runtime, Degraded()));
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    for (int i = 0; i < 200; ++i) {
      const std::string key =
          EncodeUserKey(TableId(1), i % 2 == 0 ? "p0" : "p1", "meanwhile" + std::to_string(i));
      if (IsDamaged(**opened, key)) continue;
      const WriteOutcome put = Put(runtime, **opened, key);
      ASSERT_TRUE(put.status.ok());
      rows_[key] = {put.version, "new"};
    }
    EXPECT_TRUE(runtime.RunToEnd((*opened)->CompactAll()).ok());
    EXPECT_TRUE(runtime.RunToEnd((*opened)->Close()).ok());
  }
  const RepairReport listed = Repair();
  EXPECT_EQ(listed.damages.size(), 1u);
  EXPECT_GT(kept_, rows_.size() * 3 / 4);
}

TEST_F(RepairTest, ADegradedOpenOfASoundStoreIsAnOrdinaryOne) {
  SimRuntime runtime(NextLife(), *disk_);
  StoreOptions options = SmallStore();
  options.open_degraded = true;
  auto opened = runtime.RunToEnd(Store::Open(runtime, options));
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  EXPECT_THAT((*opened)->open_report().damaged_shards, IsEmpty());
  EXPECT_TRUE(runtime.RunToEnd((*opened)->Close()).ok());
}

// Nothing is wrong with the tables: what opens all the same would call them damaged, and refuse their keys.
TEST_F(RepairTest, WhatRunsOutOfDescriptorsDoesNotOpen) {
  for (const bool degraded : {false, true}) {
    SimRuntime runtime(NextLife(), *disk_);
    const size_t fault = runtime.AddFault({.operations = SimOps(SimOp::kOpen),
                                           .path_prefix = "tables/",
                                           .count = 1,
                                           .code = Code::kResourceExhausted});
    StoreOptions options = SmallStore();
    options.open_degraded = degraded;
    EXPECT_EQ(runtime.RunToEnd(Store::Open(runtime, options)).code(), Code::kResourceExhausted);
    EXPECT_EQ(runtime.FaultHits(fault), 1u);
    auto again = runtime.RunToEnd(Store::Open(runtime, options));
    ASSERT_TRUE(again.ok()) << again.status().ToString();
    EXPECT_THAT(runtime.RunToEnd((*again)->Verify(nullptr))->damages, IsEmpty());
    EXPECT_TRUE(runtime.RunToEnd((*again)->Close()).ok());
  }
}

// What fails while a store is made is no damage: it was never whole, and the next open goes on making it.
TEST(DegradedCreationTest, AnErrorAtAnyOperationOfACreationIsNoDamageLater) {
  const SimOptions life{.shards = kShards};
  uint64_t refused = 0;
  for (uint64_t skip = 0, hits = 1; hits > 0; ++skip) {
    SCOPED_TRACE(skip);
    SimDisk disk(7);
    StoreOptions options = SmallStore();
    options.open_degraded = true;
    {
      SimRuntime runtime(life, disk);
      const size_t fault = runtime.AddFault({.skip = skip, .count = 1});
      auto opened = runtime.RunToEnd(Store::Open(runtime, options));
      hits = runtime.FaultHits(fault);
      refused += opened.ok() ? 0 : 1;
      if (opened.ok()) {
        EXPECT_THAT((*opened)->open_report().damaged_shards, IsEmpty());
        (void)runtime.RunToEnd((*opened)->Close());
      }
    }
    options.open_degraded = false;
    SimRuntime runtime(life, disk);
    auto again = runtime.RunToEnd(Store::Open(runtime, options));
    ASSERT_TRUE(again.ok()) << again.status().ToString();
    ASSERT_TRUE(runtime.RunToEnd((*again)->Close()).ok());
  }
  EXPECT_GT(refused, 10u);
}

}  // namespace
}  // namespace partita
