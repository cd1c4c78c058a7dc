#include "engine/base/kept_blocks.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string_view>
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

TEST(TaskFramesTest, FramesGoFromThreadToThreadAndOverlapNowhere) {
  constexpr size_t kFrames = 200;
  const auto size_of = [](size_t i) { return i * 16; };
  for (int round = 0; round < 3; ++round) {
    std::vector<void*> frames{nullptr};
    for (size_t i = 1; i <= kFrames; ++i) {
      frames.push_back(NewTaskFrame(size_of(i)));
      std::memset(frames[i], static_cast<int>(i), size_of(i));
    }
    for (size_t i = 1; i <= kFrames; ++i) {
      const std::string_view frame(static_cast<const char*>(frames[i]), size_of(i));
      EXPECT_EQ(frame.find_first_not_of(static_cast<char>(i)), std::string_view::npos) << i;
    }
    std::thread([&] {
      for (size_t i = 1; i <= kFrames; ++i) FreeTaskFrame(frames[i], size_of(i));
      void* const again = NewTaskFrame(size_of(kFrames));
      FreeTaskFrame(again, size_of(kFrames));
    }).join();
  }
}

}  // namespace
}  // namespace partita
