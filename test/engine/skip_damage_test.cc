#include "test/engine/repair_fixture.h"

// covers: F43 F44 F48. A scan that was asked to step over damage: what it gives is what there is, what it
// does not give lies in what it says it has skipped.

namespace partita {
namespace {

class SkipDamageTest : public RepairTest {
 protected:
  struct Taken {
    RowsByKey rows;
    std::vector<SkippedSpan> skipped;
    uint32_t pages = 0;
  };
  class Sink : public RowSink {
   public:
    explicit Sink(RowsByKey* out) : out_(out) {}
    Verdict Add(std::string_view user_key, Version version, std::string_view content) override {
      EXPECT_TRUE(out_->emplace(std::string(user_key), Row{version, std::string(content)}).second);
      return Verdict::kTaken;
    }

   private:
    RowsByKey* out_;
  };

  // All pages of both tables.
  Taken ScanAll(SimRuntime& runtime, Store& store, Direction direction, uint32_t limit) {
    Taken taken;
    for (const uint32_t table : {1u, 2u}) {
      ScanRequest request;
      request.lower = TableLowerBound(TableId(table));
      request.upper = TableUpperBound(TableId(table));
      request.direction = direction;
      request.limit = limit;
      request.skip_damage = true;
      while (true) {
        Sink sink(&taken.rows);
        auto page = runtime.RunToEnd(store.Scan(request, &sink));
        EXPECT_TRUE(page.ok()) << page.status().ToString();
        if (!page.ok()) return taken;
        ++taken.pages;
        for (SkippedSpan& span : page->skipped) {
          EXPECT_LT(span.lower, span.upper);
          EXPECT_EQ(span.why.code(), Code::kCorruption);
          // Each page tells of its own keys.
          EXPECT_GE(span.lower, request.lower);
          EXPECT_LE(span.upper, request.upper);
          taken.skipped.push_back(std::move(span));
        }
        if (page->done) break;
        (direction == Direction::kForward ? request.lower : request.upper) = page->next_key;
      }
    }
    return taken;
  }

  static bool IsSkipped(const Taken& taken, const std::string& key, Version version) {
    for (const SkippedSpan& span : taken.skipped) {
      if (key >= span.lower && key < span.upper && version <= span.version_max) return true;
    }
    return false;
  }

  // What is given is the present state; what is not given was skipped.
  void ExpectHonest(const Taken& taken) {
    for (const auto& [key, row] : taken.rows) {
      const auto present = rows_.find(key);
      ASSERT_NE(present, rows_.end());
      ASSERT_TRUE(present->second.content.has_value()) << "a deleted row came back";
      ASSERT_EQ(row.version, present->second.version) << "an older state was given";
      ASSERT_EQ(row.content, present->second.content);
    }
    for (const auto& [key, row] : rows_) {
      if (row.content && !taken.rows.contains(key)) {
        ASSERT_TRUE(IsSkipped(taken, key, row.version)) << "missing without a word";
      }
    }
  }

  // A store whose states of a row lie in several files, the newest ones in memory.
  void OpenAndCheck(bool expect_skipped) {
    SimRuntime runtime(NextLife(), *disk_);
    StoreOptions options = SmallStore();
    options.open_degraded = true;
    options.read_only = true;  // No compaction makes a different store of it.
    options.create_if_missing = false;
    auto opened = runtime.RunToEnd(Store::Open(runtime, options));
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    std::optional<RowsByKey> first;
    for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
      for (const uint32_t limit : {1u, 7u, 10'000u}) {
        const Taken taken = ScanAll(runtime, **opened, direction, limit);
        EXPECT_EQ(!taken.skipped.empty(), expect_skipped);
        ExpectHonest(taken);
        EXPECT_GT(taken.pages, 1u);
        given_ = taken.rows.size();
        if (!first) first = taken.rows;
        EXPECT_EQ(taken.rows.size(), first->size());
        if (HasFailure()) break;
      }
    }
    EXPECT_TRUE(runtime.RunToEnd((*opened)->Close()).ok());
  }

