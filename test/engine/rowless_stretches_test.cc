#include "engine/rowless_stretches.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <random>
#include <thread>

namespace partita {
namespace {

std::string KeyOf(int i) {
  std::string digits = std::to_string(i);
  return "k" + std::string(6 - digits.size(), '0') + digits;
}

class RowlessStretchesTest : public testing::Test {
 protected:
  static RowlessStretches::Interval Keys(int lower, int upper) { return {KeyOf(lower), KeyOf(upper)}; }
  bool Watch(int hint, int lower = 0, int upper = 900'000) {
    return stretches_.Watch(KeyOf(hint), Keys(lower, upper)).has_value();
  }
  // As a sweep that found [lower, upper).
  bool Learn(int lower, int upper, uint64_t version, uint64_t entries = 3000) {
    if (!Watch(lower)) return false;
    const bool added = stretches_.Add(Keys(lower, upper), Version(version), entries);
    stretches_.EndWatch(entries);
    return added;
  }
  std::string Leap(int from, uint64_t version, Direction direction = Direction::kForward) {
    std::string bound = KeyOf(from);
    return stretches_.Leap(direction, Version(version), &bound) ? bound : "";
  }

  RowlessStretches stretches_;
};

TEST_F(RowlessStretchesTest, AScanLeapsFromWithinAStretchToItsFarEnd) {
  EXPECT_EQ(Leap(10, 100), "");
  EXPECT_FALSE(stretches_.watches());
  ASSERT_TRUE(Learn(10, 20, 50));
  EXPECT_TRUE(stretches_.watches());
  EXPECT_EQ(Leap(9, 100), "");
  EXPECT_EQ(Leap(10, 100), KeyOf(20));
  EXPECT_EQ(Leap(19, 100), KeyOf(20));
  EXPECT_EQ(Leap(20, 100), "");
  // Backward a bound is exclusive.
  EXPECT_EQ(Leap(10, 100, Direction::kBackward), "");
  EXPECT_EQ(Leap(11, 100, Direction::kBackward), KeyOf(10));
  EXPECT_EQ(Leap(20, 100, Direction::kBackward), KeyOf(10));
  EXPECT_EQ(Leap(21, 100, Direction::kBackward), "");
}

TEST_F(RowlessStretchesTest, AnOlderSnapshotDoesNotLeap) {
  ASSERT_TRUE(Learn(10, 20, 50));
  ASSERT_TRUE(Learn(20, 30, 60));
  EXPECT_EQ(Leap(10, 49), "");
  EXPECT_EQ(Leap(10, 50), KeyOf(20));  // And no further than it knows.
  EXPECT_EQ(Leap(10, 60), KeyOf(30));
  EXPECT_EQ(Leap(30, 50, Direction::kBackward), "");
  EXPECT_EQ(Leap(30, 60, Direction::kBackward), KeyOf(10));
}

TEST_F(RowlessStretchesTest, ARowCutsTheStretchThatItFallsInto) {
  ASSERT_TRUE(Learn(10, 20, 50));
  ASSERT_TRUE(Learn(20, 30, 50));
  ASSERT_TRUE(Learn(30, 40, 50));
  stretches_.NoteRow(KeyOf(9));
  stretches_.NoteRow(KeyOf(40));
  EXPECT_EQ(Leap(10, 100), KeyOf(40));
  stretches_.NoteRow(KeyOf(20));
  EXPECT_EQ(Leap(10, 100), KeyOf(20));
  EXPECT_EQ(Leap(25, 100), "");
  EXPECT_EQ(Leap(30, 100), KeyOf(40));
  EXPECT_EQ(Leap(40, 100, Direction::kBackward), KeyOf(30));
  // It is found again once its keys are free of rows.
  ASSERT_TRUE(Learn(20, 30, 70));
  EXPECT_EQ(Leap(10, 100), KeyOf(40));
}

TEST_F(RowlessStretchesTest, WhatTheSweepFindsEndsAtRowsThatCameMeanwhile) {
  ASSERT_TRUE(Watch(100));
  EXPECT_TRUE(stretches_.watches());
  stretches_.NoteRow(KeyOf(500));
  stretches_.NoteRow(KeyOf(140));
  stretches_.NoteRow(KeyOf(600));
  stretches_.NoteRow(KeyOf(20));
  stretches_.NoteRow(KeyOf(60));
  stretches_.NoteRow(KeyOf(30));
  EXPECT_TRUE(stretches_.Add(Keys(61, 100), Version(50), 40));
  EXPECT_FALSE(stretches_.Add(Keys(60, 61), Version(50), 40));
  EXPECT_TRUE(stretches_.Add(Keys(100, 140), Version(50), 40));
  EXPECT_FALSE(stretches_.Add(Keys(140, 141), Version(50), 40));
  stretches_.EndWatch(80);
  EXPECT_EQ(Leap(61, 100), KeyOf(140));
  EXPECT_EQ(Leap(60, 100), "");
}

TEST_F(RowlessStretchesTest, ARowAtTheHintItselfLeavesNothingAbove) {
  ASSERT_TRUE(Watch(100));
  stretches_.NoteRow(KeyOf(100));
  EXPECT_FALSE(stretches_.Add(Keys(100, 101), Version(50), 40));
  EXPECT_TRUE(stretches_.Add(Keys(90, 100), Version(50), 40));
  stretches_.EndWatch(40);
}

TEST_F(RowlessStretchesTest, RangesThatComeAndGoForgetTheirs) {
  ASSERT_TRUE(Learn(10, 20, 50));
  ASSERT_TRUE(Learn(30, 40, 50));
  ASSERT_TRUE(Learn(50, 60, 50));
  ASSERT_TRUE(Watch(70));
  stretches_.Forget(KeyOf(20), KeyOf(31));
  EXPECT_TRUE(stretches_.Add(Keys(65, 70), Version(50), 40));
  stretches_.Forget(KeyOf(55), KeyOf(66));
  EXPECT_FALSE(stretches_.Add(Keys(70, 75), Version(50), 40));  // Of what is watched, too.
  stretches_.EndWatch(40);
  EXPECT_EQ(Leap(10, 100), KeyOf(20));
  EXPECT_EQ(Leap(30, 100), "");
  EXPECT_EQ(Leap(50, 100), "");
  EXPECT_EQ(Leap(65, 100), "");
  stretches_.Forget("", "");
  EXPECT_EQ(Leap(10, 100), "");
}

TEST_F(RowlessStretchesTest, TheSweepLooksBetweenWhatIsKnown) {
  ASSERT_TRUE(Learn(10, 20, 50));
  ASSERT_TRUE(Learn(30, 40, 50));
  EXPECT_FALSE(Watch(11));
  EXPECT_FALSE(Watch(39));
  const auto between = stretches_.Watch(KeyOf(25), Keys(0, 100));
  ASSERT_TRUE(between.has_value());
  EXPECT_EQ(between->lower, KeyOf(20));
  EXPECT_EQ(between->upper, KeyOf(30));
  stretches_.EndWatch(0);
  stretches_.NoteRow(KeyOf(15));  // What is cut is no bound any more.
  const auto wider = stretches_.Watch(KeyOf(25), Keys(0, 100));
  ASSERT_TRUE(wider.has_value());
  EXPECT_EQ(wider->lower, KeyOf(0));
  stretches_.EndWatch(0);
}

TEST_F(RowlessStretchesTest, WhereAStretchBeginsTheSweepLooksBelowIt) {
  ASSERT_TRUE(Learn(10, 20, 50));
  ASSERT_TRUE(Learn(30, 40, 50));
  const auto between = stretches_.Watch(KeyOf(30), Keys(0, 100));
  ASSERT_TRUE(between.has_value());
  EXPECT_EQ(between->lower, KeyOf(20));
  EXPECT_EQ(between->upper, KeyOf(30));
  stretches_.NoteRow(KeyOf(22));
  EXPECT_FALSE(stretches_.Add(Keys(22, 30), Version(50), 40));
  EXPECT_TRUE(stretches_.Add(Keys(23, 30), Version(50), 40));
  stretches_.EndWatch(40);
  EXPECT_EQ(Leap(23, 100), KeyOf(40));
  ASSERT_TRUE(Learn(20, 22, 50));
  EXPECT_FALSE(Watch(20));  // Nothing is below.
  EXPECT_TRUE(stretches_.watches());
  EXPECT_TRUE(Watch(22));
}

TEST_F(RowlessStretchesTest, SmallNeighboursBecomeOne) {
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(Learn(10 * i, 10 * i + 10, 50, 100));
  EXPECT_LE(stretches_.size(), 100 * 100 / RowlessStretches::kEntriesMax + 1);
  EXPECT_EQ(Leap(0, 100), KeyOf(1000));
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(Learn(2000 + 20 * i, 2010 + 20 * i, 50, 100));
  EXPECT_EQ(Leap(2000, 100), KeyOf(2010));  // These are none.
}

TEST_F(RowlessStretchesTest, ThereAreNoMoreThanFit) {
  // One long stretch of many large parts stays whole.
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(Learn(10 * i, 10 * i + 10, 50, 1500));
  EXPECT_LE(stretches_.size(), RowlessStretches::kStretchesMax);
  EXPECT_EQ(Leap(0, 100), KeyOf(10'000));
  // Of many that are apart the smallest go, however old the large ones are.
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(Learn(20'000 + 20 * i, 20'010 + 20 * i, 50, 20));
  EXPECT_LE(stretches_.size(), RowlessStretches::kStretchesMax);
  EXPECT_EQ(Leap(0, 100), KeyOf(10'000));
  EXPECT_EQ(Leap(20'000 + 20 * 999, 100), KeyOf(20'010 + 20 * 999));  // But the newest one does not.
}

TEST_F(RowlessStretchesTest, KeysTakeNoMoreMemoryThanTheyMay) {
  const std::string long_end(4000, 'x');
  for (int i = 0; i < 200; ++i) {
    const RowlessStretches::Interval keys{KeyOf(10 * i) + long_end, KeyOf(10 * i + 5) + long_end};
    ASSERT_TRUE(stretches_.Watch(keys.lower, Keys(0, 900'000)).has_value());
    ASSERT_TRUE(stretches_.Add(keys, Version(50), 3000));
    stretches_.EndWatch(3000);
  }
  EXPECT_LE(stretches_.size(), RowlessStretches::kKeyBytesMax / 8000);
  EXPECT_GT(stretches_.size(), 20u);
}

TEST_F(RowlessStretchesTest, DeletesThatLeadToNothingAreLookedAtEverLess) {
  const auto deletes_until_hint = [&] {
    uint64_t deletes = 1;
    while (!stretches_.NoteDeletes(1, "d")) ++deletes;
    std::string hint;
    EXPECT_TRUE(stretches_.TakeHint(&hint));
    EXPECT_EQ(hint, "d");
    EXPECT_FALSE(stretches_.TakeHint(&hint));
    return deletes;
  };
  EXPECT_EQ(deletes_until_hint(), RowlessStretches::kDeletesFirst);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(Watch(10));
    stretches_.EndWatch(0);
  }
  EXPECT_EQ(deletes_until_hint(), RowlessStretches::kDeletesMax);
  // What was walked is paid for first.
  ASSERT_TRUE(Watch(10));
  stretches_.EndWatch(1000);
  EXPECT_EQ(deletes_until_hint(), 250u);
  ASSERT_TRUE(Watch(10));
  stretches_.EndWatch(std::nullopt);  // That it could not walk says nothing.
  EXPECT_EQ(deletes_until_hint(), 250u);
  ASSERT_TRUE(Watch(10));
  stretches_.EndWatch(64);
  EXPECT_EQ(deletes_until_hint(), RowlessStretches::kDeletesMin);
}

// ---- Threads: one that decides, as the strand, and readers beside it.

// Rows come and go at random; each change has a version, which becomes visible after it was noted. Of each
// key the history of versions is known, so a reader can tell what it must not leap over.
TEST(RowlessThreadsTest, NoReaderLeapsOverARowThatItsVersionShows) {
  constexpr int kKeys = 64, kVersions = 40'000;
  RowlessStretches stretches;
  struct Change {
    std::atomic<uint64_t> at{0};  // Version, then whether it is a row.
  };
  // The last changes of each key, newest first found by search; a reader looks at few.
  std::vector<std::array<Change, 1024>> changes(kKeys);
  std::vector<std::atomic<uint32_t>> counts(kKeys);
  std::atomic<uint64_t> visible{1};
  std::atomic<bool> done{false};

  const auto is_row = [&](int key, uint64_t version) {
    for (uint32_t i = counts[key].load(std::memory_order_acquire); i > 0; --i) {
      const uint64_t change = changes[key][i - 1].at.load(std::memory_order_relaxed);
      if (change >> 1 <= version) return (change & 1) != 0;
    }
    return false;
  };
  std::atomic<uint64_t> leaps{0};
  const auto read = [&](uint64_t seed) {
    std::mt19937_64 random(seed);
    while (!done.load(std::memory_order_relaxed)) {
      const int from = static_cast<int>(random() % kKeys);
      const bool forward = random() % 2 == 0;
      const uint64_t version = visible.load(std::memory_order_acquire);
      std::string bound = KeyOf(from);
      if (!stretches.Leap(forward ? Direction::kForward : Direction::kBackward, Version(version), &bound)) {
        continue;
      }
      leaps.fetch_add(1, std::memory_order_relaxed);
      const int to = std::stoi(bound.substr(1));
      for (int key = forward ? from : to; key < (forward ? to : from); ++key) {
        ASSERT_FALSE(is_row(key, version)) << key << " at " << version;
      }
    }
  };
  std::thread first(read, 1), second(read, 2);

  std::mt19937_64 random(3);
  uint64_t version = 1;
  for (int i = 0; i < kVersions; ++i) {
    const int key = static_cast<int>(random() % kKeys);
    const uint32_t count = counts[key].load(std::memory_order_relaxed);
    const bool puts = random() % 8 == 0 && count < 1000;
    ++version;
    if (count < 1024 && (puts || is_row(key, version))) {
      changes[key][count].at.store(version << 1 | (puts ? 1 : 0), std::memory_order_relaxed);
      counts[key].store(count + 1, std::memory_order_release);
      if (puts) stretches.NoteRow(KeyOf(key));
    }
    visible.store(version, std::memory_order_release);
    if (i % 4 != 0) continue;
    // A sweep around a key without a row, by what is visible.
    const int hint = static_cast<int>(random() % kKeys);
    if (is_row(hint, version)) continue;
    const auto around = stretches.Watch(KeyOf(hint), {KeyOf(0), KeyOf(kKeys)});
    if (!around) continue;
    int upper = hint, end = std::stoi(around->upper.substr(1));
    while (upper < end && !is_row(upper, version)) ++upper;
    if (hint < upper) EXPECT_TRUE(stretches.Add({KeyOf(hint), KeyOf(upper)}, Version(version), 2000));
    stretches.EndWatch(2000);
    stretches.Reclaim();
  }
  done.store(true);
  first.join();
  second.join();
  EXPECT_GT(leaps.load(), 0u);
}

}  // namespace
}  // namespace partita
