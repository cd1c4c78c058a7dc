#include "engine/repair.h"

#include <gmock/gmock-matchers.h>

#include "engine/io/local_meta_store.h"
#include "engine/io/local_object_store.h"
#include "engine/io/meta_format.h"
#include "test/engine/repair_fixture.h"
#include "test/support/sealed_rot.h"
#include "wal/frame_format.h"

// covers: F53 F17 F36 F46 F80. Each kind of damage is listed first, and nothing is changed by that; applied,
// it leaves a store that opens, is sound, and holds all that was not listed as lost, and the old bytes.

namespace partita {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(RepairTest, ASoundStoreHasNothingToRepair) {
  const RepairReport listed = List();
  EXPECT_THAT(listed.damages, IsEmpty());
  EXPECT_EQ(listed.shards, kShards);
  EXPECT_GT(listed.tables, 4u);
  EXPECT_GT(listed.log_records, 0u);
  const auto before = AllFiles(*disk_);
  SimRuntime runtime(NextLife(), *disk_);
  auto report = Run(runtime, /*apply=*/true);
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  EXPECT_FALSE(report->applied);
  EXPECT_EQ(AllFiles(*disk_), before);
}

// covers: F52. For a catalog or manifest that is lost another takes its place.
TEST_F(RepairTest, OneBadReadOfAMetaValueIsNoDamage) {
  for (const std::string path : {"meta/catalog", "meta/shard-1-0", "meta/shard-1-1"}) {
    for (const SimEffect effect : {SimEffect::kRotOnce, SimEffect::kError}) {
      SimRuntime runtime(NextLife(), *disk_);
      const size_t fault = runtime.AddFault(
          {.effect = effect, .operations = SimOps(SimOp::kRead), .path_prefix = path, .count = 1});
      auto report = Run(runtime, /*apply=*/true);
      ASSERT_TRUE(report.ok()) << report.status().ToString();
      EXPECT_EQ(runtime.FaultHits(fault), 1u);
      EXPECT_THAT(report->damages, IsEmpty()) << path;
      EXPECT_FALSE(report->applied);
    }
  }
}

TEST_F(RepairTest, ALogDamagedInTheMiddleKeepsWhatIsInFront) {
  // Frames of what no table has: the last ones of the newest segment but for the closing seal.
  const std::string path = Segments(0).back();
  const uint64_t last = LastFrame(path);
  ASSERT_GT(last, kSegmentHeaderSize + 8 * kPageSize);
  disk_->FlipBit(path, last - 4 * kPageSize + 100, 3);
  const RepairReport listed = Repair();
  ASSERT_EQ(listed.damages.size(), 1u);
  EXPECT_EQ(listed.damages[0].file, "log-1-0");
  EXPECT_EQ(listed.damages[0].shard, 0u);
  EXPECT_THAT(listed.damages[0].reason, AllOf(HasSubstr(path), HasSubstr("F31")));
  EXPECT_GT(listed.log_records, 10u);
  EXPECT_GT(kept_, rows_.size() - 10);  // Only what came behind is lost.
  EXPECT_LT(kept_, rows_.size());
}

// covers: F35 F80
TEST_F(RepairTest, ALogWhoseNewestSegmentWasCutCostsWhatItHeldBehind) {
  const std::string path = Segments(0).back();
  const uint64_t last = LastFrame(path);
  ASSERT_GT(last, kSegmentHeaderSize + 8 * kPageSize);
  disk_->TruncateFile(path, last - 4 * kPageSize);
  const RepairReport listed = Repair();
  ASSERT_EQ(listed.damages.size(), 1u);
  EXPECT_THAT(listed.damages[0].reason, AllOf(HasSubstr(path), HasSubstr("F35")));
  EXPECT_GT(kept_, rows_.size() - 10);
  EXPECT_LT(kept_, rows_.size());
}

TEST_F(RepairTest, ALogWithALostHeadIsReadByItsFrames) {
  for (const std::string& path : Segments(1)) disk_->FlipBit(path, 20, 3);
  const RepairReport listed = Repair();
  ASSERT_EQ(listed.damages.size(), 1u);
  EXPECT_EQ(listed.damages[0].file, "log-1-1");
  EXPECT_EQ(kept_, rows_.size()) << listed.damages[0].consequence;
}

TEST_F(RepairTest, ALogThatIsGoneCostsWhatNoTableHas) {
  for (const std::string& path : disk_->ListFiles("log-1-0/")) disk_->RemoveFile(path);
  const RepairReport listed = Repair();
  ASSERT_EQ(listed.damages.size(), 1u);
  EXPECT_THAT(listed.damages[0].reason, HasSubstr("F35"));
  EXPECT_GT(kept_, rows_.size() - 61);
  EXPECT_LT(kept_, rows_.size());
}

TEST_F(RepairTest, DamageOfTheLogInFrontOfWhatIsNeededLosesNothing) {
  // The first frame of the segment that the manifest's position lies in.
  const std::string path = Segments(0).back();
  disk_->FlipBit(path, kSegmentHeaderSize + 200, 1);
  const RepairReport listed = Repair();
  ASSERT_EQ(listed.damages.size(), 1u);
  EXPECT_EQ(LostRanges(listed), 0u) << listed.damages[0].consequence;
  EXPECT_EQ(kept_, rows_.size());
}

TEST_F(RepairTest, ALostTailIsListed) {
  ASSERT_TRUE(disk_->RemoveFile("log-1-0/tail"));
  const RepairReport listed = Repair();
  ASSERT_EQ(listed.damages.size(), 1u);
  EXPECT_THAT(listed.damages[0].reason, HasSubstr("tail"));
  EXPECT_EQ(kept_, rows_.size());
}

TEST_F(RepairTest, TheTailGoesOnWhereTheLogBreaks) {
  {
    SimRuntime runtime(NextLife(), *disk_);
    auto opened = runtime.RunToEnd(Store::Open(runtime, SmallStore()));
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    // All of one partition, and so of shard 0.
    for (int i = 0; i < 5; ++i) WriteRow(runtime, **opened, 90'005 + 10 * i, DurabilityLevel::kProcess);
    for (int i = 5; i < 7; ++i) WriteRow(runtime, **opened, 90'005 + 10 * i);
    ASSERT_TRUE(runtime.RunToEnd((*opened)->Close()).ok());
  }
  disk_->FlipBit(Segments(0).back(), kSegmentHeaderSize + 200, 1);  // The first frame of that life.
  const RepairReport listed = Repair();
  ASSERT_EQ(listed.damages.size(), 1u);
  EXPECT_EQ(listed.damages[0].file, "log-1-0");
  EXPECT_GE(LostRanges(listed), 1u);
  EXPECT_GE(kept_, rows_.size() - 2);
}

TEST_F(RepairTest, ALostManifestIsMadeAnewFromTheTables) {
  for (const bool remove : {false, true}) {
    SCOPED_TRACE(remove);
    std::string path = remove ? "meta/shard-2-1" : "meta/shard-1-0";
    remove ? (void)disk_->RemoveFile(path) : disk_->FlipBit(path, 60, 2);
    const RepairReport listed = Repair();
    ASSERT_EQ(listed.damages.size(), 1u);
    EXPECT_EQ(listed.damages[0].file, path);
    EXPECT_THAT(listed.damages[0].consequence, HasSubstr("deleted may be back"));
    EXPECT_EQ(kept_, rows_.size());
  }
}

TEST_F(RepairTest, ALostCatalogIsMadeAnew) {
  for (const bool remove : {false, true}) {
    SCOPED_TRACE(remove);
    const auto before = AllFiles(*disk_);
    remove ? (void)disk_->RemoveFile("meta/catalog") : disk_->FlipBit("meta/catalog", 60, 2);
    const RepairReport listed = List();
    ASSERT_EQ(listed.damages.size(), 1u);
    EXPECT_EQ(listed.damages[0].file, "meta/catalog");
    EXPECT_THAT(listed.damages[0].consequence,
                AllOf(HasSubstr("recovered000007"), HasSubstr("deleted may be back")));
    SimRuntime runtime(NextLife(), *disk_);
    auto applied = Run(runtime, /*apply=*/true);
    ASSERT_TRUE(applied.ok()) << applied.status().ToString();
    EXPECT_EQ(disk_->FileExists(applied->kept_in + "/meta/catalog"), !remove);
    repaired_at_ = runtime.clock().WallTicks();
    ExpectSoundStore(listed, /*names_kept=*/false);
    EXPECT_EQ(kept_, rows_.size());
  }
}

// The last flush that can fail is the commit's. covers: F15
TEST_F(RepairTest, WhereTheCommitFailsMidwayTheOutcomeIsInDoubt) {
  const std::unique_ptr<SimDisk> filled = disk_->Clone();
  for (const std::string damaged : {"meta/catalog", "meta/shard-1-0"}) {
    SCOPED_TRACE(damaged);
    Code last = Code::kOk;
    for (uint64_t skip = 0;; ++skip) {
      disk_ = filled->Clone();
      disk_->FlipBit(damaged, 60, 2);
      SimRuntime runtime(NextLife(), *disk_);
      runtime.AddFault(
          {.operations = SimOps(SimOp::kFlushDirectory), .path_prefix = "meta", .skip = skip, .count = 1});
      const Code code = Run(runtime, /*apply=*/true).code();
      if (code == Code::kOk) break;
      last = code;
    }
    EXPECT_EQ(last, Code::kUnknown);
  }
}

// Of the two it is the catalog that does not belong here. covers: F66 F80
TEST_F(RepairTest, ACatalogOfAnotherStoreCountsAsLost) {
  std::string foreign;
  {
    SimDisk other(12);
    SimRuntime runtime({.seed = 77, .shards = kShards}, other);
    auto opened = runtime.RunToEnd(Store::Open(runtime, SmallStore()));
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    ASSERT_TRUE(runtime.RunToEnd((*opened)->Close()).ok());
    foreign = *other.ReadFile("meta/catalog");
  }
  const std::unique_ptr<SimDisk> filled = disk_->Clone();
  for (const bool manifests_too : {false, true}) {
    SCOPED_TRACE(manifests_too);
    disk_ = filled->Clone();
    disk_->WriteFile("meta/catalog", foreign);
    for (const std::string& path : disk_->ListFiles("meta/shard-")) {
      if (manifests_too) disk_->FlipBit(path, 60, 2);
    }
    const RepairReport listed = RepairWithoutCatalog();
    ASSERT_EQ(listed.damages.size(), manifests_too ? 1u + kShards : 1u);
    EXPECT_EQ(listed.damages[0].file, "meta/catalog");
    EXPECT_THAT(listed.damages[0].reason, HasSubstr("another store (F66)"));
    EXPECT_EQ(kept_, rows_.size());
  }
}

// By such a catalog its files seem to be leftovers, and others to be missing. covers: F80
TEST_F(RepairTest, WhatALifeHadThatAnOlderCatalogDoesNotKnowIsKept) {
  const std::string older = *disk_->ReadFile("meta/catalog");
  disk_->FlipBit("meta/shard-1-0", 60, 2);
  Repair();  // And so a new life.
  disk_->WriteFile("meta/catalog", older);
  const auto before = AllFiles(*disk_);
  SimRuntime runtime(NextLife(), *disk_);
  const auto applied = Run(runtime, /*apply=*/true);
  ASSERT_TRUE(applied.ok()) << applied.status().ToString();
  for (const auto& [path, bytes] : before) {
    if (!path.starts_with("tables/") && !path.starts_with("log-2-")) continue;
    const Result<std::string> kept = disk_->ReadFile(applied->kept_in + "/" + path);
    ASSERT_TRUE(kept.ok()) << path;
    EXPECT_EQ(*kept == bytes, true) << path;
  }
}

// Of a raw table some values may look like entities, or all.
TEST_F(RepairTest, WithoutCatalogATableIsOneOfEntitiesWhereAllItsValuesAndKeysAre) {
  const std::string entity = {1, 0}, counter = {44, 1};
  const std::unique_ptr<SimDisk> filled = disk_->Clone();
  for (const bool flushed : {false, true}) {
    disk_ = filled->Clone();
    {
      SimRuntime runtime(NextLife(), *disk_);
      auto opened = runtime.RunToEnd(Store::Open(runtime, SmallStore()));
      ASSERT_TRUE(opened.ok()) << opened.status().ToString();
      Store& store = **opened;
      for (const std::string name : {"counters", "entities", "marks"}) {
        const std::string& second = name == "counters" ? counter : entity;
        Store::TableSpec spec;
        spec.account = "default";
        spec.name = name;
        spec.raw = name != "entities";
        const Result<TableDescriptor> table = runtime.RunToEnd(store.CreateTable(std::move(spec)));
        ASSERT_TRUE(table.ok()) << table.status().ToString();
        for (const char* row : {"1", "2"}) {
          const std::string last = name == "marks" && row == std::string("2") ? "\xff" : row;
          const std::string key = EncodeUserKey(table->id, "p", last);
          WriteOp op;
          op.user_key = key;
          op.content = row == std::string("1") ? entity : second;
          WriteRequest request;
          request.table = table->id;
          request.ops = std::span<const WriteOp>(&op, 1);
          ASSERT_TRUE(runtime.RunToEnd(store.Write(request)).status.ok());
        }
      }
      if (flushed) ASSERT_TRUE(runtime.RunToEnd(store.FlushMemtables()).ok());
      ASSERT_TRUE(runtime.RunToEnd(store.Close()).ok());
    }
    disk_->RemoveFile("meta/catalog");
    SimRuntime runtime(NextLife(), *disk_);
    ASSERT_TRUE(Run(runtime, /*apply=*/true).ok());
    auto opened = runtime.RunToEnd(Store::Open(runtime, SmallStore()));
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    const Catalog catalog = (*opened)->CatalogCopy();
    for (const uint32_t id : {3, 4, 5}) {
      const TableDescriptor* table = catalog.FindTable(TableId(id));
      ASSERT_NE(table, nullptr) << id;
      EXPECT_EQ(table->raw, id != 4);
    }
    EXPECT_TRUE(runtime.RunToEnd((*opened)->Close()).ok());
  }
}

// No command would remove it.
TEST_F(RepairTest, AFileWhoseNameUsesUpAllIncarnationsIsNamed) {
  disk_->FlipBit("meta/shard-1-1", 60, 2);
  disk_->WriteFile("tables/18446744069414584320.sst", "");
  SimRuntime runtime(NextLife(), *disk_);
  const Status refused = Run(runtime, /*apply=*/true).status();
  EXPECT_EQ(refused.code(), Code::kUnsupported);
  EXPECT_THAT(refused.message(), testing::HasSubstr("tables/18446744069414584320.sst"));
  disk_->RemoveFile("tables/18446744069414584320.sst");
  EXPECT_TRUE(Run(runtime, /*apply=*/true).ok());
}

TEST_F(RepairTest, WithoutCatalogAFileNamedForAShardThatNoStoreHasCountsForNothing) {
  disk_->FlipBit("meta/catalog", 60, 2);
  disk_->WriteFile("meta/shard-1-4294967294", "stray");
  disk_->WriteFile("meta/shard-1-4294967295", "stray");
  const RepairReport listed = RepairWithoutCatalog();
  EXPECT_EQ(listed.shards, kShards);
  EXPECT_EQ(kept_, rows_.size());
}

TEST_F(RepairTest, WithoutCatalogAndManifestAllIsFoundAgain) {
  disk_->FlipBit("meta/catalog", 60, 2);
  disk_->FlipBit("meta/shard-1-1", 60, 2);
  const RepairReport listed = List();
  EXPECT_EQ(listed.damages.size(), 2u);
  {
    SimRuntime runtime(NextLife(), *disk_);
    auto applied = Run(runtime, /*apply=*/true);
    ASSERT_TRUE(applied.ok()) << applied.status().ToString();
    repaired_at_ = runtime.clock().WallTicks();
  }
  ExpectSoundStore(listed, /*names_kept=*/false);
  EXPECT_EQ(kept_, rows_.size());
}

// What a range brings along has versions of its old owner's, older than what its new owner flushed last.
// covers: F80
TEST_F(RepairTest, OfARangeThatMovedALostLogCostsWhatItBroughtAlong) {
  const ShardId to = MoveSecondPartition(0);
  for (const std::string& path : disk_->ListFiles("log-1-" + std::to_string(to.value) + "/")) {
    disk_->RemoveFile(path);
  }
  Repair();
  EXPECT_LT(kept_, rows_.size());
  EXPECT_GT(kept_, rows_.size() / 3);
}

// Its new owner had flushed newer writes of a range that it is joined to. covers: F80
TEST_F(RepairTest, OfARangeThatMovedAndWasMergedALostLogCostsWhatItBroughtAlong) {
  const std::string first = EncodeUserKey(TableId(1), "p0", ""), second = EncodeUserKey(TableId(1), "p1", "");
  ShardId to;
  {
    SimRuntime runtime(NextLife(), *disk_);
    auto opened = runtime.RunToEnd(Store::Open(runtime, SmallStore()));
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    Store& store = **opened;
    to = store.CatalogCopy().FindRange(first)->owner;
    ASSERT_NE(store.CatalogCopy().FindRange(second)->owner, to);
    for (int i = 10'001; i < 10'100; i += 2) WriteRow(runtime, store, i);  // To p1,
    for (int i = 10'002; i < 10'100; i += 2) WriteRow(runtime, store, i);  // and then to p0.
    ASSERT_TRUE(runtime.RunToEnd(store.MoveRange(second, to)).ok());
    ASSERT_TRUE(runtime.RunToEnd(store.MergeRanges(second)).ok());
    ASSERT_TRUE(runtime.RunToEnd(store.Close()).ok());
  }
  for (const std::string& path : disk_->ListFiles("log-1-" + std::to_string(to.value) + "/")) {
    disk_->RemoveFile(path);
  }
  Repair();
  EXPECT_LT(kept_, rows_.size());
}

// Level 0 is ordered by version, and what was flushed later must be in front. covers: F80
TEST_F(RepairTest, WhatARangeBroughtAlongIsFlushedAsNewerThanItsOwnersFiles) {
  const ShardId to = MoveSecondPartition(-1);
  const auto newest_of = [&] {
    const std::string key = ManifestKey(1, to), path = "meta/" + key;
    const auto value = DecodeMeta(key, path, *disk_->ReadFile(path));
    EXPECT_TRUE(value.ok()) << value.status().ToString();
    const auto manifest = DecodeManifest(value->value.bytes);
    EXPECT_TRUE(manifest.ok()) << manifest.status().ToString();
    return *std::max_element(manifest->files.begin(), manifest->files.end(),
                             [](const FileMeta& a, const FileMeta& b) { return a.info->id < b.info->id; });
  };
  const Version before = newest_of().info->version_max;
  SimRuntime runtime(NextLife(), *disk_);
  auto opened = runtime.RunToEnd(Store::Open(runtime, SmallStore()));
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  ASSERT_TRUE(runtime.RunToEnd((*opened)->FlushMemtables()).ok());
  ASSERT_TRUE(runtime.RunToEnd((*opened)->Close()).ok());
  EXPECT_GT(newest_of().info->version_max, before);
}

// Both faults are listed: without the catalog manifests may not say what counts, but do say what there was.
// covers: F35 F53
TEST_F(RepairTest, WithoutCatalogATableThatIsGoneIsListedThoughItsManifestDoesNotCount) {
  (void)MoveSecondPartition(4000);
  disk_->FlipBit("meta/catalog", 60, 2);
  const std::string gone = TablesBySize().front();
  ASSERT_TRUE(disk_->RemoveFile(gone));
  const RepairReport listed = RepairWithoutCatalog();
  EXPECT_TRUE(std::any_of(listed.damages.begin(), listed.damages.end(),
                          [&](const RepairDamage& damage) { return damage.file == gone; }));
  EXPECT_LT(kept_, rows_.size());
}

// Its old owner's log tells of the range, too, and which of the two is right only the catalog knew. covers:
// F80
TEST_F(RepairTest, WithoutCatalogTwoLogsThatTellOfAKeyAreMergedByVersion) {
  const std::unique_ptr<SimDisk> filled = disk_->Clone();
  const RowsByKey rows = rows_;
  for (const bool back : {false, true}) {
    SCOPED_TRACE(back);
    disk_ = filled->Clone();
    rows_ = rows;
    (void)MoveSecondPartition(4000);
    if (back) (void)MoveSecondPartition(4000);
    disk_->FlipBit("meta/catalog", 60, 2);
    RepairWithoutCatalog();
    EXPECT_EQ(kept_, rows_.size());
  }
}

// A table file of two shards, as a range of one of them has moved, whose new manifest is lost. covers: F80
TEST_F(RepairTest, AMovedRangeLosesWhatItsOldShardsTableLost) {
  const std::string moved = EncodeUserKey(TableId(2), "p1", "");
  ShardId from;
  {
    SimRuntime runtime(NextLife(), *disk_);
    auto opened = runtime.RunToEnd(Store::Open(runtime, SmallStore()));
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    Store& store = **opened;
    ASSERT_TRUE(runtime.RunToEnd(store.CompactAll()).ok());
    from = store.CatalogCopy().FindRange(moved)->owner;
    ASSERT_TRUE(runtime.RunToEnd(store.SplitRange(moved)).ok());
    ASSERT_TRUE(runtime.RunToEnd(store.MoveRange(moved, ShardId(1 - from.value))).ok());
    ASSERT_TRUE(runtime.RunToEnd(store.Close()).ok());
  }
  disk_->FlipBit("meta/" + ManifestKey(1, ShardId(1 - from.value)), 60, 2);
  // A sound file of both is found again for both.
  std::unique_ptr<SimDisk> again = disk_->Clone();
  Repair();
  EXPECT_EQ(kept_, rows_.size());
  disk_ = std::move(again);
  const std::string path = "meta/" + ManifestKey(1, from);
  const auto value = DecodeMeta(ManifestKey(1, from), path, *disk_->ReadFile(path));
  ASSERT_TRUE(value.ok()) << value.status().ToString();
  const auto manifest = DecodeManifest(value->value.bytes);
  ASSERT_TRUE(manifest.ok()) << manifest.status().ToString();
  for (const ObjectId id : manifest->Objects()) {
    const std::string table = ObjectPath(id);
    disk_->FlipBit(table, disk_->ReadFile(table)->size() - 20, 2);  // The footer.
  }
  Repair();
  EXPECT_LT(kept_, rows_.size());
}

TEST_F(RepairTest, ATableThatDoesNotOpenIsLostWithItsKeys) {
  const std::string path = TablesBySize().front();
  disk_->FlipBit(path, disk_->ReadFile(path)->size() - 20, 2);  // The footer.
  const RepairReport listed = Repair();
  ASSERT_EQ(listed.damages.size(), 1u);
  EXPECT_EQ(listed.damages[0].file, path);
  EXPECT_THAT(listed.damages[0].consequence, HasSubstr("does not open"));
  ASSERT_GE(listed.damages[0].lost.size(), 1u);
  EXPECT_THAT(listed.damages[0].lost[0].table, testing::AnyOf("rows", "others"));
  EXPECT_GT(kept_, rows_.size() / 3);
}

TEST_F(RepairTest, ATableThatIsGoneIsLostWithItsKeys) {
  const std::string path = TablesBySize().back();
  disk_->RemoveFile(path);
  const RepairReport listed = Repair();
  ASSERT_EQ(listed.damages.size(), 1u);
  EXPECT_THAT(listed.damages[0].reason, HasSubstr("F35"));
  EXPECT_GE(listed.damages[0].lost.size(), 1u);
}

TEST_F(RepairTest, ATableWithADamagedBlockKeepsItsOthers) {
  const std::string path = TablesBySize().front();
  disk_->FlipBit(path, 1000, 2);  // Within the first block.
  const RepairReport listed = Repair();
  ASSERT_EQ(listed.damages.size(), 1u);
  EXPECT_THAT(listed.damages[0].consequence, HasSubstr("written anew"));
  ASSERT_EQ(listed.damages[0].lost.size(), 1u);
  EXPECT_LT(kept_, rows_.size());
  EXPECT_GT(kept_, rows_.size() / 3);
}

// F51: whether its table stays as it is or all are merged, as when the manifests are lost.
TEST_F(RepairTest, AValueThatRottedBeforeItWasSealedIsListedAndLeftOut) {
  StoreId store;
  {
    SimRuntime runtime(NextLife(), *disk_);
    store = **runtime.RunToEnd(ReadStoreId(runtime.files()));
  }
  const std::unique_ptr<SimDisk> sound = disk_->Clone();
  size_t found = 0;
  for (const std::string& path : sound->ListFiles("tables/")) {
    for (bool manifests_lost : {false, true}) {
      disk_ = sound->Clone();
      RotASealedValue(*disk_, store, path);
      if (manifests_lost) {
        for (const char* manifest : {"meta/shard-1-0", "meta/shard-1-1"}) disk_->FlipBit(manifest, 60, 2);
      }
      const RepairReport listed = List();
      const auto names_it = [](const RepairDamage& damage) {
        return damage.reason.find("(F51)") != std::string::npos;
      };
      if (std::none_of(listed.damages.begin(), listed.damages.end(), names_it)) continue;
      ++found;
      Repair();
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(found, 2u);
}

// The value that begins so has another byte, and the seals from there on are right.
bool RotALoggedValue(SimDisk& disk, std::string_view begin) {
  for (const std::string& path : disk.ListFiles("log-1-")) {
    if (!path.ends_with(".log")) continue;
    std::string content = *disk.ReadFile(path);
    const auto segment = DecodeSegmentHeader(std::string_view(content).substr(0, kSegmentHeaderSize));
    if (!segment.ok()) continue;
    std::optional<uint64_t> previous_seal;
    ParsedFrame frame;
    for (uint64_t at = kSegmentHeaderSize; at < content.size(); at += frame.size) {
      const std::string_view rest = std::string_view(content).substr(at);
      if (ParseFrame(segment->owner, at, rest, &frame) != FrameCheck::kValid) break;
      if (frame.header.segment != segment->header.segment) break;
      FrameHeader header = frame.header;
      const size_t found = frame.payload.find(begin);
      if (!previous_seal && found == frame.payload.npos) continue;
      if (previous_seal) {
        header.previous_seal = *previous_seal;
      } else {
        content[at + kFrameHeaderSize + found + begin.size()] ^= 1;
      }
      const std::span<uint8_t> bytes(reinterpret_cast<uint8_t*>(content.data()) + at, frame.size);
      previous_seal = SealFrame(segment->owner, at, header, bytes);
    }
    if (!previous_seal) continue;
    disk.WriteFile(path, content);
    return true;
  }
  return false;
}

// covers: F51 F53
TEST_F(RepairTest, AValueThatRottedBeforeItsLogFrameWasSealedIsListedAndLeftOut) {
  ASSERT_TRUE(RotALoggedValue(*disk_, "1553xx"));
  const RepairReport listed = Repair();
  ASSERT_EQ(listed.damages.size(), 1u);
  EXPECT_EQ(listed.damages[0].file.substr(0, 6), "log-1-");
  EXPECT_THAT(listed.damages[0].reason, AllOf(HasSubstr("log record"), HasSubstr("(F51)")));
  EXPECT_EQ(LostRanges(listed), 1u);
  EXPECT_EQ(kept_, rows_.size() - 1);
}

// Every seal of it is right, and so is its name. covers: F41
TEST_F(RepairTest, AFileOfACopyThatWentOnByItselfIsAnother) {
  const std::unique_ptr<SimDisk> copy = disk_->Clone();
  const RowsByKey rows = rows_;
  const auto go_on = [&](SimDisk& disk, int first) {
    SimRuntime runtime(NextLife(), disk);
    auto opened = runtime.RunToEnd(Store::Open(runtime, SmallStore()));
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    for (int i = first; i < first + 60; ++i) WriteRow(runtime, **opened, i);
    ASSERT_TRUE(runtime.RunToEnd((*opened)->FlushMemtables()).ok());
    ASSERT_TRUE(runtime.RunToEnd((*opened)->Close()).ok());
  };
  go_on(*copy, 20'000);
  rows_ = rows;
  go_on(*disk_, 30'100);
  std::string path;
  for (const std::string& table : disk_->ListFiles("tables/")) {
    if (copy->FileExists(table) && *copy->ReadFile(table) != *disk_->ReadFile(table)) path = table;
  }
  ASSERT_FALSE(path.empty());
  disk_->WriteFile(path, *copy->ReadFile(path));
  {
    SimRuntime runtime(NextLife(), *disk_);
    auto opened = runtime.RunToEnd(Store::Open(runtime, SmallStore()));
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    size_t refused = 0;
    for (const auto& [key, row] : rows_) {
      std::string content;
      const auto read = runtime.RunToEnd((*opened)->Get(key, &content));
      if (!read.ok()) {
        ++refused;
        EXPECT_THAT(read.status().message(), AllOf(HasSubstr(path), HasSubstr("(F41)")));
        continue;
      }
      EXPECT_EQ(read->state == Shard::ReadState::kFound, row.content.has_value());
      if (row.content) EXPECT_EQ(content, *row.content);
    }
    EXPECT_GT(refused, 0u);
    const auto scrubbed = runtime.RunToEnd((*opened)->Scrub({}));
    ASSERT_TRUE(scrubbed.ok()) << scrubbed.status().ToString();
    EXPECT_THAT(scrubbed->damages, testing::ElementsAre(AllOf(HasSubstr(path), HasSubstr("(F41)"))));
    EXPECT_TRUE(runtime.RunToEnd((*opened)->Close()).ok());
  }
  const RepairReport listed = Repair();
  ASSERT_EQ(listed.damages.size(), 1u);
  EXPECT_EQ(listed.damages[0].file, path);
  EXPECT_THAT(listed.damages[0].consequence, HasSubstr("another file"));
  EXPECT_GE(listed.damages[0].lost.size(), 1u);
}

TEST_F(RepairTest, SeveralDamagesAreRepairedTogether) {
  const std::vector<std::string> tables = TablesBySize();
  disk_->FlipBit(tables[0], 1000, 2);
  disk_->FlipBit(tables[1], disk_->ReadFile(tables[1])->size() - 20, 2);
  disk_->FlipBit("meta/shard-1-1", 60, 2);
  for (const std::string& path : Segments(0)) disk_->FlipBit(path, kSegmentHeaderSize + 200, 1);
  const RepairReport listed = Repair();
  EXPECT_GE(listed.damages.size(), 4u);
  EXPECT_GT(kept_, 0u);
}

TEST_F(RepairTest, EveryByteOfTheMetaFilesMayRot) {
  for (const std::string path : {"meta/catalog", "meta/shard-1-0"}) {
    const std::string content = *disk_->ReadFile(path);
    for (size_t at = 0; at < content.size(); at += 7) {
      disk_->FlipBit(path, at, at % 8);
      SimRuntime runtime(NextLife(), *disk_);
      auto report = Run(runtime, /*apply=*/false);
      disk_->FlipBit(path, at, at % 8);
      // A format that seems to be newer is left to the newer version (F66).
      if (report.code() == Code::kUnsupported) continue;
      ASSERT_TRUE(report.ok()) << report.status().ToString();
      EXPECT_FALSE(report->damages.empty()) << path << " " << at;
    }
  }
}

TEST_F(RepairTest, RefusesWhatIsNoStoreAndAStoreInUse) {
  SimDisk empty(3);
  {
    SimRuntime runtime({.seed = 1, .shards = 1}, empty);
    RepairWorld world{.files = runtime.files(), .clock = runtime.clock()};
    EXPECT_EQ(runtime.RunToEnd(RepairStore(world, RepairOptions())).code(), Code::kNotFound);
  }
  EXPECT_THAT(empty.ListFiles(), IsEmpty());
  SimRuntime holder(NextLife(), *disk_);
  auto opened = holder.RunToEnd(Store::Open(holder, SmallStore()));
  ASSERT_TRUE(opened.ok());
  SimRuntime runtime(NextLife(), *disk_);
  EXPECT_EQ(Run(runtime, /*apply=*/false).code(), Code::kLocked);
  EXPECT_EQ(Run(runtime, /*apply=*/true).code(), Code::kLocked);
  EXPECT_TRUE(holder.RunToEnd((*opened)->Close()).ok());
}

// Up to the commit: what it has written by then is left over.
TEST_F(RepairTest, IsToldOfBeforeItChangesAnythingAndCanStillBeStopped) {
  disk_->FlipBit("meta/shard-1-0", 60, 2);
  const std::string catalog = *disk_->ReadFile("meta/catalog");
  bool told = false;
  {
    SimRuntime runtime(NextLife(), *disk_);
    const auto before = AllFiles(*disk_);
    RepairWorld world{.files = runtime.files(), .clock = runtime.clock(), .account = "default"};
    RepairOptions options;
    options.apply = true;
    options.found = [&](const RepairReport& report) {
      told = true;
      EXPECT_EQ(report.damages.size(), 1u);
      EXPECT_FALSE(report.applied);
      EXPECT_EQ(AllFiles(*disk_), before);
    };
    options.pace.progress = [&](uint64_t, uint64_t) { return !told; };
    EXPECT_EQ(runtime.RunToEnd(RepairStore(std::move(world), options)).code(), Code::kCancelled);
  }
  EXPECT_TRUE(told);
  EXPECT_EQ(*disk_->ReadFile("meta/catalog"), catalog);
  Repair();
  EXPECT_EQ(kept_, rows_.size());
}

// covers: F35. Then all that manifests name is lost; the log is not.
TEST_F(RepairTest, OfAStoreWithoutItsTablesTheLogIsKept) {
  for (const std::string& path : disk_->ListFiles("tables/")) ASSERT_TRUE(disk_->RemoveFile(path));
  const RepairReport listed = Repair();
  EXPECT_GE(listed.damages.size(), 2u);
  EXPECT_GT(listed.log_records, 20u);
}

TEST_F(RepairTest, WithoutAnyMetaFileTheStoreIsFoundByItsLogsAndTables) {
  for (const std::string& path : disk_->ListFiles("meta/")) ASSERT_TRUE(disk_->RemoveFile(path));
  const RepairReport listed = RepairWithoutCatalog();
  EXPECT_EQ(listed.damages.size(), 1u + kShards);
  EXPECT_EQ(kept_, rows_.size());
}

// covers: F80. It has no name any more, as all that told of it is gone.
TEST_F(RepairTest, ATableOfWhichNothingIsLeftBesideTheCatalogIsListed) {
  {
    SimRuntime runtime(NextLife(), *disk_);
    auto opened = runtime.RunToEnd(Store::Open(runtime, SmallStore()));
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    ASSERT_TRUE(runtime.RunToEnd((*opened)->FlushMemtables()).ok());
    ASSERT_TRUE(runtime.RunToEnd((*opened)->Close()).ok());
  }
  disk_->FlipBit("meta/catalog", 60, 2);
  for (const std::string& path : disk_->ListFiles("tables/")) ASSERT_TRUE(disk_->RemoveFile(path));
  for (const std::string& path : disk_->ListFiles("log-1-0/")) ASSERT_TRUE(disk_->RemoveFile(path));
  for (const std::string& path : disk_->ListFiles("log-1-1/")) ASSERT_TRUE(disk_->RemoveFile(path));
  const RepairReport listed = List();
  for (const auto& [key, row] : rows_) ASSERT_TRUE(MayBeLost(listed, key, row.version));
}

TEST_F(RepairTest, StopsWhenItIsAskedTo) {
  disk_->FlipBit(TablesBySize().front(), 1000, 2);
  const auto before = AllFiles(*disk_);
  SimRuntime runtime(NextLife(), *disk_);
  RepairWorld world{.files = runtime.files(), .clock = runtime.clock()};
  RepairOptions options;
  options.apply = true;
  options.pace.progress = [](uint64_t, uint64_t) { return false; };
  EXPECT_EQ(runtime.RunToEnd(RepairStore(std::move(world), options)).code(), Code::kCancelled);
  EXPECT_EQ(AllFiles(*disk_), before);
}

}  // namespace
}  // namespace partita
