#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "compaction/level_targets.h"
#include "engine/base/checksum.h"
#include "engine/io/local_meta_store.h"
#include "engine/io/local_object_store.h"
#include "engine/io/meta_format.h"
#include "engine/manifest.h"
#include "sstable/level_set.h"
#include "sstable/table_iterator.h"
#include "sstable/table_reader.h"
#include "test/engine/range_fixture.h"
#include "test/support/sealed_rot.h"
#include "test/support/slowdown.h"

// Ranges that are merged as one (plan_batch.h), of which some are not the same any more when the outputs are
// installed: those keep what they have, the others get what was written. covers: F25

namespace partita {
namespace {

// Two shards. On one of them four ranges: a table in front, and of the table of rows partitions 0 and 1, 2
// and 3, 4 and 5. Each lacks one flush until level 0 is merged.
class BatchStore : public RangeTest {
 public:
  static constexpr uint32_t kHomes = 2;
  static constexpr int kFrontRows = 5;
  static constexpr int kDeletedLast = 2;   // A row of some partitions, and not before.
  static constexpr int kOnce = kRows - 1;  // A row of each partition, written once.

  explicit BatchStore(uint64_t seed) : RangeTest(seed), random_(seed) {}
  BatchStore(const BatchStore& other)
      : RangeTest(*other.disk_), front_(other.front_), front_round_(other.front_round_) {
    lives_ = other.lives_;
    table_ = other.table_;
    rows_ = other.rows_;
  }
  // Rows that have blocks of their own.
  void MakeRowsLarge() {
    content_bytes_ = 3000;
    memtable_data_bytes_ = 4u << 20;
  }

  void Make() {
    ASSERT_TRUE(Open(kHomes).ok());
    for (const char* name : {"front", "elsewhere"}) {
      Store::TableSpec spec{.account = "default", .name = name, .raw = true, .split_partitions = {}};
      const Result<TableDescriptor> made = runtime_->RunToEnd(store_->CreateTable(std::move(spec)));
      ASSERT_TRUE(made.ok());
      if (front_.value == 0) front_ = made->id;
    }
    MakeTable();
    for (const int partition : {2, 4}) ASSERT_TRUE(Split(partition).ok());
    ASSERT_EQ(store_->CatalogCopy().FindRange(TableLowerBound(front_))->owner, ShardId(kHome));
    ASSERT_EQ(OwnerOf(0), ShardId(kHome));
    for (int p = 0; p < kPartitions; ++p) {
      for (int r = 0; r < kRows; ++r) ASSERT_TRUE(Put(p, r, Next()).ok());
    }
    PutFront();
    Flush();
    for (uint32_t flush = 2; flush < kLevel0DepthCalm; ++flush) {
      for (int change = 0; change < 30; ++change) ChangeRow();
      for (const int partition : {0, 2, 4}) ASSERT_TRUE(Put(partition, 0, Next()).ok());
      PutFront();
      Flush();
    }
    ASSERT_EQ(Home().compactions, 0u);
    ASSERT_TRUE(Close().ok());
  }

  // Overwrites and deletes in each range, the last that it lacks.
  bool WriteLastRound() {
    for (const int partition : {0, 3, 5}) {
      if (!Put(partition, 1, "last").ok() || !Delete(partition, kDeletedLast).ok()) return false;
    }
    return PutFront();
  }
  // With that it is due; the merge begins, whose reads last until FinishMerge.
  bool BeginMerge() {
    if (!WriteLastRound()) return false;
    if (!runtime_->RunToEnd(store_->FlushMemtables()).ok()) return false;
    const size_t slow = SlowReads();
    runtime_->AdvanceTime(kMergeNanos / 4);
    runtime_->RemoveFault(slow);
    return Home().compactions == 0;
  }
  // What is due next does not end before Settle.
  bool FinishMerge() {
    const size_t slow = SlowReads();
    for (int i = 0; i < 200 && Home().compactions == 0 && !runtime_->crashed(); ++i)
      runtime_->AdvanceTime(kMergeNanos / 4);
    runtime_->RemoveFault(slow);
    return Home().compactions > 0;
  }
  void Settle() {
    ASSERT_TRUE(runtime_->RunToEnd(store_->FlushMemtables()).ok());
    Compact();
    runtime_->AdvanceTime(kMergeNanos);
  }

