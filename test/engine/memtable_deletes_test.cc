#include "engine/memtable_deletes.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <random>

#include "engine/base/stored_value.h"
#include "engine/base/user_key.h"

namespace partita {
namespace {

std::string NthKey(size_t i) { return EncodeUserKey(TableId(1), "p", std::to_string(100'000 + i)); }
// Behind the key, and in front of the next.
std::string BehindNth(size_t i) { return NthKey(i) + '\0'; }

constexpr uint64_t kSumSeed = 77;
constexpr Direction kEitherWay[] = {Direction::kForward, Direction::kBackward};

class MemtableDeletesTest : public testing::Test {
 protected:
  MemtableDeletesTest() { view_.active = std::make_shared<Memtable>(pool_); }

  // Has the active memtable frozen.
  void Freeze() {
    view_.frozen.insert(view_.frozen.begin(), MemtableRef{view_.active, LogPosition(), 0});
    view_.active = std::make_shared<Memtable>(pool_);
  }
  void Write(size_t key, uint64_t version, EntryKind kind) {
    keys_.push_back(NthKey(key));
    values_.push_back(MakeStoredValue(keys_.back(), kind, kind == EntryKind::kPut ? "v" : ""));
    ASSERT_TRUE(view_.active->Reserve(1));
    view_.active->Insert({keys_.back(), Version(version), kind, values_.back()});
  }
  void Put(size_t key, uint64_t version) { Write(key, version, EntryKind::kPut); }
  void Delete(size_t begin, size_t end, uint64_t version) {
    for (size_t i = begin; i < end; ++i) Write(i, version, EntryKind::kTombstone);
  }
  static BlockKeys Block(size_t begin, size_t end, uint64_t version_max = 10) {
    BlockKeys keys{.sum = 0,
                   .seed = kSumSeed,
                   .count_max = 0,
                   .version_max = Version(version_max),
                   .shown_lower = {},
                   .shown_upper = {}};
    for (size_t i = begin; i < end; ++i, ++keys.count_max) keys.sum += KeySumTerm(NthKey(i), kSumSeed);
    return keys;
  }
  // Of the keys [begin, end) as one block.
  bool AreAll(MemtableDeletes& deletes, size_t begin, size_t end, uint64_t version_max = 10) {
    return deletes.AreAll(NthKey(begin), BehindNth(end - 1), Block(begin, end, version_max));
  }

  ChunkPool pool_{64u << 20};
  ReadView view_;
  std::deque<std::string> keys_, values_;
};

TEST_F(MemtableDeletesTest, BlocksInOrderAreOneStretch) {
  Delete(0, 100, 20);
  for (const Direction direction : kEitherWay) {
    MemtableDeletes deletes(view_, direction, Version(50));
    for (size_t at = 0; at < 100; at += 10) {
      const size_t begin = direction == Direction::kForward ? at : 90 - at;
      const std::string lower = begin == 0 ? NthKey(0) : BehindNth(begin - 1);
      EXPECT_TRUE(deletes.AreAll(lower, BehindNth(begin + 9), Block(begin, begin + 10)));
    }
    EXPECT_EQ(deletes.found().lower, NthKey(0));
    EXPECT_EQ(deletes.found().upper, BehindNth(99));
    EXPECT_EQ(deletes.found().last_key, direction == Direction::kForward ? NthKey(99) : NthKey(0));
    EXPECT_EQ(deletes.found().entries, 100u);
    EXPECT_EQ(deletes.looks(), 100u);
    deletes.Forget();
    EXPECT_EQ(deletes.found().entries, 0u);
    // Out of order.
    EXPECT_TRUE(AreAll(deletes, 40, 50));
    EXPECT_TRUE(AreAll(deletes, 10, 20));
    EXPECT_EQ(deletes.found().lower, NthKey(10));
    EXPECT_EQ(deletes.found().upper, BehindNth(19));
    EXPECT_EQ(deletes.found().entries, 10u);
  }
}

TEST_F(MemtableDeletesTest, TheKeysMustBeTheBlocksOwn) {
  Delete(0, 100, 20);
  for (const Direction direction : kEitherWay) {
    MemtableDeletes deletes(view_, direction, Version(50));
    EXPECT_FALSE(deletes.AreAll(NthKey(10), BehindNth(19), Block(10, 19))) << "one more is deleted";
    EXPECT_FALSE(deletes.AreAll(NthKey(90), BehindNth(109), Block(90, 101))) << "one is not";
    EXPECT_FALSE(deletes.AreAll(NthKey(200), BehindNth(209), Block(200, 210)));
    EXPECT_FALSE(AreAll(deletes, 10, 20, /*version_max=*/20)) << "the block may be newer";
    EXPECT_EQ(deletes.found().entries, 0u);
    EXPECT_TRUE(AreAll(deletes, 10, 20, /*version_max=*/19)) << "and goes on after all of these";
  }
}

TEST_F(MemtableDeletesTest, TheNewestVisibleEntryOfAllMemtablesDecides) {
  Put(5, 12);
  Delete(0, 10, 20);
  Freeze();
  Put(7, 30);
  Delete(3, 4, 30);
  for (const Direction direction : kEitherWay) {
    MemtableDeletes before(view_, direction, Version(25));
    EXPECT_TRUE(AreAll(before, 0, 10));
    EXPECT_EQ(before.found().entries, 0u) << "what is not visible yet may be a row";
    EXPECT_FALSE(
        MemtableDeletes(view_, direction, Version(15)).AreAll(NthKey(0), BehindNth(9), Block(0, 10)));
    MemtableDeletes after(view_, direction, Version(50));
    EXPECT_FALSE(AreAll(after, 0, 10));
    EXPECT_TRUE(AreAll(after, 0, 7));
    EXPECT_EQ(after.found().upper, BehindNth(6));
    EXPECT_FALSE(AreAll(after, 7, 8));
    // A row beside the block's keys does not keep the block, but is one.
    after.Forget();
    BlockKeys around = Block(5, 7);
    around.sum += Block(8, 10).sum;
    around.count_max += 2;
    EXPECT_TRUE(after.AreAll(NthKey(5), BehindNth(9), around));
    EXPECT_EQ(after.found().entries, 0u);
  }
}

TEST_F(MemtableDeletesTest, AStretchKeepsToWhatTheCursorShows) {
  Delete(0, 100, 20);
  for (const Direction direction : kEitherWay) {
    MemtableDeletes deletes(view_, direction, Version(50));
    BlockKeys keys = Block(10, 20);
    const std::string shown_lower = NthKey(12), shown_upper = NthKey(15);
    keys.shown_lower = shown_lower;
    keys.shown_upper = shown_upper;
    EXPECT_TRUE(deletes.AreAll(NthKey(10), BehindNth(19), keys));
    EXPECT_EQ(deletes.found().lower, NthKey(12));
    EXPECT_EQ(deletes.found().upper, NthKey(15));
  }
}

TEST_F(MemtableDeletesTest, ALookEndsWhereThereIsFarMoreThanTheBlockHas) {
  for (size_t i = 1; i < 999; ++i) Put(i, 20);
  Delete(0, 1, 20);
  Delete(999, 1000, 20);
  for (const Direction direction : kEitherWay) {
    MemtableDeletes deletes(view_, direction, Version(50));
    BlockKeys keys = Block(0, 1);
    keys.sum += Block(999, 1000).sum;
    keys.count_max = 2;
    EXPECT_FALSE(deletes.AreAll(NthKey(0), BehindNth(999), keys)) << "it is true, but dear to know";
    EXPECT_LE(deletes.looks(), 30u);
  }
}

// Against a map of what was written.
TEST_F(MemtableDeletesTest, AtRandom) {
  std::mt19937_64 random(5);
  constexpr size_t kKeys = 200;
  std::map<size_t, std::map<uint64_t, EntryKind>> written;
  int found = 0, right = 0;
  for (uint64_t version = 1; version <= 1500; ++version) {
    const size_t key = random() % kKeys;
    const EntryKind kind = random() % 5 == 0 ? EntryKind::kPut : EntryKind::kTombstone;
    Write(key, version, kind);
    written[key][version] = kind;
    if (version % 500 == 250) Freeze();
    if (version % 10 != 0) continue;
    const Direction direction = kEitherWay[random() % 2];
    const Version visible(version - random() % 100);
    MemtableDeletes deletes(view_, direction, visible);
    for (int i = 0; i < 20; ++i) {
      const size_t begin = random() % kKeys, end = std::min<size_t>(begin + 1 + random() % 6, kKeys);
      const uint64_t version_max = version / 3;
      BlockKeys keys = Block(begin, begin, version_max);
      bool is_clean = true;
      for (size_t k = begin; k < end; ++k) {
        const auto& entries = written[k];
        is_clean &= entries.upper_bound(visible.value) == entries.end();
        auto newest = entries.upper_bound(visible.value);
        if (newest == entries.begin()) continue;
        --newest;
        is_clean &= newest->second == EntryKind::kTombstone;
        if (newest->second == EntryKind::kPut || newest->first <= version_max) continue;
        keys.sum += KeySumTerm(NthKey(k), kSumSeed);
        ++keys.count_max;
      }
      const bool is_wrong = random() % 4 == 0;
      if (is_wrong) keys.sum += KeySumTerm(NthKey(begin), kSumSeed);
      deletes.Forget();
      const bool all = deletes.AreAll(NthKey(begin), BehindNth(end - 1), keys);
      if (is_wrong || keys.count_max == 0) {
        EXPECT_FALSE(all);
        continue;
      }
      // It may give up where much lies between.
      right += all;
      if (!all) EXPECT_GT(end - begin, keys.count_max);
      EXPECT_EQ(deletes.found().entries > 0, all && is_clean);
      found += all && is_clean;
    }
  }
  EXPECT_GT(right, 500);
  EXPECT_GT(found, 100);
}

}  // namespace
}  // namespace partita
