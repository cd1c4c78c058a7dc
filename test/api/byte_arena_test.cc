#include "api/byte_arena.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace partita {
namespace {

TEST(ByteArenaTest, KeepsWhatWasCopiedUntilCleared) {
  ByteArena arena;
  std::vector<std::string> wanted;
  std::vector<std::string_view> copies;
  for (size_t i = 0; i < 300; ++i) {
    wanted.emplace_back(i * 997 % 90'000, static_cast<char>('a' + i % 26));
    copies.push_back(arena.Copy(wanted.back()));
  }
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(copies[i], wanted[i]) << i;
}

// Rows that grow from page to page, large and small ones in turns: what is held is what one page needs.
TEST(ByteArenaTest, HoldsNoMoreThanOneFilling) {
  ByteArena arena;
  for (size_t page = 0; page < 200; ++page) {
    arena.Clear();
    EXPECT_LE(arena.held_bytes(), 6 * ByteArena::kChunkBytes) << page;
    const size_t large = ByteArena::kChunkBytes + 1 + page * 1024;
    for (int row = 0; row < 4; ++row) {
      arena.Copy(std::string(20, 'k'));
      arena.Copy(std::string(large, 'v'));
      arena.Copy(std::string(40'000, 'w'));
    }
    EXPECT_LE(arena.held_bytes(), 4 * large + 6 * ByteArena::kChunkBytes) << page;
  }
}

}  // namespace
}  // namespace partita