  bool PutFront() {
    for (int row = 0; row < kFrontRows; ++row) {
      const std::string key = FrontKey(row), content = FrontContent(front_round_ + 1);
      const WriteOp op{.user_key = key, .content = content};
      const WriteRequest request{.table = front_, .ops = {&op, 1}};
      if (!runtime_->RunToEnd(store_->Write(request)).status.ok()) return false;
    }
    ++front_round_;
    return true;
  }
  std::string FrontKey(int row) const { return EncodeUserKey(front_, "p", std::to_string(row)); }
  bool DropFront() {
    if (!runtime_->RunToEnd(store_->DeleteTable("default", "front")).ok()) return false;
    front_dropped_ = true;
    return true;
  }
  // All of the last round, unless the table was dropped; it is whole or gone where nobody was told.
  void ExpectFrontRows() {
    const bool is_there = store_->CatalogCopy().FindRange(TableLowerBound(front_)) != nullptr;
    ASSERT_FALSE(front_dropped_ && is_there);
    for (int row = 0; is_there && row < kFrontRows; ++row) {
      std::string content;
      const auto answer = runtime_->RunToEnd(store_->Get(FrontKey(row), &content));
      ASSERT_TRUE(answer.ok()) << answer.status().ToString();
      ASSERT_EQ(answer->state, Shard::ReadState::kFound);
      ASSERT_EQ(content, FrontContent(front_round_));
    }
  }

  ShardStatistics Home() { return store_->Statistics()[kHome]; }
  // The references on disk of all shards.
  std::vector<FileMeta> References() const {
    std::vector<FileMeta> files;
    for (uint32_t shard = 0; shard < kHomes; ++shard) {
      const std::string key = ManifestKey(1, ShardId(shard)), path = "meta/" + key;
      const Result<Manifest> manifest =
          DecodeManifest(DecodeMeta(key, path, *disk_->ReadFile(path))->value.bytes);
      EXPECT_TRUE(manifest.ok());
      if (manifest.ok()) files.insert(files.end(), manifest->files.begin(), manifest->files.end());
    }
    return files;
  }
  std::vector<FileMeta> ReferencesOfRange(const std::string& key) const {
    const Catalog catalog = store_->CatalogCopy();
    const RangeDescriptor* range = catalog.FindRange(key);
    std::vector<FileMeta> files = References();
    std::erase_if(files, [range](const FileMeta& file) {
      return !IsInKeyRange(file.lower, range->lower, range->upper);
    });
    return files;
  }
  // Every file is referred to, and every one referred to is there; all are sound but for those that are known
  // to be damaged.
  void ExpectNoFileTooMuchOrTooFew(std::vector<std::string> damaged = {}) {
    std::set<std::string> named;
    for (const FileMeta& file : References()) named.insert(ObjectPath(file.info->id));
    const std::vector<std::string> there = disk_->ListFiles("tables/");
    EXPECT_EQ(std::set<std::string>(there.begin(), there.end()), named);
    const auto verified = runtime_->RunToEnd(store_->Verify({}));
    ASSERT_TRUE(verified.ok()) << verified.status().ToString();
    ASSERT_EQ(verified->damages.size(), damaged.size());
    for (size_t i = 0; i < damaged.size(); ++i)
      EXPECT_THAT(verified->damages[i], testing::HasSubstr(damaged[i]));
  }

  static constexpr uint32_t kHome = 1, kAway = 0;

 private:
  static constexpr uint64_t kMergeNanos = 40'000'000'000;

