// As a release build has it; and before anything that it may switch.
#ifndef NDEBUG
#define NDEBUG
#endif
#include "engine/base/assert.h"

#include <gtest/gtest.h>

// covers: F27

namespace partita {
namespace {

TEST(AssertDeathTest, ABrokenInvariantEndsTheProcessInReleaseBuildsTooAndSaysWhichItWas) {
  EXPECT_DEATH(PARTITA_ASSERT(1 + 1 == 3), "broken invariant at .*assert_test.cc:[0-9]+: 1 \\+ 1 == 3");
  PARTITA_ASSERT(1 + 1 == 2);
}

}  // namespace
}  // namespace partita
