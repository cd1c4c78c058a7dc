#include "engine/io/posix_file.h"

#include <fcntl.h>
#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "engine/base/aligned_buffer.h"
#include "test/io/real_world.h"
#include "test/support/bytes.h"

namespace partita {
namespace {

using testing::HasSubstr;

class PosixFileTest : public RealWorldTest {
 protected:
  std::unique_ptr<File> OpenFile(std::string_view path, OpenMode mode, FileIo io) {
    auto opened = Run(files().Open(path, mode, io));
    EXPECT_TRUE(opened.ok()) << opened.status().ToString();
    return opened.ok() ? std::move(opened).value() : nullptr;
  }
};
PARTITA_INSTANTIATE_CALLERS(PosixFileTest);

// Pages whose every 4-byte word tells its place.
AlignedBuffer NumberedPages(size_t pages) {
  AlignedBuffer buffer(pages * kPageSize);
  auto* words = reinterpret_cast<uint32_t*>(buffer.data());
  std::iota(words, words + buffer.size() / sizeof(uint32_t), 0u);
  return buffer;
}

TEST_P(PosixFileTest, WhatWasWrittenIsReadBack) {
  auto file = OpenFile("a", OpenMode::kCreate, FileIo::kBuffered);
  ASSERT_TRUE(Run(file->WriteAt(0, AsBytes("hello"))).ok());
  ASSERT_TRUE(Run(file->WriteAndFlush(5, AsBytes(" world"))).ok());
  ASSERT_TRUE(Run(file->Flush()).ok());

  std::string text(11, '\0');
  auto count = Run(file->ReadAt(0, {reinterpret_cast<uint8_t*>(text.data()), text.size()}));

  ASSERT_TRUE(count.ok());
  EXPECT_EQ(*count, 11u);
  EXPECT_EQ(text, "hello world");
  EXPECT_EQ(Run(file->Size()).value(), 11u);
  EXPECT_EQ(file->path(), "a");
}

TEST_P(PosixFileTest, AReadAtTheEndIsShortAndPastItIsEmpty) {
  auto file = OpenFile("a", OpenMode::kCreate, FileIo::kBuffered);
  ASSERT_TRUE(Run(file->WriteAt(0, AsBytes("0123456789"))).ok());
  uint8_t buffer[8];

  EXPECT_EQ(Run(file->ReadAt(6, buffer)).value(), 4u);
  EXPECT_EQ(Run(file->ReadAt(10, buffer)).value(), 0u);
  EXPECT_EQ(Run(file->ReadAt(1000, buffer)).value(), 0u);
  EXPECT_EQ(Run(file->ReadAt(0, std::span<uint8_t>())).value(), 0u);
}

// covers: F63
TEST_P(PosixFileTest, DirectReadsAndWritesCarryWholePages) {
  auto file = OpenFile("a", OpenMode::kCreate, FileIo::kDirect);
  AlignedBuffer written = NumberedPages(64);
  ASSERT_TRUE(Run(file->WriteAndFlush(0, written.span())).ok());

  AlignedBuffer read(16 * kPageSize);
  auto count = Run(file->ReadAt(8 * kPageSize, read.span()));

  ASSERT_TRUE(count.ok());
  EXPECT_EQ(*count, read.size());
  EXPECT_EQ(std::memcmp(read.data(), written.data() + 8 * kPageSize, read.size()), 0);
}

TEST_P(PosixFileTest, ADirectReadEndsWhereAFileOfOddLengthEnds) {
  auto file = OpenFile("a", OpenMode::kCreate, FileIo::kDirect);
  AlignedBuffer written = NumberedPages(3);
  ASSERT_TRUE(Run(file->WriteAt(0, written.span())).ok());
  ASSERT_TRUE(Run(file->Truncate(2 * kPageSize + 1001)).ok());

  AlignedBuffer read(8 * kPageSize);
  auto count = Run(file->ReadAt(kPageSize, read.span()));

  ASSERT_TRUE(count.ok()) << count.status().ToString();
  EXPECT_EQ(*count, kPageSize + 1001);
  EXPECT_EQ(std::memcmp(read.data(), written.data() + kPageSize, *count), 0);
}

TEST_P(PosixFileTest, ABatchFillsEveryBuffer) {
  constexpr size_t kPages = 300;  // More than any ring here has places for.
  auto file = OpenFile("a", OpenMode::kCreate, FileIo::kDirect);
  AlignedBuffer written = NumberedPages(kPages);
  ASSERT_TRUE(Run(file->WriteAt(0, written.span())).ok());
  AlignedBuffer read(kPages * kPageSize);
  std::vector<FileRead> reads;
  for (size_t i = 0; i < kPages; ++i) {
    const size_t page = i * 7 % kPages;
    reads.push_back({page * kPageSize, read.span().subspan(page * kPageSize, kPageSize)});
  }

  Status status = Run(file->ReadBatch(reads));

  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(std::memcmp(read.data(), written.data(), read.size()), 0);
  EXPECT_TRUE(Run(file->ReadBatch({})).ok());
}

TEST_P(PosixFileTest, ABatchReadPastTheEndIsAnErrorThatSaysWhere) {
  auto file = OpenFile("a", OpenMode::kCreate, FileIo::kBuffered);
  ASSERT_TRUE(Run(file->WriteAt(0, AsBytes("0123456789"))).ok());
  uint8_t first[4], second[4];
  const FileRead reads[] = {{0, first}, {8, second}};

  Status status = Run(file->ReadBatch(reads));

  EXPECT_EQ(status.code(), Code::kIoError);
  EXPECT_THAT(status.message(),
              HasSubstr("read of 4 bytes at offset 8 of \"a\": the file ends at offset 10"));
}

TEST_P(PosixFileTest, TruncateCutsAndGrowsWithZeros) {
  auto file = OpenFile("a", OpenMode::kCreate, FileIo::kBuffered);
  ASSERT_TRUE(Run(file->WriteAt(0, AsBytes("0123456789"))).ok());
  ASSERT_TRUE(Run(file->Truncate(4)).ok());
  ASSERT_TRUE(Run(file->Truncate(6)).ok());

  char text[16] = "xxxxxxxxxxxxxxx";
  auto count = Run(file->ReadAt(0, {reinterpret_cast<uint8_t*>(text), 16}));

  EXPECT_EQ(count.value(), 6u);
  EXPECT_EQ(std::string_view(text, 6), std::string_view("0123\0\0", 6));
}

TEST_P(PosixFileTest, DroppingTheCacheKeepsTheBytes) {
  auto file = OpenFile("a", OpenMode::kCreate, FileIo::kBuffered);
  ASSERT_TRUE(Run(file->WriteAndFlush(0, AsBytes("kept"))).ok());
  ASSERT_TRUE(Run(file->DropCache()).ok());
  char text[4];
  EXPECT_EQ(Run(file->ReadAt(0, {reinterpret_cast<uint8_t*>(text), 4})).value(), 4u);
  EXPECT_EQ(std::string_view(text, 4), "kept");
}

TEST_P(PosixFileTest, OpenModesDecideAboutExistence) {
  EXPECT_EQ(Run(files().Open("a", OpenMode::kRead, FileIo::kBuffered)).code(), Code::kNotFound);
  EXPECT_EQ(Run(files().Open("a", OpenMode::kReadWrite, FileIo::kDirect)).code(), Code::kNotFound);
  EXPECT_NE(OpenFile("a", OpenMode::kCreateOrOpen, FileIo::kDirect), nullptr);
  EXPECT_NE(OpenFile("a", OpenMode::kCreateOrOpen, FileIo::kDirect), nullptr);
  EXPECT_EQ(Run(files().Open("a", OpenMode::kCreate, FileIo::kDirect)).code(), Code::kAlreadyExists);
  EXPECT_NE(OpenFile("a", OpenMode::kRead, FileIo::kDirect), nullptr);

  struct stat information {};
  ASSERT_EQ(stat((directory_.path() + "/a").c_str(), &information), 0);
  EXPECT_EQ(information.st_mode & 0777, 0600u);
}

TEST_P(PosixFileTest, AFailedCallNamesOperationPathAndReason) {
  auto missing = Run(files().Open("tables/x", OpenMode::kRead, FileIo::kBuffered));
  EXPECT_THAT(missing.status().message(), HasSubstr("open \"tables/x\": No such file or directory"));

  ASSERT_NE(OpenFile("a", OpenMode::kCreate, FileIo::kBuffered), nullptr);
  auto reader = OpenFile("a", OpenMode::kRead, FileIo::kBuffered);
  Status refused = Run(reader->WriteAt(4096, AsBytes("x")));
  EXPECT_EQ(refused.code(), Code::kIoError);
  EXPECT_THAT(refused.message(), HasSubstr("write at offset 4096 of \"a\": Bad file descriptor"));
  Status both = Run(reader->WriteAndFlush(0, AsBytes("x")));
  EXPECT_EQ(both.code(), Code::kIoError);
  EXPECT_THAT(both.message(), HasSubstr("write at offset 0 of \"a\""));
}

// covers: F20 F61
// The null device takes every write and refuses every flush.
TEST_P(PosixFileTest, AFlushThatTheKernelRefusesIsAnError) {
  std::filesystem::create_symlink("/dev/null", directory_.path() + "/null");
  auto file = OpenFile("null", OpenMode::kReadWrite, FileIo::kBuffered);
  ASSERT_TRUE(Run(file->WriteAt(0, AsBytes("lost"))).ok());

  Status alone = Run(file->Flush());
  Status behind_a_write = Run(file->WriteAndFlush(0, AsBytes("lost")));
  Status behind_nothing = Run(file->WriteAndFlush(0, {}));

  for (const Status& status : {alone, behind_a_write, behind_nothing}) {
    EXPECT_EQ(status.code(), Code::kIoError) << status.ToString();
    EXPECT_THAT(status.message(), HasSubstr("fdatasync \"null\": Invalid argument"));
  }
}

// covers: F20 F61
// On the ring a pipe takes of a large write what it has room for, the rest once somebody reads, and refuses
// every flush. pwrite, which the others call, knows no pipes.
TEST_P(PosixFileTest, AFlushThatTheKernelRefusesBehindAShortWriteIsAnError) {
  const bool on_ring = GetParam() == Caller::kRingWorker;
  const std::string path = directory_.path() + "/pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  auto file = OpenFile("pipe", OpenMode::kReadWrite, FileIo::kBuffered);
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(descriptor, 0);
  std::thread reader([descriptor] {
    std::vector<uint8_t> buffer(kPageSize);
    while (read(descriptor, buffer.data(), buffer.size()) > 0) continue;  // Until the writer closes it.
  });

  Status refused = Run(file->WriteAndFlush(0, NumberedPages(256).span()));

  file.reset();
  reader.join();
  close(descriptor);
  EXPECT_EQ(refused.code(), Code::kIoError) << refused.ToString();
  EXPECT_THAT(refused.message(), HasSubstr(on_ring ? "fdatasync \"pipe\"" : "write at offset 0 of \"pipe\""));
}

TEST_P(PosixFileTest, AFullDiskIsNoSpaceAndReadsGoOn) {
  const std::string mount_point = directory_.path() + "/small";
  ASSERT_TRUE(Run(files().CreateDirectory("small")).ok());
  if (mount("tmpfs", mount_point.c_str(), "tmpfs", 0, "size=1m") != 0) {
    GTEST_SKIP() << "mounting a tmpfs needs CAP_SYS_ADMIN";
  }
  {
    auto file = OpenFile("small/a", OpenMode::kCreate, FileIo::kDirect);
    AlignedBuffer half = NumberedPages(128);
    EXPECT_TRUE(Run(file->WriteAndFlush(0, half.span())).ok());
    AlignedBuffer more = NumberedPages(512);

    Status full = Run(file->WriteAndFlush(half.size(), more.span()));

    EXPECT_EQ(full.code(), Code::kNoSpace) << full.ToString();
    EXPECT_THAT(full.message(), HasSubstr("of \"small/a\": No space left on device"));
    AlignedBuffer read(half.size());
    EXPECT_EQ(Run(file->ReadAt(0, read.span())).value(), read.size());
    EXPECT_EQ(std::memcmp(read.data(), half.data(), read.size()), 0);
    // Where nothing fits at all the write fails whole, and with space it goes on; no failure leaves a
    // completion behind that another call would take for its own.
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(Run(file->WriteAndFlush(8 * half.size(), half.span())).code(), Code::kNoSpace);
      EXPECT_EQ(Run(file->WriteAndFlush(half.size(), more.span())).code(), Code::kNoSpace);
      EXPECT_TRUE(Run(file->WriteAndFlush(0, half.span())).ok());
    }
    ASSERT_TRUE(Run(file->Truncate(half.size())).ok());
    EXPECT_TRUE(Run(file->WriteAndFlush(half.size(), half.span())).ok());
    // Space that is set aside is nobody else's, and writing there takes none.
    ASSERT_TRUE(Run(file->Truncate(0)).ok());
    EXPECT_EQ(Run(file->Allocate(3 * half.size())).code(), Code::kNoSpace);
    ASSERT_TRUE(Run(file->Allocate(half.size())).ok());
    EXPECT_EQ(Run(file->Size()).value(), half.size());
    auto another = OpenFile("small/b", OpenMode::kCreate, FileIo::kDirect);
    EXPECT_EQ(Run(another->WriteAt(0, more.span())).code(), Code::kNoSpace);
    EXPECT_TRUE(Run(file->WriteAndFlush(0, half.span())).ok());
    another.reset();
    file.reset();
  }
  EXPECT_EQ(umount2(mount_point.c_str(), MNT_DETACH), 0);
}

TEST_P(PosixFileTest, RunningOutOfDescriptorsSaysWhichLimitToRaise) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = dup(0);  // The lowest free number: all below it are in use.
  ASSERT_GE(next, 0);
  close(next);
  rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(next);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  auto refused = Run(files().Open("a", OpenMode::kCreate, FileIo::kBuffered));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);

  EXPECT_EQ(refused.code(), Code::kResourceExhausted);
  EXPECT_THAT(refused.status().message(), HasSubstr("ulimit -n"));
}