  size_t SlowReads() {
    return runtime_->AddFault({.effect = SimEffect::kSlow,
                               .operations = SimOps(SimOp::kRead),
                               .path_prefix = "tables/",
                               .delay_ns = kMergeNanos});
  }
  void Flush() { ASSERT_TRUE(runtime_->RunToEnd(store_->FlushMemtables()).ok()); }
  // Nothing compresses what is added.
  std::string Large(std::string text) const {
    std::mt19937_64 random(Hash64(text));
    while (text.size() < content_bytes_) text.push_back(static_cast<char>(random()));
    return text;
  }
  std::string FrontContent(int round) const { return Large("round " + std::to_string(round)); }
  std::string Next() { return Large("value " + std::to_string(++values_)); }
  void ChangeRow() {
    const int partition = static_cast<int>(random_() % kPartitions),
              row = static_cast<int>(random_() % kOnce);
    if (row != kDeletedLast && rows_.contains(Key(partition, row)) && random_() % 3 == 0) {
      ASSERT_TRUE(Delete(partition, row).ok());
    } else {
      ASSERT_TRUE(Put(partition, row, Next()).ok());
    }
  }

  std::mt19937_64 random_{1};
  TableId front_{0};
  int front_round_ = 0;
  bool front_dropped_ = false;
  int values_ = 0;
  size_t content_bytes_ = 0;
};

// What becomes of ranges while they are merged, as far as nothing fails.
struct BatchChange {
  const char* name;
  bool (*make)(BatchStore& store);
  std::set<int> partitions;  // Whose range is another then.
};
void PrintTo(const BatchChange& change, std::ostream* out) { *out << change.name; }

bool ThereAndBackWithOtherRows(BatchStore& store) {
  if (!store.Move(2, BatchStore::kAway).ok() || !store.Put(2, 0, "away").ok() || !store.Delete(3, 1).ok())
    return false;
  return store.runtime_->RunToEnd(store.store_->FlushMemtables()).ok() &&
         store.Move(2, BatchStore::kHome).ok() && store.Delete(2, 1).ok();
}

const BatchChange kBatchChanges[] = {
    {"nothing", [](BatchStore&) { return true; }, {}},
    {"split", [](BatchStore& store) { return store.Split(3).ok(); }, {2, 3}},
    {"joined", [](BatchStore& store) { return store.Merge(4).ok(); }, {2, 3, 4, 5}},
    {"split and joined",
     [](BatchStore& store) { return store.Split(3).ok() && store.Merge(3).ok(); },
     {2, 3}},
    {"moved", [](BatchStore& store) { return store.Move(2, BatchStore::kAway).ok(); }, {2, 3}},
    {"there and back", &ThereAndBackWithOtherRows, {2, 3}},
    {"dropped", [](BatchStore& store) { return store.DropFront(); }, {}},
    {"all",
     [](BatchStore& store) {
       return store.Move(0, BatchStore::kAway).ok() && store.Split(3).ok() && store.Split(5).ok() &&
              store.DropFront();
     },
     {0, 1, 2, 3, 4, 5}},
};

class CompactionBatchTest : public testing::TestWithParam<BatchChange> {};

TEST_P(CompactionBatchTest, WhatIsNotTheSameAnyMoreKeepsItsFilesAndTheOthersGetTheOutputs) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    BatchStore store(seed);
    ASSERT_NO_FATAL_FAILURE(store.Make());
    ASSERT_TRUE(store.Open(BatchStore::kHomes).ok());
    ASSERT_TRUE(store.BeginMerge());
    std::set<ObjectId> inputs;
    for (const FileMeta& file : store.References()) inputs.insert(file.info->id);
    ASSERT_TRUE(GetParam().make(store));
    ASSERT_TRUE(store.FinishMerge());
    std::set<ObjectId> outputs;
    for (int partition = 0; partition < BatchStore::kPartitions; ++partition) {
      if (GetParam().partitions.contains(partition)) continue;
      for (const FileMeta& file : store.ReferencesOfRange(store.Bound(partition))) {
        EXPECT_EQ(file.level, kLevels - 1);
        outputs.insert(file.info->id);
      }
    }
    EXPECT_EQ(outputs.size(), GetParam().partitions.size() == BatchStore::kPartitions ? 0u : 1u);
    for (const int partition : GetParam().partitions) {
      for (const FileMeta& file : store.ReferencesOfRange(store.Bound(partition)))
        EXPECT_FALSE(outputs.contains(file.info->id));
    }
    store.ExpectNoFileTooMuchOrTooFew();
    store.ExpectRows("installed");
    store.ExpectFrontRows();
    ASSERT_NO_FATAL_FAILURE(store.Settle());
    store.ExpectRows("all merged");
    store.ExpectFrontRows();
    store.ExpectNoFileTooMuchOrTooFew();
    for (const FileMeta& file : store.References()) EXPECT_FALSE(inputs.contains(file.info->id));
    store.LosePower();
    ASSERT_TRUE(store.Open(BatchStore::kHomes).ok());
    store.ExpectRows("opened again");
    store.ExpectFrontRows();
    store.ExpectNoFileTooMuchOrTooFew();
    ASSERT_TRUE(store.Close().ok());
    if (HasFailure()) return;
  }
}

