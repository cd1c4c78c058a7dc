#include "engine/io/space_returner.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "test/io/real_world.h"

namespace partita {
namespace {

constexpr uint64_t kMiB = 1 << 20;

class SpaceReturnerTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!returner_.spreads()) GTEST_SKIP() << "nothing is spread on the file system of " << directory_.path();
  }

  // A file with content, which no name leads to any more unless it is kept.
  int FileOf(uint64_t bytes, bool keep_name = false) {
    const std::string path = directory_.path() + "/file";
    const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    EXPECT_GE(descriptor, 0);
    const std::vector<char> block(kMiB, 'x');
    for (uint64_t at = 0; at < bytes; at += kMiB) {
      EXPECT_EQ(pwrite(descriptor, block.data(), kMiB, static_cast<off_t>(at)), static_cast<ssize_t>(kMiB));
    }
    if (!keep_name) EXPECT_EQ(unlink(path.c_str()), 0);
    return descriptor;
  }
  // Another descriptor of the same file, with a life of its own.
  static int OpenAgain(int descriptor) {
    return open(("/proc/self/fd/" + std::to_string(descriptor)).c_str(), O_RDONLY | O_CLOEXEC);
  }
  static uint64_t SizeOf(int descriptor) {
    struct stat information {};
    EXPECT_EQ(fstat(descriptor, &information), 0);
    return static_cast<uint64_t>(information.st_size);
  }
  // Whether nothing waits any more before long.
  bool Ends() {
    for (int i = 0; i < 3'000 && returner_.waiting_bytes() > 0; ++i) Pause();
    return returner_.waiting_bytes() == 0;
  }
  void TearDown() override { close(root_); }
  static void Pause() { std::this_thread::sleep_for(std::chrono::milliseconds(10)); }

  TempDirectory directory_;
  const int root_ = open(directory_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  SpaceReturner returner_{root_};
};

TEST_F(SpaceReturnerTest, GivesAFileBackInPieces) {
  const int descriptor = FileOf(128 * kMiB);
  // Shares the open file, so that it is nobody else's.
  const int same = dup(descriptor);
  returner_.Take(descriptor);
  EXPECT_GT(returner_.waiting_bytes(), 0u);
  uint64_t before = 128 * kMiB, cuts = 0;
  for (int i = 0; i < 30'000 && before > 0; ++i) {
    const uint64_t size = SizeOf(same);
    EXPECT_LE(size, before);
    cuts += size < before ? 1 : 0;
    before = size;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(before, 0u);
  EXPECT_GT(cuts, 3u);
  EXPECT_TRUE(Ends());
  close(same);
}

// F25: who has it open reads on.
TEST_F(SpaceReturnerTest, LeavesAFileToItsReaders) {
  const int descriptor = FileOf(8 * kMiB);
  const int reader = OpenAgain(descriptor);
  ASSERT_GE(reader, 0);
  returner_.Take(descriptor);
  const int other = FileOf(8 * kMiB);
  returner_.Take(other);  // Behind the first, which it does not wait for.
  for (int i = 0; i < 3'000 && returner_.waiting_bytes() > 8 * kMiB; ++i) Pause();
  EXPECT_EQ(returner_.waiting_bytes(), 8 * kMiB);
  EXPECT_EQ(SizeOf(reader), 8 * kMiB);
  char last = 0;
  EXPECT_EQ(pread(reader, &last, 1, 8 * kMiB - 1), 1);
  EXPECT_EQ(last, 'x');
  close(reader);
  EXPECT_TRUE(Ends());
}

TEST_F(SpaceReturnerTest, LeavesAFileThatHasAnotherName) {
  const int descriptor = FileOf(8 * kMiB, /*keep_name=*/true);
  const int reader = dup(descriptor);
  returner_.Take(descriptor);
  EXPECT_EQ(returner_.waiting_bytes(), 0u);
  EXPECT_EQ(SizeOf(reader), 8 * kMiB);
  close(reader);
}

TEST_F(SpaceReturnerTest, ClosesASmallFileAtOnce) {
  const int descriptor = FileOf(kMiB);
  returner_.Take(descriptor);
  EXPECT_EQ(returner_.waiting_bytes(), 0u);
  EXPECT_EQ(fcntl(descriptor, F_GETFD), -1);
}

TEST_F(SpaceReturnerTest, EndsWithWhatWaits) {
  const int shared = FileOf(8 * kMiB);
  const int reader = OpenAgain(shared);
  const int alone = FileOf(128 * kMiB);
  const int same = dup(alone);
  {
    SpaceReturner returner(root_);
    returner.Take(shared);
    returner.Take(alone);
    EXPECT_GT(returner.waiting_bytes(), 8 * kMiB);
  }
  EXPECT_EQ(fcntl(shared, F_GETFD), -1);
  EXPECT_EQ(fcntl(alone, F_GETFD), -1);
  EXPECT_EQ(SizeOf(reader), 8 * kMiB);
  EXPECT_GT(SizeOf(same), 0u);  // It did not wait for that.
  close(reader);
  close(same);
}

// A process that has not said what SIGIO means to it is not ended by it.
TEST_F(SpaceReturnerTest, WhoOpensAFileByItsDescriptorEndsNobody) {
  const int descriptor = FileOf(16 * kMiB);
  const int same = dup(descriptor);
  returner_.Take(descriptor);
  while (SizeOf(same) > 0) {
    const int again = OpenAgain(same);
    EXPECT_GE(again, 0);
    close(again);
  }
  close(same);
}

}  // namespace
}  // namespace partita
