#include "engine/commit_log.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/event.h"
#include "engine/batch_record.h"
#include "engine/hybrid_clock.h"
#include "engine/io/real_runtime.h"
#include "engine/io/sim_runtime.h"
#include "test/support/into.h"
#include "test/support/scratch_directory.h"

namespace partita {
namespace {

constexpr uint64_t kTailBytes = 8u << 20;

// A log in memory.
class MemoryLog : public LogStore {
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

  std::atomic<int> flushes{0};

 private:
  std::atomic<uint64_t> durable_{0}, kernel_{0}, ceiling_{0};
};

// Its tail takes its time over a record until it is told to go on.
class SlowTailLog final : public MemoryLog {
 public:
  Status AppendTail(std::span<const LogRecord> records) override {
    ++copies;
    if (slow.load()) {
      in_tail.store(true);
      while (!go_on.load()) std::this_thread::yield();
      // So long the token stays taken behind the one who waits for it.
      for (int i = 0; i < 100; ++i) __builtin_ia32_pause();
    }
    return MemoryLog::AppendTail(records);
  }

  std::atomic<bool> slow{false}, in_tail{false}, go_on{false};
  std::atomic<int> copies{0};
};

// Each flush hangs until it is let go on.
class HangingLog : public MemoryLog {
 public:
  Task<Status> AppendAndFlush(std::span<const LogRecord> records) override {
    co_await go_on.at(static_cast<size_t>(flushes.load())).Wait();
    co_return co_await MemoryLog::AppendAndFlush(records);
  }

  std::array<Event, 3> go_on;  // Of the first flush, the second and the third.
};

// Neither is there room in its tail.
class FullTailLog final : public HangingLog {
 public:
  Status AppendTail(std::span<const LogRecord>) override {
    ++copies;
    return Status::ResourceExhausted("full");
  }

  int copies = 0;
};

class CommitLogThreadsTest : public testing::Test {
 protected:
  CommitLogThreadsTest() {
    RealRuntimeOptions real;
    real.directory = directory_.path();
    real.shards = 1;
    runtime_ = std::move(RealRuntime::Open(real)).value();
    commits_ = std::make_unique<CommitLog>(log_, runtime_->shard_executor(ShardId(0)), runtime_->clock(),
                                           kIoDeadlineNanos, kTailBytes);
    commits_->Start(LogPosition(0), Version(0));
  }
  ~CommitLogThreadsTest() override {
    EXPECT_TRUE(runtime_->RunToEnd(commits_->FlushAll()).ok());
    EXPECT_EQ(commits_->unflushed_bytes(), 0u);
    EXPECT_TRUE(runtime_->RunToEnd(commits_->Close()).ok());
  }

  LogPosition Append(DurabilityLevel level) {
    return commits_->Append({Version(++version_), level, payload_, nullptr});
  }
  void Await(LogPosition position) {
    Status visible = runtime_->RunToEnd(commits_->AwaitVisible(position, DurabilityLevel::kProcess));
    EXPECT_TRUE(visible.ok()) << visible.ToString();
  }