// Crashed after each disk operation from the change of the ranges to the end of the merge.
TEST_P(CompactionBatchTest, ACrashAtAnyStepLosesNothingAndLeavesNoFile) {
  BatchStore first(5);
  ASSERT_NO_FATAL_FAILURE(first.Make());
  uint64_t steps = 0;
  for (bool ended = false; !ended; steps += kSlowdown) {
    SCOPED_TRACE("step " + std::to_string(steps));
    BatchStore copy(first);
    ASSERT_TRUE(copy.Open(BatchStore::kHomes).ok());
    ASSERT_TRUE(copy.BeginMerge());
    copy.runtime_->CrashAtOperation(copy.runtime_->operations_completed() + 1 + steps,
                                    SimCrashMoment::kAfter);
    ended = GetParam().make(copy) && copy.FinishMerge() && !copy.runtime_->crashed();
    copy.Crash(/*power=*/steps / kSlowdown % 2 == 0);
    ASSERT_TRUE(copy.Open(BatchStore::kHomes).ok());
    copy.AskForUnanswered();
    copy.ExpectRows("after the crash");
    copy.ExpectFrontRows();
    ASSERT_NO_FATAL_FAILURE(copy.Settle());
    copy.ExpectRows("all merged");
    copy.ExpectFrontRows();
    copy.ExpectNoFileTooMuchOrTooFew();
    ASSERT_TRUE(copy.Close().ok());
    if (HasFailure()) return;
  }
  EXPECT_GT(steps, 10u);
}

INSTANTIATE_TEST_SUITE_P(Changes, CompactionBatchTest, testing::ValuesIn(kBatchChanges));

// ---- A slice that is damaged.

enum class RowDamage : uint8_t {
  kUnreadable,        // Of its block.
  kRotBeforeSealing,  // Of its value: the block is as it was written (F51).
};

