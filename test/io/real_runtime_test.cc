#include "engine/io/real_runtime.h"

#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <set>

#include "engine/io/device_probe.h"
#include "test/io/real_world.h"

namespace partita {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// From here on a system call fails with `error` in this process; io_uring_setup, as under a container
// runtime.
bool Forbid(uint32_t call, int error) {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<uint32_t>(error)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program{4, filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// What Open says, in a child where a system call fails with `error`: "code: message".
std::string OpenWhereForbidden(int error, RealRuntimeOptions options, uint32_t call = __NR_io_uring_setup) {
  int answer[2];
  if (pipe(answer) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    std::string text = "seccomp refused";
    if (Forbid(call, error)) {
      auto opened = RealRuntime::Open(options);
      text = opened.ok() ? std::string("opened as ") + (*opened)->name() : opened.status().ToString();
    }
    (void)!write(answer[1], text.data(), text.size());
    _exit(0);
  }
  close(answer[1]);
  std::string text;
  char piece[512];
  for (ssize_t size; (size = read(answer[0], piece, sizeof piece)) > 0;) text.append(piece, size);
  close(answer[0]);
  waitpid(child, nullptr, 0);
  return text;
}

// covers: F59
TEST(RealRuntimeTest, WhereIoUringIsForbiddenOpenSaysWhyAndWhatToDo) {
  TempDirectory directory;
  RealRuntimeOptions options;
  options.directory = directory.path();
  for (int error : {EPERM, ENOSYS, ENOMEM}) {
    const std::string answer = OpenWhereForbidden(error, options);
    EXPECT_THAT(answer, AllOf(HasSubstr("Unsupported"), HasSubstr("io_uring cannot be set up"),
                              HasSubstr("errno " + std::to_string(error)), HasSubstr("--io threads")));
  }
  EXPECT_THAT(OpenWhereForbidden(EPERM, options), HasSubstr("seccomp"));
  EXPECT_THAT(OpenWhereForbidden(ENOSYS, options), HasSubstr("seccomp"));
  EXPECT_THAT(OpenWhereForbidden(ENOMEM, options), HasSubstr("ulimit -l"));
}

// covers: F59
TEST(RealRuntimeTest, TheThreadBackendNeedsNoIoUring) {
  TempDirectory directory;
  RealRuntimeOptions options;
  options.directory = directory.path();
  options.backend = IoBackend::kThreads;
  EXPECT_EQ(OpenWhereForbidden(EPERM, options), "opened as threads");
}

TEST(RealRuntimeTest, ADirectoryIsCreatedOnlyOnRequest) {
  TempDirectory parent;
  RealRuntimeOptions options;
  options.directory = parent.path() + "/store";
  options.backend = IoBackend::kThreads;
  auto missing = RealRuntime::Open(options);
  ASSERT_EQ(missing.code(), Code::kNotFound);
  EXPECT_THAT(missing.status().message(), HasSubstr(options.directory));
  EXPECT_FALSE(std::filesystem::exists(options.directory));

  options.create_directory = true;
  ASSERT_TRUE(RealRuntime::Open(options).ok());
  struct stat information {};
  ASSERT_EQ(stat(options.directory.c_str(), &information), 0);
  EXPECT_EQ(information.st_mode & 0777, 0700u);
  EXPECT_TRUE(RealRuntime::Open(options).ok());  // It may exist.

  options.directory = parent.path() + "/a/b";
  EXPECT_EQ(RealRuntime::Open(options).code(), Code::kNotFound);
}

// covers: F25 F29
TEST(RealRuntimeTest, ADirectoryWhoseNameCannotBeMadeDurableIsNotOpened) {
  TempDirectory parent;
  RealRuntimeOptions options;
  options.directory = parent.path() + "/store";
  options.backend = IoBackend::kThreads;
  options.create_directory = true;
  const auto unflushed = AllOf(HasSubstr("IoError"), HasSubstr("flush"));
  EXPECT_THAT(OpenWhereForbidden(EIO, options, __NR_fsync), unflushed);
  ASSERT_TRUE(std::filesystem::exists(options.directory));
  EXPECT_THAT(OpenWhereForbidden(EIO, options, __NR_fsync), unflushed);  // That it is there proves nothing.
  options.directory += '/';  // It has the same name, in the same folder.
  EXPECT_THAT(OpenWhereForbidden(EIO, options, __NR_fsync),
              AllOf(unflushed, HasSubstr(parent.path()), Not(HasSubstr("/store"))));
  EXPECT_TRUE(RealRuntime::Open(options).ok());
}

TEST(RealRuntimeTest, OptionsOutOfBoundsAreRefusedByName) {
  TempDirectory directory;
  RealRuntimeOptions good;
  good.directory = directory.path();
  RealRuntimeOptions bad = good;
  bad.shards = 0;
  EXPECT_THAT(RealRuntime::Open(bad).status().message(), HasSubstr("option shards is 0"));
  bad = good;
  bad.idle_helpers = 1000;
  EXPECT_THAT(RealRuntime::Open(bad).status().message(), HasSubstr("option idle_helpers is 1000"));
  bad = good;
  bad.ordinary_helpers = 0;
  EXPECT_EQ(RealRuntime::Open(bad).code(), Code::kInvalidArgument);
  bad = good;
  bad.directory = "";
  EXPECT_EQ(RealRuntime::Open(bad).code(), Code::kInvalidArgument);
}

TEST(RealRuntimeTest, RandomNumbersDiffer) {
  TempDirectory directory;
  RealRuntimeOptions options;
  options.directory = directory.path();
  options.backend = IoBackend::kThreads;
  auto runtime = RealRuntime::Open(options);
  ASSERT_TRUE(runtime.ok());
  std::set<uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert((*runtime)->RandomU64());
  EXPECT_EQ(seen.size(), 1000u);
}

TEST(SystemClockTest, TicksCountFrom1601AndNanosNeverStepBack) {
  SystemClock clock;
  const uint64_t unix_seconds = static_cast<uint64_t>(time(nullptr));
  const uint64_t ticks = clock.WallTicks();
  EXPECT_NEAR(static_cast<double>((ticks - kUnixEpochTicks) / kTicksPerSecond),
              static_cast<double>(unix_seconds), 2);
  uint64_t last = clock.MonotonicNanos();
  for (int i = 0; i < 10'000; ++i) {
    const uint64_t now = clock.MonotonicNanos();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(DeviceProbeTest, TheReportIsFilledIn) {
  TempDirectory directory;
  auto report = ProbeDevice(directory.path(), ProbeCommits::kMeasure);
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  EXPECT_FALSE(report->kernel.empty());
  EXPECT_EQ(report->io_uring, UringAvailable());
  EXPECT_EQ(report->io_uring, report->io_uring_problem.empty());
  EXPECT_FALSE(report->file_system.empty());
  EXPECT_GT(report->free_bytes, 0u);
  EXPECT_GE(report->total_bytes, report->free_bytes);
  EXPECT_GT(report->descriptors_max, 0u);
  ASSERT_TRUE(report->commit_latency_ns.has_value()) << report->commit_problem;
  EXPECT_GT(*report->commit_latency_ns, 0u);
  EXPECT_GE(report->commit_samples, 1u);
  EXPECT_TRUE(report->direct_io.has_value());
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

TEST(DeviceProbeTest, ASkippedMeasurementSaysSoAndAMissingDirectoryIsNotFound) {
  TempDirectory directory;
  auto report = ProbeDevice(directory.path(), ProbeCommits::kSkip);
  ASSERT_TRUE(report.ok());
  EXPECT_FALSE(report->commit_latency_ns.has_value());
  EXPECT_EQ(report->commit_problem, "not asked for");
  EXPECT_EQ(ProbeDevice(directory.path() + "/x", ProbeCommits::kSkip).code(), Code::kNotFound);
}

}  // namespace
}  // namespace partita