TEST_P(PosixFileTest, ManyWritersAtOnceEachKeepTheirBytes) {
  auto file = OpenFile("a", OpenMode::kCreate, FileIo::kDirect);
  AlignedBuffer pages = NumberedPages(64);
  std::vector<Status> statuses(64);
  auto write = [](File& file, uint64_t offset, std::span<const uint8_t> bytes, Status* out) -> Task<void> {
    *out = co_await file.WriteAndFlush(offset, bytes);
  };
  TaskGroup group;
  Executor& worker = runtime_->shard_executor(ShardId(0));
  for (size_t i = 0; i < statuses.size(); ++i) {
    group.Spawn(worker,
                write(*file, i * kPageSize, pages.span().subspan(i * kPageSize, kPageSize), &statuses[i]));
  }
  RunBlocking(group.Join());

  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.ToString();
  AlignedBuffer read(pages.size());
  ASSERT_EQ(Run(file->ReadAt(0, read.span())).value(), read.size());
  EXPECT_EQ(std::memcmp(read.data(), pages.data(), read.size()), 0);
}

// ramfs knows no O_DIRECT.
TEST_P(PosixFileTest, WhereDirectIoIsRefusedFilesGoThroughTheCacheAndItIsTold) {
  const std::string mount_point = directory_.path() + "/ram";
  ASSERT_TRUE(Run(files().CreateDirectory("ram")).ok());
  if (mount("ramfs", mount_point.c_str(), "ramfs", 0, nullptr) != 0) {
    GTEST_SKIP() << "mounting a ramfs needs CAP_SYS_ADMIN";
  }
  auto& posix_files = static_cast<PosixFileSystem&>(files());
  ASSERT_NE(OpenFile("direct", OpenMode::kCreate, FileIo::kDirect), nullptr);
  EXPECT_FALSE(posix_files.direct_io_refused());
  {
    auto file = OpenFile("ram/a", OpenMode::kCreate, FileIo::kDirect);
    EXPECT_TRUE(posix_files.direct_io_refused());
    AlignedBuffer pages = NumberedPages(4);
    EXPECT_TRUE(Run(file->WriteAndFlush(0, pages.span())).ok());
    AlignedBuffer read(pages.size());
    EXPECT_EQ(Run(file->ReadAt(0, read.span())).value(), read.size());
    EXPECT_EQ(std::memcmp(read.data(), pages.data(), read.size()), 0);
    EXPECT_EQ(Run(files().Open("ram/a", OpenMode::kCreate, FileIo::kDirect)).code(), Code::kAlreadyExists);
  }
  EXPECT_EQ(umount2(mount_point.c_str(), MNT_DETACH), 0);
}

