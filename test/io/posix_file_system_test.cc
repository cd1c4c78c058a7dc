#include "engine/io/posix_file_system.h"

#include <fcntl.h>
#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "test/io/real_world.h"
#include "test/support/bytes.h"

namespace partita {
namespace {

using testing::HasSubstr;
using testing::UnorderedElementsAre;

class PosixFileSystemTest : public RealWorldTest {
 protected:
  void Put(const std::string& path, std::string_view text) {
    auto file = Run(files().Open(path, OpenMode::kCreateOrOpen, FileIo::kBuffered));
    ASSERT_TRUE(file.ok()) << file.status().ToString();
    ASSERT_TRUE(Run((*file)->WriteAt(0, AsBytes(text))).ok());
    file->reset();
  }
  std::string Text(const std::string& path) {
    std::ifstream stream(directory_.path() + "/" + path);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  }
};
PARTITA_INSTANTIATE_CALLERS(PosixFileSystemTest);

TEST_P(PosixFileSystemTest, RenameReplacesTheTarget) {
  Put("new", "new");
  Put("old", "old");
  ASSERT_TRUE(Run(files().Rename("new", "old")).ok());
  ASSERT_TRUE(Run(files().FlushDirectory("")).ok());
  EXPECT_EQ(Text("old"), "new");
  EXPECT_FALSE(Run(files().Exists("new")).value());
  EXPECT_EQ(Run(files().Rename("new", "old")).code(), Code::kNotFound);
}

TEST_P(PosixFileSystemTest, RemoveTakesTheNameAndReportsAMissingOne) {
  Put("a", "x");
  EXPECT_TRUE(Run(files().Exists("a")).value());
  EXPECT_TRUE(Run(files().Remove("a")).ok());
  EXPECT_FALSE(Run(files().Exists("a")).value());
  EXPECT_EQ(Run(files().Remove("a")).code(), Code::kNotFound);
}

// A backup's copies are hard links.
TEST_P(PosixFileSystemTest, RemovingALargeFileLeavesWhatSharesItAndWhoReadsIt) {
  const std::string text(SpaceReturner::kFileBytesMin, 'x');
  Put("a", text);
  ASSERT_TRUE(Run(files().Share(files(), "a", "b")).ok());
  ASSERT_TRUE(Run(files().Remove("a")).ok());
  EXPECT_EQ(Text("b"), text);
  std::ifstream reader(directory_.path() + "/b");
  ASSERT_TRUE(Run(files().Remove("b")).ok());
  EXPECT_FALSE(Run(files().Exists("b")).value());
  // The reader's descriptor, and the one by which it is cut later.
  const std::string removed = directory_.path() + "/b (deleted)";
  int descriptors = 0;
  for (const auto& link : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    descriptors += std::filesystem::read_symlink(link.path(), gone) == removed ? 1 : 0;
  }
  const int root = open(directory_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  EXPECT_EQ(descriptors, SpaceReturner(root).spreads() ? 2 : 1);
  close(root);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(reader), {}), text);
}

TEST_P(PosixFileSystemTest, ListNamesFilesWithSizesAndNoDirectories) {
  ASSERT_TRUE(Run(files().CreateDirectory("d")).ok());
  ASSERT_TRUE(Run(files().CreateDirectory("d")).ok());
  ASSERT_TRUE(Run(files().CreateDirectory("d/inner")).ok());
  Put("d/a", "1");
  Put("d/b", "22");

  auto entries = Run(files().List("d"));

  ASSERT_TRUE(entries.ok());
  std::vector<std::pair<std::string, uint64_t>> found;
  for (const DirectoryEntry& entry : *entries) found.emplace_back(entry.name, entry.size);
  EXPECT_THAT(found, UnorderedElementsAre(std::pair("a", 1u), std::pair("b", 2u)));
  EXPECT_EQ(Run(files().List("missing")).code(), Code::kNotFound);
  EXPECT_EQ(Run(files().FlushDirectory("missing")).code(), Code::kNotFound);
}

TEST_P(PosixFileSystemTest, AFileInTheWayOfADirectoryIsAnError) {
  Put("d", "a file");
  EXPECT_EQ(Run(files().CreateDirectory("d")).code(), Code::kAlreadyExists);
}

TEST_P(PosixFileSystemTest, PathsThatLeadOutOfTheStoreAreRefused) {
  for (const char* path : {"", "/etc/passwd", "../x", "a/../../x", "a//b", "a/"}) {
    EXPECT_EQ(Run(files().Open(path, OpenMode::kCreateOrOpen, FileIo::kBuffered)).code(),
              Code::kInvalidArgument)
        << path;
    EXPECT_EQ(Run(files().Remove(path)).code(), Code::kInvalidArgument) << path;
  }
}

TEST_P(PosixFileSystemTest, WhatAMappingStoresTheFileShows) {
  Put("tail", std::string(2 * 4096, '.'));
  {
    auto mapping = files().Map("tail", 2 * 4096);
    ASSERT_TRUE(mapping.ok()) << mapping.status().ToString();
    ASSERT_EQ((*mapping)->bytes().size(), 2u * 4096);
    (*mapping)->bytes()[5000] = 'x';
    EXPECT_TRUE((*mapping)->Stored(5000, 1).ok());
  }
  EXPECT_EQ(Text("tail")[5000], 'x');
  EXPECT_EQ(files().Map("tail", 3 * 4096).code(), Code::kInvalidArgument);
  EXPECT_EQ(files().Map("missing", 4096).code(), Code::kNotFound);
}

TEST_P(PosixFileSystemTest, FreeBytesSeesTheDisk) {
  auto free_bytes = Run(files().FreeBytes());
  ASSERT_TRUE(free_bytes.ok());
  const auto space = std::filesystem::space(directory_.path());
  EXPECT_GT(*free_bytes, 0u);
  EXPECT_LE(*free_bytes, space.capacity);
}

TEST_P(PosixFileSystemTest, ASecondHandleOfOneProcessIsLockedOutUntilTheFirstGoes) {
  auto first = Run(files().Lock(0));
  ASSERT_TRUE(first.ok()) << first.status().ToString();
  auto second = Run(files().Lock(1'000'000));
  ASSERT_EQ(second.code(), Code::kLocked);
  EXPECT_THAT(second.status().message(), HasSubstr("this process (" + std::to_string(getpid()) + ")"));
  first->reset();
  EXPECT_TRUE(Run(files().Lock(0)).ok());
}

// A process that holds the lock until it is killed.
pid_t StartHolder(const std::string& directory) {
  int ready[2];
  EXPECT_EQ(pipe(ready), 0);
  pid_t child = fork();
  if (child == 0) {
    auto files = PosixFileSystem::Open(directory, BatchReads::kCallByCall);
    if (!files.ok()) _exit(1);
    auto lock = RunBlocking((*files)->Lock(0));
    if (!lock.ok()) _exit(2);
    (void)!write(ready[1], "x", 1);
    while (true) pause();
  }
  close(ready[1]);
  char byte;
  EXPECT_EQ(read(ready[0], &byte, 1), 1);
  close(ready[0]);
  return child;
}

// covers: F64
TEST(PosixFileSystemLockTest, AnotherProcessIsNamedAndItsDeathFreesTheStore) {
  TempDirectory directory;
  const pid_t holder = StartHolder(directory.path());
  auto files = PosixFileSystem::Open(directory.path(), BatchReads::kCallByCall);
  ASSERT_TRUE(files.ok());

  auto refused = RunBlocking((*files)->Lock(60'000'000));  // Tries more than once.
  kill(holder, SIGKILL);
  auto granted = RunBlocking((*files)->Lock(5'000'000'000));  // While the holder dies.
  waitpid(holder, nullptr, 0);

  ASSERT_EQ(refused.code(), Code::kLocked);
  EXPECT_THAT(refused.status().message(), HasSubstr("process " + std::to_string(holder)));
  EXPECT_THAT(refused.status().message(), HasSubstr(directory.path()));
  EXPECT_TRUE(granted.ok()) << granted.status().ToString();
}

}  // namespace
}  // namespace partita
