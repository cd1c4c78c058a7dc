#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <filesystem>

#include "api/partita.h"
#include "test/api/row_ledger.h"
#include "test/support/hostile_world.h"
#include "test/support/scratch_directory.h"

// covers: F54 F55 F56 F59 F64 F80: full disks, read-only places, too few descriptors, io_uring forbidden,
// a second process. Each gives a clear error that says what to do, and loses nothing acknowledged.

namespace partita {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kNoMount = "mounting a tmpfs needs CAP_SYS_ADMIN";
constexpr size_t kRowSize = 16'000;

Options OptionsAt(const std::string& directory, IoBackend backend, uint32_t shards = 1) {
  Options options;
  options.directory = directory;
  options.allow_volatile_storage = true;  // Wherever the tests run.
  options.create_if_missing = true;
  options.memory_bytes = 64u << 20;
  options.shards = shards;
  options.io_backend = backend;
  return options;
}

// A store made for the test, with some rows in tables and some in the log; closed.
void MakeStore(const Options& options, RowLedger* ledger) {
  Result<std::unique_ptr<Database>> database = Database::Open(options);
  ASSERT_TRUE(database.ok()) << database.status().ToString();
  Result<Table> table = (*database)->CreateTable("Rows");
  ASSERT_TRUE(table.ok()) << table.status().ToString();
  for (uint32_t n = 0; n < 50; ++n) ASSERT_TRUE(ledger->Put(*table, n, 1, 500).ok());
  ASSERT_TRUE((*database)->Flush().ok());
  for (uint32_t n = 25; n < 75; ++n) ASSERT_TRUE(ledger->Put(*table, n, 2, 500).ok());
  ASSERT_TRUE((*database)->Close().ok());
}

// "" when the store opens and holds what the ledger says.
std::string OpenAndCompare(const Options& options, const RowLedger& ledger) {
  Result<std::unique_ptr<Database>> database = Database::Open(options);
  if (!database.ok()) return database.status().ToString();
  Result<Table> table = (*database)->OpenTable("Rows");
  if (!table.ok()) return table.status().ToString();
  std::string difference = ledger.Compare(*table, /*scan=*/true);
  if (!difference.empty()) return difference;
  Result<VerifyReport> verified = (*database)->Verify();
  if (!verified.ok()) return verified.status().ToString();
  if (!verified->damages.empty()) return verified->damages[0];
  Status closed = (*database)->Close();
  return closed.ok() ? "" : closed.ToString();
}

std::string BackendName(const testing::TestParamInfo<IoBackend>& info) {
  return info.param == IoBackend::kUring ? "Uring" : "Threads";
}

bool UringIsForbidden() {
  ScratchDirectory probe;
  return Database::Open(OptionsAt(probe.path() + "/s", IoBackend::kUring)).code() == Code::kUnsupported;
}

// ---- A full disk.

class FullDiskTest : public testing::TestWithParam<IoBackend> {
 protected:
  void SetUp() override {
    if (!mount_.mounted()) GTEST_SKIP() << kNoMount;
    if (GetParam() == IoBackend::kUring && UringIsForbidden()) GTEST_SKIP() << "io_uring is forbidden here";
    Open();
    Result<Table> table = database_->CreateTable("Rows");
    ASSERT_TRUE(table.ok()) << table.status().ToString();
    table_ = std::make_unique<Table>(*table);
  }

  void Open() {
    Result<std::unique_ptr<Database>> database = Database::Open(StoreOptions());
    ASSERT_TRUE(database.ok()) << database.status().ToString();
    database_ = std::move(database).value();
  }
  Options StoreOptions() const { return OptionsAt(directory_.path() + "/store", GetParam()); }

  // Writes rows 0, 1, ... modulo `distinct` until the disk is full; in-doubt answers may come before.
  void WriteUntilNoSpace(uint32_t distinct) {
    WriteResult last;
    uint32_t writes = 0, in_doubt = 0;
    for (; writes < 20'000; ++writes) {
      last = ledger_.Put(*table_, writes % distinct, static_cast<int32_t>(writes + 1), kRowSize);
      if (last.ok()) continue;
      if (last.status.code() != Code::kUnknown) break;
      ++in_doubt;
    }
    ASSERT_EQ(last.status.code(), Code::kNoSpace) << "write " << writes << ": " << last.status.ToString();
    EXPECT_THAT(last.status.message(), HasSubstr("free space"));
    EXPECT_LE(in_doubt, 4u);
    std::printf("%u writes, %u in doubt, then %s\n", writes, in_doubt, last.status.ToString().c_str());
  }