// Batch reads keep a ring per thread.
class PosixFileBatchTest : public testing::Test {
 protected:
  void SetUp() override {
    auto files = PosixFileSystem::Open(directory_.path(), BatchReads::kRing);
    ASSERT_TRUE(files.ok());
    files_ = std::move(*files);
    auto file = RunBlocking(files_->Open("a", OpenMode::kCreate, FileIo::kBuffered));
    ASSERT_TRUE(file.ok());
    file_ = std::move(*file);
    ASSERT_TRUE(RunBlocking(file_->WriteAt(0, AsBytes("0123456789"))).ok());
  }

  TempDirectory directory_;
  std::unique_ptr<PosixFileSystem> files_;
  std::unique_ptr<File> file_;
  uint8_t first_[4] = {}, second_[4] = {};
  const FileRead reads_[2] = {{0, first_}, {4, second_}};
};

// The ring does not survive a fork.
using PosixFileForkTest = PosixFileBatchTest;
TEST_F(PosixFileForkTest, AForkedChildReadsBatchesAndExits) {
  ASSERT_TRUE(RunBlocking(file_->ReadBatch(reads_)).ok());
  const pid_t child = fork();
  if (child == 0) exit(RunBlocking(file_->ReadBatch(reads_)).ok() && second_[0] == '4' ? 0 : 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(RunBlocking(file_->ReadBatch(reads_)).ok());  // The parent's ring is unharmed.
}

// Made before the ring that the thread keeps, so it ends after it.
struct ReadsAtItsEnd {
  File* file = nullptr;
  std::span<const FileRead> reads;
  Status* result = nullptr;
  ~ReadsAtItsEnd() {
    if (file != nullptr) *result = RunBlocking(file->ReadBatch(reads));
  }
};

using PosixFileThreadEndTest = PosixFileBatchTest;
TEST_F(PosixFileThreadEndTest, AThreadReadsBatchesAtItsVeryEnd) {
  Status at_end = Status::IoError("not read");
  std::thread([&] {
    thread_local ReadsAtItsEnd last;
    last.file = file_.get();
    last.reads = reads_;
    last.result = &at_end;
    EXPECT_TRUE(RunBlocking(file_->ReadBatch(reads_)).ok());
    second_[0] = 0;
  }).join();
  EXPECT_TRUE(at_end.ok()) << at_end.ToString();
  EXPECT_EQ(second_[0], '4');
}

TEST(PosixFileDeathTest, AnUnalignedDirectReadIsAProgrammersError) {
  TempDirectory directory;
  auto files = PosixFileSystem::Open(directory.path(), BatchReads::kCallByCall);
  ASSERT_TRUE(files.ok());
  auto file = RunBlocking((*files)->Open("a", OpenMode::kCreate, FileIo::kDirect));
  ASSERT_TRUE(file.ok());
  AlignedBuffer page(kPageSize);
  EXPECT_DEATH((void)RunBlocking((*file)->ReadAt(100, page.span())), "kPageSize");
}

}  // namespace
}  // namespace partita
