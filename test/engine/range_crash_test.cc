#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "test/engine/range_fixture.h"
#include "test/support/slowdown.h"

namespace partita {
namespace {

// Changes of ranges that crash at each step. covers: F1 F10 F36 F67

// What happens to the range of partitions 3 to 5 and the one in front, as far as nothing fails.
bool ThereAndBackWithDeletes(RangeTest& store, uint32_t home, uint32_t away) {
  if (!store.Put(4, 0, "at home").ok() || !store.Move(4, away).ok()) return false;
  for (int r = 1; r < RangeTest::kRows; ++r) {
    if (!store.Delete(4, r).ok()) return false;
  }
  return store.Put(5, 0, "away").ok() && store.Move(4, home).ok() && store.Put(5, 1, "back").ok();
}

bool BothAndThenJoined(RangeTest& store, uint32_t home, uint32_t away) {
  return store.Put(4, 0, "at home").ok() && store.Move(1, away).ok() && store.Move(4, away).ok() &&
         store.Merge(3).ok() && store.Put(5, 0, "away").ok() && store.Delete(1, 0).ok() &&
         store.Split(2).ok() && store.Move(1, home).ok() && store.Put(1, 1, "back").ok();
}

class RangeCrashTest : public testing::TestWithParam<bool (*)(RangeTest&, uint32_t, uint32_t)> {};

// Crashed after each disk operation of it.
TEST_P(RangeCrashTest, AtAnyStepLeavesOneOwnerAndEveryRow) {
  RangeTest first;
  ASSERT_TRUE(first.Open().ok());
  first.MakeTable();
  first.Fill();
  first.Compact();
  ASSERT_TRUE(first.Split(3).ok());
  ASSERT_TRUE(first.Close().ok());
  uint64_t steps = 0, moved = 0, stayed = 0;
  for (bool ended = false; !ended; ++steps) {
    for (const bool power : {true, false}) {
      RangeTest copy(*first.disk_);
      copy.table_ = first.table_;
      copy.rows_ = first.rows_;
      ASSERT_TRUE(copy.Open().ok());
      const uint32_t home = copy.OwnerOf(4).value, away = (home + 1) % RangeTest::kShards;
      copy.runtime_->CrashAtOperation(copy.runtime_->operations_completed() + 1 + steps,
                                      SimCrashMoment::kAfter);
      ended = GetParam()(copy, home, away);
      copy.Crash(power);
      ASSERT_TRUE(copy.Open().ok()) << "step " << steps;
      (copy.OwnerOf(4).value == home ? stayed : moved) += 1;
      copy.AskForUnanswered();
      copy.ExpectRows("crash of " + std::string(power ? "power" : "process") + " after step " +
                      std::to_string(steps));
      ASSERT_TRUE(copy.Close().ok());
    }
  }
  EXPECT_GT(steps, 40u);
  EXPECT_GT(moved, 10u);
  EXPECT_GT(stayed, 10u);
}

INSTANTIATE_TEST_SUITE_P(Courses, RangeCrashTest,
                         testing::Values(&ThereAndBackWithDeletes, &BothAndThenJoined));

// ---- Another number of shards.

// Crashes are tried at every so many operations.
constexpr uint64_t kStride = kSlowdown == 1 ? 1 : 5;

class OtherShardsCrashTest : public testing::TestWithParam<std::pair<uint32_t, uint32_t>> {};

// Crashed after each disk operation of the opening, and then opened with either number.
TEST_P(OtherShardsCrashTest, AtAnyStepLeavesOneOwnerAndEveryRow) {
  const auto [before, after] = GetParam();
  RangeTest first;
  ASSERT_TRUE(first.Open(before).ok());
  first.MakeTable();
  first.Fill();
  first.Compact();
  ASSERT_TRUE(first.Split(2).ok());
  ASSERT_TRUE(first.Split(4).ok());
  ASSERT_TRUE(first.Move(4, before - 1).ok());
  ASSERT_TRUE(first.Delete(4, 1).ok());  // What is in logs only has to be replayed first.
  ASSERT_TRUE(first.Put(1, 2, "second").ok());
  first.LosePower();
  uint64_t steps = 0, old_layouts = 0, new_layouts = 0;
  for (bool ended = false; !ended; steps += kStride) {
    for (const bool power : {true, false}) {
      RangeTest copy(*first.disk_);
      copy.table_ = first.table_;
      copy.rows_ = first.rows_;
      ended = copy.Open(after, 1 + steps).ok() && !copy.runtime_->crashed();
      copy.Crash(power);
      ASSERT_TRUE(copy.Open(steps % 2 == 0 ? before : after).ok()) << "step " << steps;
      ++(copy.store_->open_report().shards_before == before ? old_layouts : new_layouts);
      copy.ExpectRows("crash of " + std::string(power ? "power" : "process") + " after step " +
                      std::to_string(steps));
      ASSERT_TRUE(copy.Put(4, 3, "third").ok());
      ASSERT_TRUE(copy.Close().ok());
      ASSERT_TRUE(copy.Open(after).ok()) << "step " << steps;
      copy.ExpectRows("opened again after step " + std::to_string(steps));
      ASSERT_TRUE(copy.Close().ok());
    }
  }
  EXPECT_GT(steps, 40u);
  EXPECT_GT(old_layouts, 10u / kSlowdown);
  EXPECT_GT(new_layouts, 10u / kSlowdown);
}

INSTANTIATE_TEST_SUITE_P(Counts, OtherShardsCrashTest,
                         testing::Values(std::pair(3, 1), std::pair(1, 4), std::pair(3, 4)));

}  // namespace
}  // namespace partita