  const std::string payload_ = std::string(20, 'p');
  ScratchDirectory directory_;
  std::unique_ptr<RealRuntime> runtime_;
  SlowTailLog log_;
  std::unique_ptr<CommitLog> commits_;
  uint64_t version_ = 0;
};

// It cost the device hundreds of flushes a second that nobody needed, where four threads wrote at `process`.
TEST_F(CommitLogThreadsTest, WhoMeetsAnotherAtTheTailDoesNotAskForAFlush) {
  constexpr int kMeetings = 100;
  Await(Append(DurabilityLevel::kProcess));  // Leases the versions of the rest, by a flush.
  int flushes = 0;
  for (int meeting = 0; meeting < kMeetings; ++meeting) {
    log_.in_tail = log_.go_on = false;
    log_.slow = true;
    const LogPosition first = Append(DurabilityLevel::kProcess);
    std::atomic<bool> through{false};  // Also when the log was flushed by time before it came to the tail.
    std::thread other([&] {
      Await(first);
      through = true;
    });
    while (!log_.in_tail.load() && !through.load()) std::this_thread::yield();
    log_.slow = false;
    const LogPosition second = Append(DurabilityLevel::kProcess);
    const int flushes_before = log_.flushes.load();
    log_.go_on = true;
    Await(second);
    flushes += log_.flushes.load() - flushes_before;
    other.join();
  }
  // Some: the kernel may take the other's core, and the log is flushed by time.
  EXPECT_LT(flushes, kMeetings / 2);
  EXPECT_EQ(commits_->visible_position(), LogPosition(1 + 2 * kMeetings));
}

// As refusals do, which wait for what they saw (F13).
TEST_F(CommitLogThreadsTest, WhoWaitsForARecordThatOnlyAFlushMakesVisibleCopiesNothing) {
  for (int i = 0; i < 100; ++i) Await(Append(DurabilityLevel::kPower));
  EXPECT_EQ(log_.copies.load(), 0);
  Append(DurabilityLevel::kPower);
  Await(Append(DurabilityLevel::kProcess));
  EXPECT_EQ(commits_->visible_position(), LogPosition(102));
}

// covers: F15
TEST(CommitLogTest, DoubtEndsWhenAllThatWasAnsweredSoIsVisibleAndNotBefore) {
  SimDisk disk(1);
  SimRuntime runtime({.seed = 1, .shards = 1}, disk);
  HangingLog log;
  CommitLog commits(log, runtime.shard_executor(ShardId(0)), runtime.clock(), kIoDeadlineNanos, kTailBytes);
  commits.Start(LogPosition(0), Version(0));
  const auto begin = [&](uint64_t version, std::optional<Status>* answer) {
    const LogPosition position = commits.Append({Version(version), DurabilityLevel::kPower, "p", nullptr});
    runtime.Spawn(Into(commits.AwaitVisible(position, DurabilityLevel::kPower), answer));
    runtime.AdvanceTime(1'000'000);
  };
  std::optional<Status> first, second;
  begin(1, &first);
  runtime.AdvanceTime(kIoDeadlineNanos + kNanosPerSecond);
  ASSERT_TRUE(first && commits.in_doubt());
  begin(2, &second);  // As one does who found the log without a fence just before.
  ASSERT_TRUE(second);
  EXPECT_EQ(second->code(), Code::kUnknown);

  log.go_on[0].Set();
  runtime.AdvanceTime(1'000'000);
  EXPECT_FALSE(commits.fenced());
  EXPECT_EQ(commits.visible_position(), LogPosition(1));
  EXPECT_TRUE(commits.in_doubt());

  log.go_on[1].Set();
  runtime.AdvanceTime(1'000'000);
  EXPECT_EQ(commits.visible_position(), LogPosition(2));
  EXPECT_FALSE(commits.in_doubt());
  EXPECT_TRUE(runtime.RunToEnd(commits.Close()).ok());
}

// Else each of many gathers all records that wait, in vain.
TEST(CommitLogTest, ATailThatIsFullIsNotTriedAgainBeforeTheNextFlush) {
  SimDisk disk(1);
  SimRuntime runtime({.seed = 1, .shards = 1}, disk);
  FullTailLog log;
  CommitLog commits(log, runtime.shard_executor(ShardId(0)), runtime.clock(), kIoDeadlineNanos, kTailBytes);
  commits.Start(LogPosition(0), Version(0));
  std::vector<std::optional<Status>> answers(22);
  const auto begin = [&](size_t i) {
    const LogPosition position = commits.Append({Version(i + 1), DurabilityLevel::kProcess, "p", nullptr});
    runtime.Spawn(Into(commits.AwaitVisible(position, DurabilityLevel::kProcess), &answers[i]));
    runtime.AdvanceTime(1'000'000);
  };
  for (size_t i = 0; i < 21; ++i) begin(i);
  EXPECT_EQ(log.copies, 1);
  log.go_on[0].Set();
  runtime.AdvanceTime(1'000'000);
  begin(21);
  EXPECT_EQ(log.copies, 2);
  for (size_t i : {1, 2}) {
    log.go_on[i].Set();
    runtime.AdvanceTime(1'000'000);
  }
  for (const std::optional<Status>& answer : answers) EXPECT_TRUE(answer && answer->ok());
  EXPECT_TRUE(runtime.RunToEnd(commits.Close()).ok());
}

// covers: F20 F51
TEST(CommitLogTest, ABatchThatMemoryChangedIsNotWrittenAndFences) {
  SimDisk disk(1);
  SimRuntime runtime({.seed = 1, .shards = 1}, disk);
  for (const DurabilityLevel level : {DurabilityLevel::kPower, DurabilityLevel::kProcess}) {
    MemoryLog log;
    CommitLog commits(log, runtime.shard_executor(ShardId(0)), runtime.clock(), kIoDeadlineNanos, kTailBytes);
    commits.Start(LogPosition(0), Version(0));
    std::string payload(kBatchRecordHeaderSize, '\0');
    SetBatchVersion(reinterpret_cast<uint8_t*>(payload.data()), Version(1));
    const LogPosition whole = commits.Append({Version(1), level, payload, nullptr});
    EXPECT_TRUE(runtime.RunToEnd(commits.AwaitVisible(whole, level)).ok());

    std::string changed = payload;
    SetBatchVersion(reinterpret_cast<uint8_t*>(changed.data()), Version(2 + (1ull << 50)));
    const LogPosition position = commits.Append({Version(2), level, changed, nullptr});
    const Status visible = runtime.RunToEnd(commits.AwaitVisible(position, level));
    EXPECT_EQ(visible.code(), Code::kUnknown);
    EXPECT_TRUE(commits.fenced());
    EXPECT_EQ(commits.fence_reason().code(), Code::kCorruption);
    EXPECT_EQ(commits.visible_position(), whole);
    EXPECT_FALSE(runtime.RunToEnd(commits.Close()).ok());
    EXPECT_EQ(log.durable_end(), whole);
    EXPECT_LE(log.kernel_end(), whole);
  }
}

// covers: F18
// Each life ends within its lease, and the next begins above it.
TEST(CommitLogTest, VersionsDoNotRunAheadByALeaseMoreWithEachRestart) {
  SimDisk disk(1);
  SimRuntime runtime({.seed = 1, .shards = 1}, disk);
  Version floor(0);
  for (int life = 0; life < 50; ++life) {
    MemoryLog log;
    CommitLog commits(log, runtime.shard_executor(ShardId(0)), runtime.clock(), kIoDeadlineNanos, kTailBytes);
    commits.Start(LogPosition(0), floor);
    HybridClock versions(runtime.clock(), floor);
    const LogPosition position = commits.Append({versions.Next(), DurabilityLevel::kProcess, "p", nullptr});
    const Status visible = runtime.RunToEnd(commits.AwaitVisible(position, DurabilityLevel::kProcess));
    EXPECT_TRUE(visible.ok()) << visible.ToString();
    EXPECT_TRUE(runtime.RunToEnd(commits.Close()).ok());
    floor = log.durable_ceiling();
    ASSERT_LE(floor, Version(runtime.clock().WallTicks() + kLeaseTicksMax)) << life;
    runtime.AdvanceTime(kNanosPerSecond / 10);
  }
}

}  // namespace
}  // namespace partita
