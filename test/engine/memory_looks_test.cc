#include "engine/memory_looks.h"

#include <gtest/gtest.h>

namespace partita {
namespace {

int LooksDue(MemoryLooks* looks, int reads, bool found) {
  int due = 0;
  for (int i = 0; i < reads; ++i) {
    if (!looks->IsDue()) continue;
    looks->Looked(found);
    ++due;
  }
  return due;
}

TEST(MemoryLooksTest, EachReadIsLookedForWhileNotAllAreInVain) {
  MemoryLooks looks;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(LooksDue(&looks, 3, false), 3);
    EXPECT_EQ(LooksDue(&looks, 1, true), 1);
  }
}

TEST(MemoryLooksTest, AfterSomeInVainOneIn16IsAndTheFirstThatIsFoundEndsThat) {
  MemoryLooks looks;
  EXPECT_EQ(LooksDue(&looks, 4, false), 4);
  EXPECT_EQ(LooksDue(&looks, 1600, false), 100);
  int passed = 0;
  while (LooksDue(&looks, 1, true) == 0) ++passed;
  EXPECT_LT(passed, 16);
  EXPECT_EQ(LooksDue(&looks, 100, true), 100);
}

}  // namespace
}  // namespace partita
