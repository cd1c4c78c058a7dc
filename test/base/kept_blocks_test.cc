#include "engine/base/kept_blocks.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "engine/base/task_frames.h"

namespace partita {
namespace {

using Kept = KeptBlocks<64, 4, 3, 1024>;

class KeptBlocksTest : public testing::Test {
 protected:
  ~KeptBlocksTest() override { kept_.Close(std::free); }
  // Kept or freed.
  bool Leave(size_t size) {
    void* const block = std::malloc(Kept::Capacity(size));
    if (kept_.Keep(block, size)) return true;
    std::free(block);
    return false;
  }

  Kept kept_;
};

TEST_F(KeptBlocksTest, ABlockIsTakenAgainByWhoeverItHasRoomFor) {
  kept_.Open();
  void* const block = std::malloc(Kept::Capacity(65));
  ASSERT_TRUE(kept_.Keep(block, 65));
  EXPECT_EQ(kept_.Take(64), nullptr);
  EXPECT_EQ(kept_.Take(129), nullptr);
  EXPECT_EQ(kept_.Take(128), block);
  EXPECT_EQ(kept_.Take(128), nullptr);
  std::free(block);
}

TEST_F(KeptBlocksTest, OfEachSizeOnlySoManyAreKeptAndNoneThatAreLarger) {
  kept_.Open();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Leave(1)) << i;
  EXPECT_FALSE(Leave(64));
  EXPECT_TRUE(Leave(Kept::kBytesMax));
  EXPECT_FALSE(Leave(Kept::kBytesMax + 1));
  EXPECT_EQ(kept_.Take(Kept::kBytesMax + 1), nullptr);
}

TEST_F(KeptBlocksTest, AllTogetherHaveABound) {
  kept_.Open();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Leave(256)) << i;
  EXPECT_TRUE(Leave(129));
  EXPECT_TRUE(Leave(64));
  EXPECT_FALSE(Leave(64));
  std::free(kept_.Take(192));
  EXPECT_TRUE(Leave(64));
  EXPECT_TRUE(Leave(64));
  EXPECT_FALSE(Leave(128));
}

TEST_F(KeptBlocksTest, NothingIsKeptBeforeItIsOpenedNorOnceItIsClosed) {
  EXPECT_TRUE(kept_.is_fresh());
  EXPECT_FALSE(Leave(64));
  kept_.Open();
  EXPECT_FALSE(kept_.is_fresh());
  EXPECT_TRUE(Leave(64));
  EXPECT_TRUE(Leave(64));
  EXPECT_TRUE(Leave(200));
  int freed = 0;
  kept_.Close([&freed](void* block) {
    std::free(block);
    ++freed;
  });
  EXPECT_EQ(freed, 3);
  EXPECT_EQ(kept_.Take(64), nullptr);
  EXPECT_FALSE(Leave(64));
  EXPECT_FALSE(kept_.is_fresh());
}

// Under AddressSanitizer and ThreadSanitizer: what one thread took another may free, and end.
TEST(TaskFramesTest, FramesGoFromThreadToThread) {
  constexpr size_t kFrames = 200;
  std::vector<void*> frames;
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 1; i <= kFrames; ++i) {
      frames.push_back(NewTaskFrame(i * 16));
      std::memset(frames.back(), round, i * 16);
    }
    std::thread([&frames] {
      for (size_t i = 1; i <= kFrames; ++i) FreeTaskFrame(frames[i - 1], i * 16);
      void* const again = NewTaskFrame(kFrames * 16);
      FreeTaskFrame(again, kFrames * 16);
    }).join();
    frames.clear();
  }
}

}  // namespace
}  // namespace partita
