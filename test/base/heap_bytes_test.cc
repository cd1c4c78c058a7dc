#include "engine/base/heap_bytes.h"

#include <gtest/gtest.h>

namespace partita {
namespace {

TEST(HeapBytesTest, AreWhatMallocSetsAside) {
  EXPECT_EQ(HeapBytes(size_t{0}), 0u);
  EXPECT_EQ(HeapBytes(size_t{1}), 32u);
  EXPECT_EQ(HeapBytes(size_t{24}), 32u);
  EXPECT_EQ(HeapBytes(size_t{25}), 48u);
  EXPECT_EQ(HeapBytes(size_t{1000}), 1008u);
}

TEST(HeapBytesTest, ShortTextLiesWithinItsString) {
  EXPECT_EQ(HeapBytes(std::string("short")), 0u);
  EXPECT_GE(HeapBytes(std::string(100, 'a')), 100u);
  EXPECT_EQ(HeapBytes(std::vector<uint64_t>()), 0u);
  EXPECT_EQ(HeapBytes(std::vector<uint64_t>(3)), 32u);
}

}  // namespace
}  // namespace partita
