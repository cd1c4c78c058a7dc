#include "compaction/retention.h"

#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>

#include "engine/base/user_key.h"

namespace partita {
namespace {

using testing::ElementsAre;

std::string VersionedKey(std::string_view row, uint32_t table = 1) {
  return EncodeUserKey(TableId(table), "p", row);
}

Entry Put(std::string_view key, uint64_t version) { return {key, Version(version), EntryKind::kPut, "v"}; }
Entry Tombstone(std::string_view key, uint64_t version) {
  return {key, Version(version), EntryKind::kTombstone, "v"};
}

std::vector<Fate> JudgeAll(RetentionFilter& filter, const std::vector<Entry>& entries) {
  std::vector<Fate> fates;
  for (const Entry& entry : entries) {
    Result<Fate> fate = filter.Judge(entry);
    EXPECT_TRUE(fate.ok());
    fates.push_back(*fate);
  }
  return fates;
}

TEST(RetentionFilterTest, KeepsTheNewestOfEachStripeAndEverythingAboveTheVisibleVersion) {
  RetentionFilter filter({Version(10), {Version(5)}}, {}, {});
  std::string key = VersionedKey("r");
  EXPECT_THAT(
      JudgeAll(filter, {Put(key, 15), Put(key, 11), Put(key, 9), Put(key, 7), Put(key, 4), Put(key, 3)}),
      ElementsAre(Fate::kKeep, Fate::kKeep, Fate::kKeep, Fate::kShadowed, Fate::kKeep, Fate::kShadowed));
}

TEST(RetentionFilterTest, ADroppedTombstoneStillHidesWhatIsOlder) {
  RetentionFilter filter({Version(10), {}}, {}, [](const Entry&) { return true; });
  std::string key = VersionedKey("r");
  EXPECT_THAT(JudgeAll(filter, {Tombstone(key, 9), Put(key, 8)}),
              ElementsAre(Fate::kTombstoneDropped, Fate::kShadowed));
}

TEST(RetentionFilterTest, ATombstoneAboveASnapshotStays) {
  RetentionFilter filter({Version(10), {Version(5)}}, {}, [](const Entry&) { return true; });
  std::string key = VersionedKey("r");
  EXPECT_THAT(JudgeAll(filter, {Tombstone(key, 12), Tombstone(key, 9), Put(key, 4)}),
              ElementsAre(Fate::kKeep, Fate::kKeep, Fate::kKeep));
}

TEST(RetentionFilterTest, ATombstoneStaysWhereOlderEntriesMayExist) {
  RetentionFilter filter({Version(10), {}}, {},
                         [](const Entry& entry) { return entry.version < Version(5); });
  std::string a = VersionedKey("a");
  std::string b = VersionedKey("b");
  EXPECT_THAT(JudgeAll(filter, {Tombstone(a, 9), Tombstone(b, 4)}),
              ElementsAre(Fate::kKeep, Fate::kTombstoneDropped));
}

TEST(RetentionFilterTest, EntriesOfADeadTableAreCountedAsSuch) {
  RetentionFilter filter({Version(10), {}}, [](TableId table) { return table == TableId(2); }, {});
  std::string live = VersionedKey("r", 1);
  std::string dead = VersionedKey("r", 2);
  std::string behind = VersionedKey("r", 3);
  EXPECT_THAT(JudgeAll(filter, {Put(live, 3), Put(dead, 20), Put(dead, 4), Put(behind, 5)}),
              ElementsAre(Fate::kKeep, Fate::kDeadTable, Fate::kDeadTable, Fate::kKeep));
}

TEST(RetentionFilterTest, EntriesOutOfOrderAreCorruption) {
  RetentionFilter filter({Version(10), {}}, {}, {});
  std::string a = VersionedKey("a");
  std::string b = VersionedKey("b");
  ASSERT_TRUE(filter.Judge(Put(b, 3)).ok());
  EXPECT_EQ(filter.Judge(Put(a, 4)).code(), Code::kCorruption);
  EXPECT_EQ(filter.Judge(Put("xy", 4)).code(), Code::kCorruption);
}

TEST(RetentionFilterTest, TheSameVersionOfAKeyTwiceIsCorruption) {
  RetentionFilter filter({Version(10), {}}, {}, {});
  std::string key = VersionedKey("a");
  ASSERT_TRUE(filter.Judge(Put(key, 3)).ok());
  EXPECT_EQ(filter.Judge(Put(key, 3)).code(), Code::kCorruption);
}

TEST(RetentionFilterTest, ABlockIsKeptWholeOnlyBehindTheLastKeyAndInALiveTable) {
  RetentionFilter filter({Version(10), {}}, [](TableId table) { return table == TableId(2); }, {});
  ASSERT_TRUE(filter.Judge(Put(VersionedKey("c"), 3)).ok());
  EXPECT_FALSE(filter.KeepsAll(VersionedKey("c"), VersionedKey("f")));
  EXPECT_TRUE(filter.KeepsAll(VersionedKey("d"), VersionedKey("f")));
  EXPECT_FALSE(filter.KeepsAll(VersionedKey("d"), VersionedKey("f", 2)));
  EXPECT_FALSE(filter.KeepsAll(VersionedKey("a", 2), VersionedKey("f", 2)));
}

// What a reader at `at` sees of the versions given, newest first: nothing for a tombstone.
std::optional<uint64_t> Seen(const std::vector<Entry>& versions, uint64_t at) {
  for (const Entry& entry : versions) {
    if (entry.version.value > at) continue;
    if (entry.kind == EntryKind::kTombstone) return std::nullopt;
    return entry.version.value;
  }
  return std::nullopt;
}

TEST(RetentionFilterTest, EveryReaderAtOrAboveAPointSeesWhatItSawBefore) {
  for (uint32_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    std::string key = VersionedKey("k");
    std::vector<Entry> versions;
    for (uint64_t version = 30; version > 0; --version) {
      if (random() % 3 == 0)
        versions.push_back(random() % 3 == 0 ? Tombstone(key, version) : Put(key, version));
    }
    RetentionPolicy policy{Version(random() % 32), {}};
    for (uint32_t i = random() % 4; i > 0; --i) policy.snapshots.push_back(Version(random() % 32));
    RetentionFilter filter(policy, {}, [](const Entry&) { return true; });
    std::vector<Entry> kept;
    for (const Entry& entry : versions) {
      Result<Fate> fate = filter.Judge(entry);
      ASSERT_TRUE(fate.ok());
      if (*fate == Fate::kKeep) kept.push_back(entry);
    }
    for (uint64_t at = policy.visible.value; at < 32; ++at) ASSERT_EQ(Seen(kept, at), Seen(versions, at));
    for (Version at : policy.snapshots) ASSERT_EQ(Seen(kept, at.value), Seen(versions, at.value));
  }
}

}  // namespace
}  // namespace partita