  // The first write accepted comes within 10 s of the space, without a restart (F56).
  void ExpectWritesResume() {
    auto begin = std::chrono::steady_clock::now();
    double seconds = 0;
    WriteResult written;
    do {
      written = ledger_.Put(*table_, 0, 1'000'000, kRowSize);
      seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    } while (!written.ok() && seconds < 10);
    EXPECT_TRUE(written.ok()) << written.status.ToString();
    std::printf("writes resumed after %.2f s\n", seconds);
    for (uint32_t n = 0; n < 20; ++n) EXPECT_TRUE(ledger_.Put(*table_, n, 1'000'001, kRowSize).ok());
  }

  void ExpectAllIsThereNowAndAfterARestart() {
    EXPECT_EQ(ledger_.Compare(*table_, /*scan=*/true), "");
    EXPECT_TRUE(database_->Flush().ok());
    Status closed = database_->Close();
    EXPECT_TRUE(closed.ok()) << closed.ToString();
    EXPECT_EQ(OpenAndCompare(StoreOptions(), ledger_), "");
  }

  ScratchDirectory directory_;
  TmpfsMount mount_{directory_.path(), 384};  // Two log segments of 64 MiB, a tail, and tables.
  RowLedger ledger_;
  std::unique_ptr<Database> database_;
  std::unique_ptr<Table> table_;
};

INSTANTIATE_TEST_SUITE_P(Backends, FullDiskTest, testing::Values(IoBackend::kUring, IoBackend::kThreads),
                         BackendName);

// Tables no longer fit: memtables cannot be flushed.
TEST_P(FullDiskTest, WritesAreRefusedWhileReadsGoOnAndResumeWhenThereIsSpace) {
  for (uint32_t n = 0; n < 100; ++n) ASSERT_TRUE(ledger_.Put(*table_, n, 0, kRowSize).ok());
  ASSERT_TRUE(database_->Flush().ok());
  ASSERT_TRUE(mount_.Fill(24u << 20));

  WriteUntilNoSpace(/*distinct=*/20'000);
  // A scan over a key in doubt must say so (F15).
  EXPECT_EQ(ledger_.Compare(*table_, /*scan=*/!ledger_.has_doubts()), "");
  // Refused at once, not after a wait for memory that will not come.
  auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(ledger_.Put(*table_, 7, 5, kRowSize).status.code(), Code::kNoSpace);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));

  mount_.Drain();
  ExpectWritesResume();
  ExpectAllIsThereNowAndAfterARestart();
}