  // Level 0 above level 1 or deeper: overwrites and deletes of what was compacted before.
  void Overwrite() {
    SimRuntime runtime(NextLife(), *disk_);
    auto opened = runtime.RunToEnd(Store::Open(runtime, SmallStore()));
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    ASSERT_TRUE(runtime.RunToEnd((*opened)->CompactAll()).ok());
    for (int i = 3000; i < 3220; ++i) WriteRow(runtime, **opened, i);
    ASSERT_TRUE(runtime.RunToEnd((*opened)->FlushMemtables()).ok());
    for (int i = 4000; i < 4040; ++i) WriteRow(runtime, **opened, i);
    EXPECT_TRUE(runtime.RunToEnd((*opened)->Close()).ok());
  }

  size_t given_ = 0;
};

TEST_F(SkipDamageTest, SkipsNothingWhereAllIsSound) {
  OpenAndCheck(/*expect_skipped=*/false);
  size_t present = 0;
  for (const auto& [key, row] : rows_) present += row.content.has_value() ? 1 : 0;
  EXPECT_EQ(given_, present);
}

TEST_F(SkipDamageTest, GivesWhatIsCertainAroundEachDamagedBlock) {
  Overwrite();
  size_t present = 0;
  for (const auto& [key, row] : rows_) present += row.content.has_value() ? 1 : 0;
  for (const std::string& path : TablesBySize()) {
    const uint64_t size = disk_->ReadFile(path)->size();
    for (const uint64_t at : {uint64_t{1000}, size / 3, size / 2}) {
      SCOPED_TRACE(path + " " + std::to_string(at));
      disk_->FlipBit(path, at, 2);
      SimRuntime runtime(NextLife(), *disk_);
      RepairReport listed = List();
      if (!listed.damages.empty() && !listed.damages[0].lost.empty()) {
        OpenAndCheck(/*expect_skipped=*/true);
        EXPECT_LE(given_, present);
      }
      disk_->FlipBit(path, at, 2);
      if (HasFailure()) return;
    }
  }
}

TEST_F(SkipDamageTest, GivesWhatIsCertainWithoutFilesAndShards) {
  Overwrite();
  for (const std::string& path : TablesBySize()) {
    SCOPED_TRACE(path);
    const uint64_t at = disk_->ReadFile(path)->size() - 20;
    disk_->FlipBit(path, at, 2);
    RepairReport listed = List();
    // One that nothing names any more is not looked at.
    if (!listed.damages.empty()) OpenAndCheck(/*expect_skipped=*/true);
    disk_->FlipBit(path, at, 2);
    if (HasFailure()) return;
  }
  disk_->FlipBit("meta/shard-1-1", 60, 2);
  OpenAndCheck(/*expect_skipped=*/true);
}

TEST_F(SkipDamageTest, WithoutTheWishDamageIsAnError) {
  for (const std::string& path : TablesBySize()) disk_->FlipBit(path, 1000, 2);
  SimRuntime runtime(NextLife(), *disk_);
  auto opened = runtime.RunToEnd(Store::Open(runtime, SmallStore()));
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  ScanRequest request;
  request.lower = TableLowerBound(TableId(1));
  request.upper = TableUpperBound(TableId(1));
  EXPECT_EQ(runtime.RunToEnd((*opened)->Scan(request, nullptr)).code(), Code::kCorruption);
  // A point that was asked for with the wish is skipped as well.
  const std::string key = rows_.begin()->first;
  std::string content;
  ASSERT_EQ(runtime.RunToEnd((*opened)->Get(key, &content)).code(), Code::kCorruption);
  const ScanInterval point{key, key + '\0'};
  request.only = std::span<const ScanInterval>(&point, 1);
  EXPECT_EQ(runtime.RunToEnd((*opened)->Scan(request, nullptr)).code(), Code::kCorruption);
  request.skip_damage = true;
  auto page = runtime.RunToEnd((*opened)->Scan(request, nullptr));
  ASSERT_TRUE(page.ok()) << page.status().ToString();
  EXPECT_EQ(page->rows, 0u);
  EXPECT_TRUE(page->done);
  ASSERT_EQ(page->skipped.size(), 1u);
  EXPECT_EQ(page->skipped[0].lower, key);
  EXPECT_TRUE(runtime.RunToEnd((*opened)->Close()).ok());
}

}  // namespace
}  // namespace partita
