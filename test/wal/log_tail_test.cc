#include "wal/log_tail.h"

#include <gtest/gtest.h>

#include "test/wal/log_harness.h"

// covers: F25

namespace partita {
namespace {

constexpr uint64_t kTailSize = 64 << 10;

Task<void> MakeTail(FileSystem& files, Status* status) {
  *status = co_await files.CreateDirectory("log");
  if (status->ok()) *status = co_await files.FlushDirectory("");
  if (!status->ok()) co_return;
  const LogIdentity owner{kTestStore, kTestShard};
  auto tail = co_await LogTail::Open(files, "log", owner, Incarnation{1}, kTailSize, /*must_exist=*/false);
  *status = tail.status();
}

// A log that says it has a tail is damaged without one.
TEST(LogTailTest, ATailThatWasMadeIsThereAfterALossOfPower) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    SimDisk disk(seed);
    {
      SimRuntime runtime({.seed = seed}, disk);
      Status made;
      runtime.Run(MakeTail(runtime.files(), &made));
      ASSERT_TRUE(made.ok()) << made.ToString();
    }
    const std::vector<std::string> names = disk.ListFiles("log");
    ASSERT_EQ(names.size(), 1u);
    disk.CrashPower();
    ASSERT_EQ(disk.ListFiles("log"), names) << "seed " << seed;
    EXPECT_EQ(disk.ReadFile(names[0])->size(), kTailSize);
  }
}

}  // namespace
}  // namespace partita