// Not one page is free. What the reserve is for is done; the rest is refused, and said so.
TEST_P(FullDiskTest, WithoutAFreePageMemtablesAreFlushedAndDeletesAndDropsTaken) {
  ASSERT_TRUE(database_->CreateTable("Other").ok());
  Result<Table> other = database_->OpenTable("Other");
  for (uint32_t n = 0; n < 200; ++n) ASSERT_TRUE(ledger_.Put(*table_, n, 1, kRowSize).ok());
  RowLedger others;
  for (uint32_t n = 0; n < 20; ++n) ASSERT_TRUE(others.Put(*other, n, 1, kRowSize).ok());
  EXPECT_GT(database_->Stats().reserve_bytes, 0u);
  ASSERT_TRUE(mount_.Fill(0));
  ASSERT_LT(mount_.FreeBytes(), 64u << 10);

  const Status flushed = database_->Flush();
  EXPECT_TRUE(flushed.ok()) << flushed.ToString();
  EXPECT_TRUE(database_->Stats().out_of_space);
  EXPECT_EQ(ledger_.Put(*table_, 0, 2, kRowSize).status.code(), Code::kNoSpace);
  EXPECT_EQ(database_->CreateTable("Third").status().code(), Code::kNoSpace);
  for (uint32_t n = 50; n < 100; ++n) {
    const WriteResult deleted = ledger_.Delete(*table_, n);
    ASSERT_TRUE(deleted.ok()) << deleted.status.ToString();
  }
  const Status dropped = database_->DeleteTable("Other");
  EXPECT_TRUE(dropped.ok()) << dropped.ToString();
  EXPECT_EQ(ledger_.Compare(*table_, /*scan=*/true), "");
  EXPECT_TRUE(database_->Flush().ok());
  Status closed = database_->Close();
  EXPECT_TRUE(closed.ok()) << closed.ToString();
  database_.reset();

  // What was left of the reserve is kept for this.
  ASSERT_TRUE(mount_.Fill(0));
  ASSERT_NO_FATAL_FAILURE(Open());
  Result<Table> again = database_->OpenTable("Rows");
  ASSERT_TRUE(again.ok()) << again.status().ToString();
  table_ = std::make_unique<Table>(*again);
  EXPECT_TRUE(database_->Stats().out_of_space);
  EXPECT_TRUE(ledger_.Delete(*table_, 100).ok());
  EXPECT_EQ(ledger_.Compare(*table_, /*scan=*/true), "");

  mount_.Drain();
  ExpectWritesResume();
  EXPECT_FALSE(database_->Stats().out_of_space);
  EXPECT_EQ(database_->Stats().reserve_bytes, database_->Stats().reserve_wanted);
  ExpectAllIsThereNowAndAfterARestart();
}

// The log no longer fits: overwriting few rows makes small tables, but the next segment cannot be made.
TEST_P(FullDiskTest, ALogThatCannotGrowRefusesWritesAndGoesOnWhenThereIsSpace) {
  ASSERT_TRUE(mount_.Fill(16u << 20));

  WriteUntilNoSpace(/*distinct=*/20);
  EXPECT_EQ(ledger_.Compare(*table_, /*scan=*/false), "");

  mount_.Drain();
  ExpectWritesResume();
  ExpectAllIsThereNowAndAfterARestart();
}

