#include "engine/io/io_worker.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>

#include <atomic>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/aligned_buffer.h"
#include "engine/base/async_mutex.h"
#include "engine/base/event.h"
#include "engine/io/thread_executor.h"
#include "engine/io/uring_executor.h"
#include "test/io/real_world.h"

namespace partita {
namespace {

// The workers of both backends, two of each.
class IoWorkerTest : public RealRuntimeBackendTest {
 protected:
  void SetUp() override { OpenRuntime({.shards = 2, .idle_helpers = 2, .pin_workers = true}); }
  Executor& worker(uint32_t shard = 0) { return runtime_->shard_executor(ShardId(shard)); }
};
INSTANTIATE_TEST_SUITE_P(Backends, IoWorkerTest, testing::Values(IoBackend::kUring, IoBackend::kThreads),
                         [](const auto& info) {
                           return info.param == IoBackend::kUring ? "Ring" : "Threads";
                         });

struct Numbered : Runnable {
  uint32_t sender;
  uint32_t number;
  std::vector<uint32_t>* seen;  // Per sender, the next number expected; touched by the worker only.
  std::atomic<uint64_t>* wrong;
  std::latch* done;
  static void Check(Runnable* self) {
    auto* item = static_cast<Numbered*>(self);
    uint32_t& expected = (*item->seen)[item->sender];
    if (item->number != expected) item->wrong->fetch_add(1);
    expected = item->number + 1;
    item->done->count_down();
  }
};

TEST_P(IoWorkerTest, WorkOfManySendersRunsOnceAndInEachSendersOrder) {
  constexpr uint32_t kSenders = 4, kEach = 20'000;
  std::vector<std::vector<Numbered>> items(kSenders);
  std::vector<uint32_t> seen(kSenders, 0);
  std::atomic<uint64_t> wrong = 0;
  std::latch done(kSenders * kEach);
  std::vector<std::thread> senders;
  for (uint32_t sender = 0; sender < kSenders; ++sender) {
    items[sender].resize(kEach);
    senders.emplace_back([&, sender] {
      for (uint32_t i = 0; i < kEach; ++i) {
        Numbered& item = items[sender][i];
        item.sender = sender;
        item.number = i;
        item.seen = &seen;
        item.wrong = &wrong;
        item.done = &done;
        item.run = &Numbered::Check;
        worker().Post(&item);
      }
    });
  }
  for (std::thread& sender : senders) sender.join();
  done.wait();
  EXPECT_EQ(wrong, 0u);
}

TEST_P(IoWorkerTest, NoWakeIsLostBetweenTheLastLookAndTheSleep) {
  constexpr int kRounds = 10'000;
  auto nothing = []() -> Task<void> { co_return; };
  for (int i = 0; i < kRounds; ++i) {  // The worker has just fallen asleep, or is about to.
    TaskGroup group;
    group.Spawn(worker(i % 2), nothing());
    RunBlocking(group.Join());
  }
}

Task<void> Append(std::string name, std::string* order) {
  order->append(name).append(" ");
  co_return;
}

Task<void> StartOneMore(Executor& executor, std::string name, std::string* order, TaskGroup* group) {
  co_await Append(name, order);
  group->SpawnAhead(executor, Append(name + "'", order));
}

// Starts two ahead, each of which asks for the same right, and one in the ordinary way.
Task<void> StartThree(Executor& executor, std::string name, std::string* order, TaskGroup* group) {
  co_await Append(name, order);
  group->SpawnAhead(executor, StartOneMore(executor, name + "1", order, group));
  group->Spawn(executor, Append(name + "3", order));
  group->SpawnAhead(executor, StartOneMore(executor, name + "2", order, group));
}

TEST_P(IoWorkerTest, WorkPostedAheadRunsBeforeWhatIsQueuedButHasNoSuchRight) {
  const auto start_all = [](Executor& executor, std::string* order, TaskGroup* group) -> Task<void> {
    for (const char* name : {"a", "b", "c"}) group->Spawn(executor, StartThree(executor, name, order, group));
    co_return;
  };
  std::string order;
  TaskGroup group;
  group.Spawn(worker(), start_all(worker(), &order, &group));
  RunBlocking(group.Join());
  EXPECT_EQ(order, "a a1 a2 b b1 b2 c c1 c2 a3 a1' a2' b3 b1' b2' c3 c1' c2' ");
}

TEST_P(IoWorkerTest, WorkPostedAheadFromElsewhereAndOntoNothingRunsOnce) {
  const auto run_ahead = [](Executor& executor, std::string* order, TaskGroup* group) -> Task<void> {
    group->SpawnAhead(executor, Append("1", order));  // Nothing else is queued.
    group->SpawnAhead(executor, Append("2", order));
    group->Spawn(executor, Append("3", order));
    co_return;
  };
  std::string order;
  TaskGroup group;
  group.SpawnAhead(worker(), run_ahead(worker(), &order, &group));  // By a thread that is no worker.
  RunBlocking(group.Join());
  EXPECT_EQ(order, "1 2 3 ");
  const auto to_other = [](Executor& other, std::string* order, TaskGroup* group) -> Task<void> {
    for (int i = 0; i < 100; ++i) group->SpawnAhead(other, Append("x", order));
    co_return;
  };
  order.clear();
  group.Spawn(worker(0), to_other(worker(1), &order, &group));
  RunBlocking(group.Join());
  EXPECT_EQ(order.size(), 200u);
}

Task<void> SleepThenNote(uint64_t wait_ns, int number, std::vector<int>* order) {
  co_await SleepFor(wait_ns);
  order->push_back(number);
}

TEST_P(IoWorkerTest, TimersFireInTheOrderOfTheirDeadlines) {
  auto set_timers = [](Executor& executor, std::vector<int>* order) -> Task<void> {
    TaskGroup group;
    const uint64_t waits_ms[] = {30, 10, 20, 0, 25, 5};
    for (int i = 0; i < 6; ++i) group.Spawn(executor, SleepThenNote(waits_ms[i] * 1'000'000, i, order));
    co_await group.Join();
  };
  std::vector<int> order;
  const uint64_t begin = runtime_->clock().MonotonicNanos();
  TaskGroup group;
  group.Spawn(worker(), set_timers(worker(), &order));
  RunBlocking(group.Join());
  EXPECT_EQ(order, (std::vector<int>{3, 5, 1, 2, 4, 0}));
  EXPECT_GE(runtime_->clock().MonotonicNanos() - begin, 30'000'000u);
}

TEST_P(IoWorkerTest, TimersOfOneDeadlineFireInTheOrderTheyWereSet) {
  struct Note : Runnable {
    int number;
    std::vector<int>* order;
    Event* last;
  };
  auto set_timers = [](Executor& executor, std::vector<int>* order) -> Task<void> {
    Note notes[50];
    Event last;
    const uint64_t deadline = executor.MonotonicNanos() + 1'000'000;
    for (int i = 0; i < 50; ++i) {
      notes[i].number = i;
      notes[i].order = order;
      notes[i].last = &last;
      notes[i].run = [](Runnable* self) {
        auto* note = static_cast<Note*>(self);
        note->order->push_back(note->number);
        if (note->order->size() == 50) note->last->Set();
      };
      executor.PostAt(deadline, &notes[i]);
    }
    co_await last.Wait();
  };
  std::vector<int> order;
  TaskGroup group;
  group.Spawn(worker(), set_timers(worker(), &order));
  RunBlocking(group.Join());
  ASSERT_EQ(order.size(), 50u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

Task<void> AddUnderLock(AsyncMutex& mutex, uint64_t* sum, int times) {
  for (int i = 0; i < times; ++i) {
    auto guard = co_await mutex.Lock();
    const uint64_t before = *sum;
    co_await Yield();  // Others get their chance to break in.
    *sum = before + 1;
  }
}

TEST_P(IoWorkerTest, TasksOnWorkersHelpersAndCallersShareAMutex) {
  AsyncMutex mutex;
  uint64_t sum = 0;
  TaskGroup group;
  for (int i = 0; i < 4; ++i) {
    group.Spawn(worker(0), AddUnderLock(mutex, &sum, 200));
    group.Spawn(worker(1), AddUnderLock(mutex, &sum, 200));
    group.Spawn(runtime_->background(BackgroundClass::kIdle), AddUnderLock(mutex, &sum, 200));
    group.Spawn(runtime_->background(BackgroundClass::kOrdinary), AddUnderLock(mutex, &sum, 200));
  }
  RunBlocking(AddUnderLock(mutex, &sum, 200));
  RunBlocking(group.Join());
  EXPECT_EQ(sum, 17u * 200);
}

TEST_P(IoWorkerTest, ALongSliceIsAskedToYield) {
  auto spin = [](Executor& executor) -> Task<uint64_t> {
    while (!executor.ShouldYield()) {
    }
    co_return executor.MonotonicNanos();
  };
  const uint64_t posted_ns = worker().MonotonicNanos();  // Before the slice begins.
  const uint64_t asked_ns = RunOn(&worker(), spin(worker()));
  EXPECT_GE(asked_ns - posted_ns, 200'000u);
}

TEST_P(IoWorkerTest, NobodyWaitsForMoreThanASliceOfALongLoop) {
  auto loop = [](Executor& executor, const std::atomic<bool>& stop, uint32_t* slices) -> Task<void> {
    while (!stop && *slices < 1'000) {
      const uint64_t begin = executor.MonotonicNanos();
      while (executor.MonotonicNanos() - begin < 1'000'000) {
      }
      ++*slices;
      co_await YieldIfDue();
    }
  };
  auto sleep = [](std::atomic<bool>& stop) -> Task<void> {
    co_await SleepFor(1'000'000);
    stop = true;
  };
  std::atomic<bool> stop = false;
  uint32_t slices = 0;
  TaskGroup group;
  group.Spawn(worker(), sleep(stop));
  group.Spawn(worker(), loop(worker(), stop, &slices));
  RunBlocking(group.Join());
  EXPECT_LT(slices, 64u);
}

TEST_P(IoWorkerTest, WorkersKnowThemselvesAndBlockSignals) {
  struct Seen {
    Executor* current;
    int cpus;
    bool signal_blocked;
  };
  auto look = []() -> Task<Seen> {
    cpu_set_t cpus;
    sched_getaffinity(0, sizeof cpus, &cpus);
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    co_return Seen{Executor::Current(), CPU_COUNT(&cpus), sigismember(&blocked, SIGTERM) == 1};
  };
  for (uint32_t shard = 0; shard < 2; ++shard) {
    const Seen seen = RunOn(&worker(shard), look());
    EXPECT_EQ(seen.current, &worker(shard));
    EXPECT_EQ(seen.cpus, 1);
    EXPECT_TRUE(seen.signal_blocked);
  }
}

thread_local std::atomic<int> signal_handled = 0;

// What a fault there would do: a signal that is blocked waits, and a fault whose signal is ends the process.
TEST_P(IoWorkerTest, FaultsAndTheProfilersSignalComeToTheHandlersOfTheProgram) {
  auto look = [](int signal) -> Task<bool> {
    signal_handled = 0;
    raise(signal);
    co_return signal_handled == signal;
  };
  const std::vector<Executor*> executors = {&worker(), &runtime_->background(BackgroundClass::kIdle),
                                            &runtime_->background(BackgroundClass::kOrdinary),
                                            &runtime_->background(BackgroundClass::kInput)};
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGPROF}) {
    struct sigaction action {};
    struct sigaction former {};
    action.sa_handler = [](int number) { signal_handled = number; };
    ASSERT_EQ(sigaction(signal, &action, &former), 0);
    for (Executor* executor : executors) EXPECT_TRUE(RunOn(executor, look(signal))) << signal;
    ASSERT_EQ(sigaction(signal, &former, nullptr), 0);
  }
}

TEST_P(IoWorkerTest, HelpersRunInBlockingModeAtTheirPriority) {
  auto policy = []() -> Task<int> { co_return Executor::Current() == nullptr ? sched_getscheduler(0) : -1; };
  EXPECT_EQ(RunOn(&runtime_->background(BackgroundClass::kIdle), policy()), SCHED_IDLE);
  EXPECT_EQ(RunOn(&runtime_->background(BackgroundClass::kOrdinary), policy()), SCHED_OTHER);
}

Task<void> WriteMany(FileSystem& files, std::string name, int count, std::atomic<int>* done) {
  auto file = co_await files.Open(name, OpenMode::kCreate, FileIo::kBuffered);
  const uint8_t bytes[100] = {};
  for (int i = 0; i < count; ++i) {
    Status status = co_await file.value()->WriteAt(i * sizeof bytes, bytes);
    if (status.ok()) done->fetch_add(1);
  }
  co_await SleepFor(1'000'000);
  done->fetch_add(1);
}

// covers: F60
TEST_P(IoWorkerTest, CloseWaitsForWorkIoAndTimers) {
  std::atomic<int> done = 0;
  TaskGroup group;
  for (int i = 0; i < 8; ++i) {
    Executor& executor = i < 6 ? worker(i % 2) : runtime_->background(BackgroundClass::kIdle);
    group.Spawn(executor, WriteMany(runtime_->files(), "f" + std::to_string(i), 50, &done));
  }
  ASSERT_TRUE(runtime_->Close().ok());
  EXPECT_EQ(done, 8 * 51);
  EXPECT_EQ(group.running(), 0u);
}

// A ring of eight completions and two hundred operations.
// covers: F60
TEST(UringExecutorTest, CompletionsThatOverflowTheRingAreNotLost) {
  if (!UringAvailable()) GTEST_SKIP() << "io_uring is forbidden on this machine";
  constexpr size_t kPages = 200;
  TempDirectory directory;
  auto files = PosixFileSystem::Open(directory.path(), BatchReads::kRing);
  ASSERT_TRUE(files.ok());
  auto file = RunBlocking((*files)->Open("a", OpenMode::kCreate, FileIo::kBuffered));
  ASSERT_TRUE(file.ok());
  AlignedBuffer pages(kPages * kPageSize);
  for (size_t i = 0; i < pages.size(); ++i) pages.data()[i] = static_cast<uint8_t>(i / kPageSize);
  ASSERT_TRUE(RunBlocking((*file)->WriteAt(0, pages.span())).ok());

  TaskPool io_threads;
  ASSERT_TRUE(io_threads.Start("test-io", 1, ThreadPriority::kOrdinary).ok());
  UringExecutor worker(io_threads, {.submissions = 4, .completions = 8});
  ASSERT_TRUE(worker.Start("test-worker", IoWorker::kAnyCpu).ok());
  AlignedBuffer read(pages.size());
  std::vector<FileRead> reads;
  for (size_t i = 0; i < kPages; ++i) {
    reads.push_back({i * kPageSize, read.span().subspan(i * kPageSize, kPageSize)});
  }
  for (int round = 0; round < 20; ++round) {
    std::fill(read.data(), read.data() + read.size(), uint8_t{0xff});
    Status status = RunOn(&worker, (*file)->ReadBatch(reads));
    ASSERT_TRUE(status.ok()) << status.ToString();
    ASSERT_TRUE(std::equal(read.data(), read.data() + read.size(), pages.data()));
  }
  worker.Stop();
  io_threads.Close();
  EXPECT_GT(worker.overflows_seen(), 0u);
}

}  // namespace
}  // namespace partita
