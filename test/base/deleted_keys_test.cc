#include "engine/base/deleted_keys.h"

#include <gtest/gtest.h>

#include <string>

namespace partita {
namespace {

TEST(KeySumTest, EachKeyAndEachStoreHasItsOwn) {
  const uint64_t a = KeySumSeed(StoreId(1)), b = KeySumSeed(StoreId(2));
  EXPECT_NE(a, b);
  std::string key;
  uint64_t before = KeySumTerm(key, a);
  for (int size = 1; size < 2000; ++size) {
    key.push_back('k');
    EXPECT_NE(KeySumTerm(key, a), KeySumTerm(key, b)) << size;
    EXPECT_NE(KeySumTerm(key, a), before) << size;
    before = KeySumTerm(key, a);
    std::string other = key;
    other[static_cast<size_t>(size) * 2 / 3] = 'x';
    EXPECT_NE(KeySumTerm(key, a), KeySumTerm(other, a)) << size;
  }
}

// By XXH3's way of long inputs pairs like these, which exchange a bit between two stripes, collide for one
// seed in a hundred, whatever else is in them.
TEST(KeySumTest, LongKeysThatDifferInABitOfTwoStripesDoNotCollide) {
  uint64_t collisions = 0;
  for (uint64_t store = 1; store <= 2000; ++store) {
    const uint64_t seed = KeySumSeed(StoreId(store));
    std::string one(1000, 'p'), other = one;
    // Lane 0 of stripes 0 and 12: the low halves differ by what two of the hash's constants do.
    constexpr unsigned char kMask[] = {0x10, 0x04, 0x0a, 0x0a};
    for (size_t i = 0; i < 4; ++i) {
      one[12 * 64 + i] = other[12 * 64 + i] = static_cast<char>(one[i] ^ kMask[i]);
    }
    one[7] = 'a', one[12 * 64 + 7] = 'A';
    other[7] = 'A', other[12 * 64 + 7] = 'a';
    collisions += KeySumTerm(one, seed) == KeySumTerm(other, seed);
  }
  EXPECT_EQ(collisions, 0u);
}

}  // namespace
}  // namespace partita