TEST_P(FullDiskTest, AStoreThatWasClosedOnAFullDiskKeepsWhatItAcknowledged) {
  ASSERT_TRUE(mount_.Fill(16u << 20));
  WriteUntilNoSpace(/*distinct=*/20'000);
  Status closed = database_->Close();
  EXPECT_TRUE(closed.ok()) << closed.ToString();
  ASSERT_TRUE(mount_.Fill(0));

  Result<std::unique_ptr<Database>> opened = Database::Open(StoreOptions());
  if (opened.ok()) {
    EXPECT_TRUE((*opened)->Close().ok());
  } else {
    EXPECT_EQ(opened.code(), Code::kNoSpace) << opened.status().ToString();
    EXPECT_THAT(opened.status().message(), AllOf(HasSubstr(directory_.path()), HasSubstr("No space left"),
                                                 HasSubstr("free space"), HasSubstr("read_only")));
    std::printf("%s\n", opened.status().ToString().c_str());
  }

  mount_.Drain();
  EXPECT_EQ(OpenAndCompare(StoreOptions(), ledger_), "");
}

// Another program took what the store had in reserve, once it was given back.
TEST_P(FullDiskTest, AStoreThatDoesNotOpenForLackOfSpaceOpensToRead) {
  for (uint32_t n = 0; n < 10; ++n) ASSERT_TRUE(ledger_.Put(*table_, n, 0, kRowSize).ok());
  ASSERT_TRUE(database_->Close().ok());
  ASSERT_EQ(unlink((StoreOptions().directory + "/RESERVE").c_str()), 0);
  ASSERT_TRUE(mount_.Fill(0));

  Options options = StoreOptions();
  const Result<std::unique_ptr<Database>> refused = Database::Open(options);
  ASSERT_EQ(refused.code(), Code::kNoSpace) << refused.status().ToString();
  EXPECT_THAT(refused.status().message(), AllOf(HasSubstr("free space"), HasSubstr("read_only")));
  options.read_only = true;
  options.create_if_missing = false;
  EXPECT_EQ(OpenAndCompare(options, ledger_), "");

  mount_.Drain();
  EXPECT_EQ(OpenAndCompare(StoreOptions(), ledger_), "");
}

// ---- Places that cannot be written.

TEST(ReadOnlyMountTest, AStoreOnAReadOnlyFileSystemSaysSoAndIsUnharmed) {
  ScratchDirectory directory;
  TmpfsMount mount(directory.path(), 256);
  if (!mount.mounted()) GTEST_SKIP() << kNoMount;
  Options options = OptionsAt(directory.path() + "/store", IoBackend::kThreads);
  RowLedger ledger;
  MakeStore(options, &ledger);
  ASSERT_TRUE(mount.Remount(/*read_only=*/true));

  Result<std::unique_ptr<Database>> opened = Database::Open(options);
  EXPECT_EQ(opened.code(), Code::kIoError);
  EXPECT_THAT(opened.status().message(), AllOf(HasSubstr(options.directory), HasSubstr("mounted read-only")));
  Options elsewhere = OptionsAt(directory.path() + "/new", IoBackend::kThreads);
  opened = Database::Open(elsewhere);
  EXPECT_EQ(opened.code(), Code::kIoError);
  EXPECT_THAT(opened.status().message(),
              AllOf(HasSubstr(elsewhere.directory), HasSubstr("mounted read-only")));

  ASSERT_TRUE(mount.Remount(/*read_only=*/false));
  EXPECT_EQ(OpenAndCompare(options, ledger), "");
}

// What Open says to a user who owns neither the directory nor the files. Root passes over
// permissions, so the child becomes somebody else first.
std::string OpenAsSomebodyElse(const Options& options) {
  return RunInChild([&]() -> std::string {
    constexpr uid_t kNobody = 65534;
    if (geteuid() == 0 && (setgid(kNobody) != 0 || setuid(kNobody) != 0)) return "cannot become nobody";
    return Database::Open(options).status().ToString();
  });
}

TEST(ReadOnlyDirectoryTest, ADirectoryOrFileWithoutPermissionIsNamed) {
  // Where everybody may go: the tree itself may lie below a directory that is root's alone.
  ScratchDirectory directory("/var/tmp");
  Options options = OptionsAt(directory.path() + "/store", IoBackend::kThreads);
  RowLedger ledger;
  MakeStore(options, &ledger);
  const std::string store = options.directory;
  ASSERT_EQ(chmod(directory.path().c_str(), 0755), 0);

  ASSERT_EQ(chmod(store.c_str(), 0555), 0);
  ASSERT_EQ(chmod((store + "/LOCK").c_str(), 0444), 0);
  EXPECT_THAT(OpenAsSomebodyElse(options),
              AllOf(HasSubstr("IoError"), HasSubstr(store), HasSubstr("Permission denied"),
                    HasSubstr("must belong to the user who runs this process")));
  ASSERT_EQ(chmod((store + "/LOCK").c_str(), 0666), 0);
  ASSERT_EQ(chmod((store + "/meta").c_str(), 0755), 0);
  ASSERT_EQ(chmod((store + "/meta/catalog").c_str(), 0), 0);
  EXPECT_THAT(OpenAsSomebodyElse(options),
              AllOf(HasSubstr("IoError"), HasSubstr("\"meta/catalog\""), HasSubstr("Permission denied")));

  ASSERT_EQ(chmod((store + "/meta/catalog").c_str(), 0600), 0);
  ASSERT_EQ(chmod(store.c_str(), 0700), 0);
  EXPECT_EQ(OpenAndCompare(options, ledger), "");
}

// ---- What the process may not have.

// In a child: opens with one more descriptor each time until it succeeds. Each refusal must name the
// limit, and none may harm the store.
std::string OpenWithMoreAndMoreDescriptors(const Options& options) {
  return RunInChild([&]() -> std::string {
    int free_one = dup(0);
    close(free_one);
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    for (rlim_t count = static_cast<rlim_t>(free_one); count < static_cast<rlim_t>(free_one) + 500; ++count) {
      limit.rlim_cur = count;
      if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return "setrlimit failed";
      Result<std::unique_ptr<Database>> opened = Database::Open(options);
      if (opened.ok()) {
        Status closed = (*opened)->Close();
        return closed.ok() ? "refused " + std::to_string(count - static_cast<rlim_t>(free_one))
                           : closed.ToString();
      }
      bool clear = opened.code() == Code::kResourceExhausted &&
                   opened.status().message().find("ulimit -n") != std::string::npos;
      if (!clear) return "with " + std::to_string(count) + " descriptors: " + opened.status().ToString();
    }
    return "never opened";
  });
}

class FewDescriptorsTest : public testing::TestWithParam<IoBackend> {};
INSTANTIATE_TEST_SUITE_P(Backends, FewDescriptorsTest,
                         testing::Values(IoBackend::kUring, IoBackend::kThreads), BackendName);

TEST_P(FewDescriptorsTest, EachRefusalNamesTheLimitAndTheStoreOpensAfterwards) {
  if (GetParam() == IoBackend::kUring && UringIsForbidden()) GTEST_SKIP() << "io_uring is forbidden here";
  ScratchDirectory directory;
  Options options = OptionsAt(directory.path() + "/store", GetParam());
  RowLedger ledger;
  MakeStore(options, &ledger);
  std::string answer = OpenWithMoreAndMoreDescriptors(options);
  EXPECT_THAT(answer, HasSubstr("refused "));
  EXPECT_NE(answer, "refused 0");
  std::printf("%s\n", answer.c_str());
  EXPECT_EQ(OpenAndCompare(options, ledger), "");
}

// From here on io_uring_setup fails in this process, as under a container runtime.
bool ForbidUring() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_setup, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program{4, filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(ForbiddenUringTest, OpenSaysWhyAndTheThreadBackendServesTheSameStore) {
  ScratchDirectory directory;
  Options options = OptionsAt(directory.path() + "/store", IoBackend::kThreads);
  RowLedger ledger;
  MakeStore(options, &ledger);
  std::string refusal = RunInChild([&]() -> std::string {
    if (!ForbidUring()) return "seccomp refused";
    options.io_backend = IoBackend::kUring;
    const Status refused = Database::Open(options).status();
    if (UnmetOf(refused) != Unmet::kIoUring) return "another reason: " + refused.ToString();
    options.io_backend = IoBackend::kThreads;
    std::string difference = OpenAndCompare(options, ledger);
    return difference.empty() ? refused.ToString() : difference;
  });
  EXPECT_THAT(refusal, AllOf(HasSubstr("Unsupported"), HasSubstr(options.directory), HasSubstr("io_uring"),
                             HasSubstr("seccomp"), HasSubstr("IoBackend::kThreads")));
  EXPECT_EQ(OpenAndCompare(options, ledger), "");
}

// ---- A second process.

TEST(SecondProcessTest, IsToldWhoHoldsTheStoreAndHarmsNothing) {
  ScratchDirectory directory;
  Options options = OptionsAt(directory.path() + "/store", IoBackend::kThreads);
  RowLedger ledger;
  MakeStore(options, &ledger);
  int held[2], release[2];
  ASSERT_EQ(pipe(held), 0);
  ASSERT_EQ(pipe(release), 0);
  pid_t holder = fork();
  ASSERT_GE(holder, 0);
  if (holder == 0) {
    close(release[1]);
    Result<std::unique_ptr<Database>> database = Database::Open(options);
    char byte = database.ok() ? 'y' : 'n';
    (void)!write(held[1], &byte, 1);
    (void)!read(release[0], &byte, 1);  // Ends when the parent closes its end.
    _exit(database.ok() && (*database)->Close().ok() ? 0 : 1);
  }
  char byte = 0;
  ASSERT_EQ(read(held[0], &byte, 1), 1);
  ASSERT_EQ(byte, 'y');

  Result<std::unique_ptr<Database>> second = Database::Open(options);
  EXPECT_EQ(second.code(), Code::kLocked);
  EXPECT_THAT(second.status().message(),
              AllOf(HasSubstr(options.directory), HasSubstr("process " + std::to_string(holder))));

  close(release[0]);
  close(release[1]);
  int status = -1;
  ASSERT_EQ(waitpid(holder, &status, 0), holder);
  EXPECT_EQ(status, 0);
  close(held[0]);
  close(held[1]);
  EXPECT_EQ(OpenAndCompare(options, ledger), "");
}

}  // namespace
}  // namespace partita
