#include "engine/commit_log.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "engine/io/real_runtime.h"
#include "test/support/scratch_directory.h"

namespace partita {
namespace {

constexpr uint64_t kTailBytes = 8u << 20;

// A log in memory, whose tail takes its time over a record until it is told to go on.
class SlowTailLog final : public LogStore {
 public:
  Task<Result<LogRecovery>> Recover(LogPosition, LogReplaySink) override { co_return LogRecovery{}; }
  Task<Status> Append(std::span<const LogRecord>) override { co_return Status(); }
  Task<Status> Flush() override { co_return Status(); }
  Task<Status> AppendAndFlush(std::span<const LogRecord> records) override {
    ++flushes;
    durable_.store(records.back().position.value);
    co_return Status();
  }
  Status AppendTail(std::span<const LogRecord> records) override {
    if (slow.load()) {
      in_tail.store(true);
      while (!go_on.load()) std::this_thread::yield();
      // So long the token stays taken behind the one who waits for it.
      for (int i = 0; i < 100; ++i) __builtin_ia32_pause();
    }
    kernel_.store(records.back().position.value);
    return Status();
  }
  Task<Status> MoveToNewSegment(std::span<const LogRecord>) override { co_return Status(); }
  void LeaseCeiling(Version ceiling) override { ceiling_.store(ceiling.value); }
  Version durable_ceiling() const override { return Version(ceiling_.load()); }
  Task<Status> Trim(LogPosition) override { co_return Status(); }
  Task<Status> Seal(bool) override { co_return Status(); }
  LogPosition durable_end() const override { return LogPosition(durable_.load()); }
  LogPosition kernel_end() const override { return LogPosition(kernel_.load()); }
  uint64_t live_bytes() const override { return 0; }
  uint64_t newest_segment() const override { return 1; }
  bool needs_prepare() const override { return false; }
  Task<Status> PrepareNext() override { co_return Status(); }
  Task<Status> Close() override { co_return Status(); }

  std::atomic<bool> slow{false}, in_tail{false}, go_on{false};
  std::atomic<int> flushes{0};

 private:
  std::atomic<uint64_t> durable_{0}, kernel_{0}, ceiling_{0};
};

// It cost the device hundreds of flushes a second that nobody needed, where four threads wrote at `process`.
TEST(CommitLogThreadsTest, WhoMeetsAnotherAtTheTailDoesNotAskForAFlush) {
  constexpr int kMeetings = 100;
  ScratchDirectory directory;
  RealRuntimeOptions real;
  real.directory = directory.path();
  real.shards = 1;
  auto opened = RealRuntime::Open(real);
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  RealRuntime& runtime = **opened;
  SlowTailLog log;
  CommitLog commits(log, runtime.shard_executor(ShardId(0)), runtime.clock(), kIoDeadlineNanos, kTailBytes);
  commits.Start(LogPosition(0), Version(0));
  uint64_t version = 0;
  const std::string payload(100, 'p');
  const auto append = [&] {
    return commits.Append({Version(++version), DurabilityLevel::kProcess, payload, nullptr});
  };
  const auto await = [&](LogPosition position) {
    Status visible = runtime.RunToEnd(commits.AwaitVisible(position, DurabilityLevel::kProcess));
    EXPECT_TRUE(visible.ok()) << visible.ToString();
  };
  await(append());  // Leases the versions of the rest, by a flush.
  int flushes = 0;
  for (int meeting = 0; meeting < kMeetings; ++meeting) {
    log.in_tail = log.go_on = false;
    log.slow = true;
    const LogPosition first = append();
    std::atomic<bool> through{false};  // Also when the log was flushed by time before it came to the tail.
    std::thread other([&] {
      await(first);
      through = true;
    });
    while (!log.in_tail.load() && !through.load()) std::this_thread::yield();
    log.slow = false;
    const LogPosition second = append();
    const int flushes_before = log.flushes.load();
    log.go_on = true;
    await(second);
    flushes += log.flushes.load() - flushes_before;
    other.join();
  }
  // Some: the kernel may take the other's core, and the log is flushed by time.
  EXPECT_LT(flushes, kMeetings / 2);
  EXPECT_EQ(commits.visible_position(), LogPosition(1 + 2 * kMeetings));
  EXPECT_TRUE(runtime.RunToEnd(commits.FlushAll()).ok());
  EXPECT_EQ(commits.unflushed_bytes(), 0u);
  EXPECT_TRUE(runtime.RunToEnd(commits.Close()).ok());
}

}  // namespace
}  // namespace partita