// In the oldest file, of which all ranges have a slice. Gives its path. REQUIRES: the store is closed.
std::string DamageARow(BatchStore& store, const std::string& key, RowDamage damage) {
  const std::string path = store.disk_->ListFiles("tables/").front();
  uint64_t offset = 0;
  StoreId id;
  {
    SimRuntime runtime({.seed = 1}, *store.disk_);
    id = **runtime.RunToEnd(ReadStoreId(runtime.files()));
    const auto objects = runtime.RunToEnd(LocalObjectStore::Open(runtime.files(), IfMissing::kFail));
    BlockCache cache(1 << 20);
    const auto table = runtime.RunToEnd(
        TableReader::Open(**objects, cache, id, *ParseObjectName(path.substr(path.find('/') + 1))));
    const auto at = (*table)->NewIterator(Direction::kForward);
    at->Seek(key);
    while (at->state() == IterState::kNeedsIo) EXPECT_TRUE(runtime.RunToEnd(at->Fetch()).ok());
    EXPECT_EQ(at->entry().user_key, key);
    EXPECT_TRUE(at->AtBlockStart());
    offset = at->block_key().offset;
  }
  if (damage == RowDamage::kUnreadable) {
    store.disk_->FlipBit(path, offset + kPartHeaderSize + 100, 3);
  } else {
    RotASealedValue(*store.disk_, id, path, offset);
  }
  return path;
}

class DamagedBatchTest : public testing::TestWithParam<RowDamage> {};

// covers: F22 F46 F48 F51. The first, one amid, and the last range of the batch.
TEST_P(DamagedBatchTest, TheOtherRangesAreMergedAndTheFileIsNamed) {
  for (const int partition : {0, 3, 5}) {
    SCOPED_TRACE(partition);
    BatchStore store(3);
    store.MakeRowsLarge();
    ASSERT_NO_FATAL_FAILURE(store.Make());
    const std::string key = store.Key(partition, BatchStore::kOnce);
    const std::string path = DamageARow(store, key, GetParam());
    const ObjectId file = *ParseObjectName(path.substr(path.find('/') + 1));
    ASSERT_TRUE(store.Open(BatchStore::kHomes).ok());
    ASSERT_TRUE(store.WriteLastRound());
    // The first try may be its own, or one in the background.
    int failed = 0;
    while (failed < 5 && !store.runtime_->RunToEnd(store.store_->CompactAll()).ok()) ++failed;
    EXPECT_LT(failed, 2);

    // The range keeps the slice and all above it; the others are on the last level, merged one by one, as
    // none of their slices of the file was known to be sound.
    std::set<ObjectId> outputs;
    for (const int other : {-1, 0, 2, 4}) {
      const std::string lower = other < 0 ? store.FrontKey(0) : store.Bound(other);
      const std::vector<FileMeta> files = store.ReferencesOfRange(lower);
      const bool is_damaged = other == partition / 2 * 2;
      EXPECT_EQ(std::count_if(files.begin(), files.end(), [](const FileMeta& one) { return one.level == 0; }),
                is_damaged ? kLevel0DepthCalm : 0);
      for (const FileMeta& one : files) {
        EXPECT_TRUE(is_damaged || one.info->id != file);
        if (!is_damaged) outputs.insert(one.info->id);
      }
    }
    EXPECT_EQ(outputs.size(), 3u);
    store.ExpectFrontRows();
    for (int p = 0; p < BatchStore::kPartitions; ++p) {
      for (int r = 0; r < BatchStore::kRows; ++r) {
        std::string content;
        const auto answer = store.runtime_->RunToEnd(store.store_->Get(store.Key(p, r), &content));
        if (store.Key(p, r) == key) {
          // Who reads does not look at what a value's writer gave; who merges and who verifies does.
          if (GetParam() == RowDamage::kUnreadable) EXPECT_EQ(answer.code(), Code::kCorruption);
          continue;
        }
        ASSERT_TRUE(answer.ok()) << answer.status().ToString();
        const auto row = store.rows_.find(store.Key(p, r));
        ASSERT_EQ(answer->state == Shard::ReadState::kFound, row != store.rows_.end());
        if (row != store.rows_.end()) ASSERT_EQ(content, row->second);
      }
    }
    store.ExpectNoFileTooMuchOrTooFew({path});
    EXPECT_TRUE(store.Close().ok());
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Damages, DamagedBatchTest,
                         testing::Values(RowDamage::kUnreadable, RowDamage::kRotBeforeSealing));

}  // namespace
}  // namespace partita
