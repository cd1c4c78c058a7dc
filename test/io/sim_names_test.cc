#include <gtest/gtest.h>

#include <set>
#include <string>

#include "engine/base/executor.h"
#include "engine/io/sim_runtime.h"

// covers: F25. What a loss of power leaves of second names and of renamed directories.

namespace partita {
namespace {

constexpr uint64_t kCuts = 200;

// The files that are there after power cuts of disks on which `work` was done.
template <typename Work>
std::set<std::vector<std::string>> AfterPowerCuts(Work work) {
  std::set<std::vector<std::string>> seen;
  for (uint64_t seed = 1; seed <= kCuts; ++seed) {
    SimDisk disk(seed);
    disk.WriteFile("a/f", "x");
    disk.WriteFile("b/g", "y");
    {
      SimRuntime runtime({.seed = seed}, disk);
      work(runtime.files());
    }
    disk.CrashPower();
    seen.insert(disk.ListFiles());
  }
  return seen;
}

Status Link(FileSystem& files, std::string from, std::string to) {
  return RunBlocking(files.Share(files, from, to));
}

using Files = std::vector<std::string>;

TEST(SimNamesTest, ASecondNameIsThereOrNotUntilItsDirectoryIsFlushed) {
  const auto unflushed = AfterPowerCuts([](FileSystem& files) {
    EXPECT_TRUE(Link(files, "a/f", "b/f").ok());
    EXPECT_TRUE(RunBlocking(files.FlushDirectory("a")).ok());
  });
  EXPECT_EQ(unflushed, (std::set<Files>{{"a/f", "b/f", "b/g"}, {"a/f", "b/g"}}));
  const auto flushed = AfterPowerCuts([](FileSystem& files) {
    EXPECT_TRUE(Link(files, "a/f", "b/f").ok());
    EXPECT_TRUE(RunBlocking(files.FlushDirectory("b")).ok());
  });
  EXPECT_EQ(flushed, (std::set<Files>{{"a/f", "b/f", "b/g"}}));
}

TEST(SimNamesTest, TheFirstNamesRemovalDoesNotKeepTheSecond) {
  const auto seen = AfterPowerCuts([](FileSystem& files) {
    EXPECT_TRUE(Link(files, "a/f", "b/f").ok());
    EXPECT_TRUE(RunBlocking(files.Remove("a/f")).ok());
    EXPECT_TRUE(RunBlocking(files.FlushDirectory("a")).ok());
  });
  EXPECT_EQ(seen, (std::set<Files>{{"b/f", "b/g"}, {"b/g"}}));
}

TEST(SimNamesTest, AFileLivesAndTakesSpaceAsLongAsItHasAName) {
  SimDisk disk(1);
  disk.WriteFile("a/f", std::string(5 * kPageSize, 'x'));
  disk.WriteFile("b/g", "y");
  const uint64_t used = disk.used_bytes();
  SimRuntime runtime({.seed = 1}, disk);
  ASSERT_TRUE(Link(runtime.files(), "a/f", "b/f").ok());
  EXPECT_EQ(Link(runtime.files(), "a/f", "b/f").code(), Code::kAlreadyExists);
  EXPECT_EQ(Link(runtime.files(), "a/none", "b/h").code(), Code::kNotFound);
  EXPECT_EQ(disk.used_bytes(), used);
  ASSERT_TRUE(RunBlocking(runtime.files().Remove("a/f")).ok());
  EXPECT_EQ(disk.used_bytes(), used);
  EXPECT_EQ(disk.ReadFile("b/f").value().size(), 5 * kPageSize);
  ASSERT_TRUE(RunBlocking(runtime.files().Remove("b/f")).ok());
  EXPECT_EQ(disk.used_bytes(), used - 5 * kPageSize);
}

// With what has happened in it since, which the flush of its parent does not keep.
TEST(SimNamesTest, ARenamedDirectoryHasOneOfItsNamesUntilItsParentIsFlushed) {
  const auto unflushed =
      AfterPowerCuts([](FileSystem& files) { EXPECT_TRUE(RunBlocking(files.Rename("a", "c")).ok()); });
  EXPECT_EQ(unflushed, (std::set<Files>{{"a/f", "b/g"}, {"b/g", "c/f"}}));
  const auto flushed = AfterPowerCuts([](FileSystem& files) {
    EXPECT_TRUE(RunBlocking(files.Rename("a", "c")).ok());
    EXPECT_TRUE(Link(files, "b/g", "c/g").ok());
    EXPECT_TRUE(RunBlocking(files.FlushDirectory("")).ok());
  });
  EXPECT_EQ(flushed, (std::set<Files>{{"b/g", "c/f"}, {"b/g", "c/f", "c/g"}}));
}

}  // namespace
}  // namespace partita
