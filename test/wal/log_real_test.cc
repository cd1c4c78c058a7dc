#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "test/io/real_world.h"
#include "test/wal/log_harness.h"

// The log on this machine's file system, through both backends and from both sides.
namespace partita {
namespace {

std::unique_ptr<RealRuntime> OpenRuntime(const std::string& directory, IoBackend backend) {
  RealRuntimeOptions options;
  options.directory = directory;
  options.backend = backend;
  auto runtime = RealRuntime::Open(options);
  EXPECT_TRUE(runtime.ok()) << runtime.status().ToString();
  return std::move(runtime).value();
}

LocalLogOptions SmallOptions(uint32_t incarnation) {
  auto options = LogProcess::Options(incarnation);
  options.segment_size = 256 << 10;
  options.frame_size_max = 64 << 10;
  options.tail_size = 64 << 10;
  return options;
}

struct Found {
  Status status;
  LogRecovery report;
  std::vector<std::string> payloads;
  std::unique_ptr<LocalLogStore> log;
};

Task<Found> OpenAndRecover(Runtime& runtime, LocalLogOptions options, LogPosition from) {
  Found found;
  auto opened = co_await LocalLogStore::Open(runtime.files(), std::move(options));
  if (!opened.ok()) {
    found.status = opened.status();
    co_return std::move(found);
  }
  found.log = std::move(opened).value();
  LogReplaySink sink = [&found](const LogRecord& record) {
    found.payloads.emplace_back(record.payload);
    return Status();
  };
  auto report = co_await found.log->Recover(from, sink);
  if (report.ok()) found.report = report.value();
  found.status = report.status();
  co_return std::move(found);
}

// Appends, flushes, rotates, trims, poisons nothing; returns the first error.
Task<Status> Work(LocalLogStore& log, uint64_t count) {
  for (uint64_t p = 1; p <= count; ++p) {
    const std::string payload = PayloadFor(p, 1, p % 17 == 0 ? 100'000 : 900);
    const LogRecord record{LogPosition{p}, Version{p}, payload};
    if (p % 3 == 0) {
      PARTITA_CO_TRY(co_await log.AppendAndFlush({&record, 1}));
    } else {
      PARTITA_CO_TRY(co_await log.Append({&record, 1}));
    }
    if (p % 20 == 0) PARTITA_CO_TRY(co_await log.Trim(LogPosition{p - 10}));
    if (log.needs_prepare()) PARTITA_CO_TRY(co_await log.PrepareNext());
  }
  co_return co_await log.Seal(/*closing=*/true);
}

class LogRealTest : public testing::TestWithParam<std::pair<IoBackend, bool>> {};

TEST_P(LogRealTest, WritesRotatesRecyclesAndRecovers) {
  const auto [backend, on_worker] = GetParam();
  if (backend == IoBackend::kUring && !UringAvailable()) GTEST_SKIP() << "io_uring is not available";
  TempDirectory directory;
  constexpr uint64_t kCount = 200;
  for (uint32_t life : {1, 2}) {
    auto runtime = OpenRuntime(directory.path(), backend);
    Executor* executor = on_worker ? &runtime->shard_executor(ShardId{0}) : nullptr;
    const LogPosition from{life == 1 ? 1 : kCount - 10};
    Found found = RunOn(executor, OpenAndRecover(*runtime, SmallOptions(life), from));
    ASSERT_TRUE(found.status.ok()) << found.status.ToString();
    if (life == 1) {
      const Status worked = RunOn(executor, Work(*found.log, kCount));
      EXPECT_TRUE(worked.ok()) << worked.ToString();
      EXPECT_LT(found.log->stats().segments_created, found.log->stats().segments_started);
    } else {
      EXPECT_TRUE(found.report.clean);
      ASSERT_EQ(found.payloads.size(), 11u);
      for (uint64_t i = 0; i < 11; ++i) {
        const uint64_t p = from.value + i;
        EXPECT_EQ(found.payloads[i], PayloadFor(p, 1, p % 17 == 0 ? 100'000 : 900));
      }
    }
    EXPECT_TRUE(RunOn(executor, found.log->Close()).ok());
    found.log.reset();
    EXPECT_TRUE(runtime->Close().ok());
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, LogRealTest,
                         testing::Values(std::pair{IoBackend::kUring, false},
                                         std::pair{IoBackend::kUring, true},
                                         std::pair{IoBackend::kThreads, false},
                                         std::pair{IoBackend::kThreads, true}),
                         [](const auto& param) {
                           return std::string(param.param.first == IoBackend::kUring ? "Uring" : "Threads") +
                                  (param.param.second ? "Worker" : "Caller");
                         });

// The child: acknowledges each `process` record through the pipe, until it is killed.
[[noreturn]] void WriteUntilKilled(const std::string& directory, uint32_t life, uint64_t from, int pipe) {
  RealRuntimeOptions options;
  options.directory = directory;
  options.backend = IoBackend::kThreads;
  auto runtime = RealRuntime::Open(options);
  if (!runtime.ok()) _exit(1);
  Found found = RunBlocking(OpenAndRecover(**runtime, SmallOptions(life), LogPosition{from}));
  if (!found.status.ok()) _exit(2);
  for (uint64_t p = found.report.last.value + 1;; ++p) {
    const std::string payload = PayloadFor(p, 1, 500 + p % 700);
    const LogRecord record{LogPosition{p}, Version{p}, payload};
    Status status = found.log->AppendTail({&record, 1});
    if (status.code() == Code::kBusy) {
      std::vector<std::string> payloads;
      std::vector<LogRecord> records;
      for (uint64_t q = found.log->durable_end().value + 1; q <= p; ++q) {
        payloads.push_back(PayloadFor(q, 1, 500 + q % 700));
      }
      for (size_t i = 0; i < payloads.size(); ++i) {
        const uint64_t q = p + 1 - payloads.size() + i;
        records.push_back({LogPosition{q}, Version{q}, payloads[i]});
      }
      status = RunBlocking(found.log->AppendAndFlush(records));
    }
    if (!status.ok()) _exit(3);
    if (write(pipe, &p, sizeof p) != sizeof p) _exit(4);
  }
}

TEST(LogKillTest, EveryRecordAcknowledgedBeforeSigkillIsThere) {
  TempDirectory directory;
  uint64_t acknowledged = 0;
  uint32_t life = 0;
  for (int round = 0; round < 5; ++round) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    ++life;
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) WriteUntilKilled(directory.path(), life, 1, ends[1]);
    close(ends[1]);
    const uint64_t goal = acknowledged + 50 + static_cast<uint64_t>(round) * 37;
    uint64_t position = 0;
    while (position < goal && read(ends[0], &position, sizeof position) == sizeof position) {
    }
    kill(child, SIGKILL);
    while (read(ends[0], &position, sizeof position) == sizeof position) {
    }
    close(ends[0]);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "exit " << WEXITSTATUS(status);
    acknowledged = position;
    ASSERT_GE(acknowledged, goal);

    auto runtime = OpenRuntime(directory.path(), IoBackend::kThreads);
    Found found = RunBlocking(OpenAndRecover(*runtime, SmallOptions(++life), LogPosition{1}));
    ASSERT_TRUE(found.status.ok()) << found.status.ToString();
    EXPECT_GE(found.report.last.value, acknowledged);
    for (size_t i = 0; i < found.payloads.size(); ++i) {
      ASSERT_EQ(found.payloads[i], PayloadFor(i + 1, 1, 500 + (i + 1) % 700)) << "position " << i + 1;
    }
    acknowledged = found.report.last.value;
    EXPECT_TRUE(RunBlocking(found.log->Close()).ok());
    found.log.reset();
    EXPECT_TRUE(runtime->Close().ok());
  }
}

// The tail token's holder beside the flush token's, on threads of their own (for ThreadSanitizer).
TEST(LogThreadsTest, TheTailIsWrittenWhileSegmentsAreFlushed) {
  TempDirectory directory;
  constexpr uint64_t kCount = 3000;
  std::vector<std::string> payloads;
  for (uint64_t p = 1; p <= kCount; ++p) payloads.push_back(PayloadFor(p, 1, 200));
  auto runtime = OpenRuntime(directory.path(), IoBackend::kThreads);
  Found found = RunBlocking(OpenAndRecover(*runtime, SmallOptions(1), LogPosition{1}));
  ASSERT_TRUE(found.status.ok()) << found.status.ToString();
  LocalLogStore& log = *found.log;
  std::thread tail([&] {
    for (uint64_t p = 1; p <= kCount;) {
      p = std::max(p, log.kernel_end().value + 1);  // Segments may be ahead.
      if (p > kCount) break;
      const LogRecord record{LogPosition{p}, Version{p}, payloads[p - 1]};
      if (log.AppendTail({&record, 1}).ok()) ++p;
    }
  });
  std::thread preparer([&] {
    while (log.durable_end().value < kCount) EXPECT_TRUE(RunBlocking(log.PrepareNext()).ok());
  });
  for (uint64_t p = 1; p <= kCount; p += 30) {
    std::vector<LogRecord> records;
    for (uint64_t q = p; q < p + 30 && q <= kCount; ++q)
      records.push_back({LogPosition{q}, Version{q}, payloads[q - 1]});
    EXPECT_TRUE(RunBlocking(log.AppendAndFlush(records)).ok());
    EXPECT_TRUE(RunBlocking(log.Trim(LogPosition{p})).ok());
  }
  tail.join();
  preparer.join();
  EXPECT_EQ(log.kernel_end(), LogPosition{kCount});
  EXPECT_TRUE(RunBlocking(log.Close()).ok());
  found.log.reset();
  EXPECT_TRUE(runtime->Close().ok());
}

}  // namespace
}  // namespace partita
