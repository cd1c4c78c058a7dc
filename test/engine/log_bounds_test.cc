#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/executor.h"
#include "engine/base/user_key.h"
#include "engine/io/sim_runtime.h"
#include "engine/store.h"
#include "wal/segment_format.h"

// covers: F32 F38
//
// What a log leaves open: after an idle moment nothing, and to replay at most what memtables held.

namespace partita {
namespace {

using testing::HasSubstr;

constexpr uint64_t kIdleNanos = 200'000'000;  // Twice what F32 grants until the seal.
constexpr size_t kValueBytes = 1000;
constexpr size_t kMemtableBytes = 32u << 10;
constexpr uint64_t kSegmentBytes = 64u << 10;

// One process on the disk; ends without closing.
class Life {
 public:
  Life(SimDisk& disk, uint64_t seed) : runtime_({.seed = seed, .shards = 1}, disk) {
    StoreOptions options;
    options.create_if_missing = true;
    options.memory_bytes = 64u << 20;
    options.memtable_data_bytes = kMemtableBytes;
    options.log_segment_bytes = kSegmentBytes;
    options.log_tail_bytes = 64u << 10;
    Result<std::unique_ptr<Store>> opened = runtime_.RunToEnd(Store::Open(runtime_, std::move(options)));
    status = opened.status();
    if (opened.ok()) store_ = std::move(opened).value();
  }

  void MakeTable() {
    Store::TableSpec spec{.account = "default", .name = "rows", .raw = true, .split_partitions = {}};
    Result<TableDescriptor> table = runtime_.RunToEnd(store_->CreateTable(std::move(spec)));
    ASSERT_TRUE(table.ok()) << table.status().ToString();
    table_ = table->id;
  }
  void Put(int row, const std::string& value) {
    const std::string key = EncodeUserKey(table_, "p", std::to_string(row));
    const WriteOp op{.user_key = key, .content = value};
    const WriteRequest request{.table = table_, .ops = std::span<const WriteOp>(&op, 1)};
    const WriteOutcome written = runtime_.RunToEnd(store_->Write(request));
    ASSERT_TRUE(written.status.ok()) << written.status.ToString();
    live_bytes_max = std::max(live_bytes_max, store_->Statistics()[0].log_live_bytes);
  }
  void Write(int rows) {
    ASSERT_NO_FATAL_FAILURE(MakeTable());
    for (int i = 0; i < rows; ++i) ASSERT_NO_FATAL_FAILURE(Put(i, std::string(kValueBytes, 'v')));
  }

  void Idle(uint64_t nanos = kIdleNanos) { runtime_.Run(Sleep(nanos)); }
  void Flush() { ASSERT_TRUE(runtime_.RunToEnd(store_->FlushMemtables()).ok()); }
  uint64_t flushes() const { return store_->Statistics()[0].flushes; }
  const StoreOpenReport& report() const { return store_->open_report(); }

  ~Life() {
    runtime_.CrashNow();
    if (store_ != nullptr) (void)runtime_.RunToEnd(store_->Close());
  }

  Status status;
  uint64_t live_bytes_max = 0;

 private:
  static Task<void> Sleep(uint64_t nanos) { co_await SleepFor(nanos); }

  SimRuntime runtime_;
  std::unique_ptr<Store> store_;
  TableId table_{1};  // The first that is made.
};

// What the device lost; an idle seal, if there is one, comes behind it.
void DestroyFirstRecord(SimDisk& disk) {
  for (const std::string& path : disk.ListFiles("log-1-0/")) {
    if (path.ends_with(".log")) disk.WriteFileAt(path, kSegmentHeaderSize, std::string(256, '\0'));
  }
}

// F32: the only group of a log that was idle for a while is missed when it is gone. A device that lost it
// right after it was written would leave the same bytes as a torn write: that cannot be told (F31).
TEST(LogBoundsTest, AfterAnIdleMomentALostLastGroupIsNoTornTail) {
  for (const bool idle : {true, false}) {
    SimDisk disk(7);
    {
      Life life(disk, 1);
      ASSERT_TRUE(life.status.ok()) << life.status.ToString();
      ASSERT_NO_FATAL_FAILURE(life.Write(1));
      if (idle) life.Idle();
    }
    DestroyFirstRecord(disk);
    Life next(disk, 2);
    EXPECT_EQ(next.status.code(), idle ? Code::kCorruption : Code::kOk) << next.status.ToString();
    if (idle) EXPECT_THAT(next.status.message(), HasSubstr("(F31)"));
  }
}

std::vector<std::string> LogFiles(const SimDisk& disk) {
  std::vector<std::string> files = disk.ListFiles("log-1-0/");
  std::erase_if(files, [](const std::string& path) { return !path.ends_with(".log"); });
  return files;
}

// F57: each of these rows takes a page, so it is the log that fills a memtable: of eight segments. They are
// used again, and given back when they are needed no more.
TEST(LogBoundsTest, SmallSynchronousWritesHaveNoSegmentMadeAnew) {
  SimDisk disk(9);
  Life life(disk, 1);
  ASSERT_TRUE(life.status.ok()) << life.status.ToString();
  ASSERT_NO_FATAL_FAILURE(life.MakeTable());
  for (int i = 0; i < 2000; ++i) ASSERT_NO_FATAL_FAILURE(life.Put(i, "v"));
  EXPECT_GT(life.flushes(), 10u);
  // Their names count them.
  const std::vector<std::string> files = LogFiles(disk);
  const std::string last = *std::max_element(files.begin(), files.end());
  EXPECT_LT(std::stoi(last.substr(last.rfind('/') + 1)), 40) << last;  // Of some 130 that were used.
  life.Flush();
  EXPECT_GT(LogFiles(disk).size(), 5u);
  life.Idle(90'000'000'000);
  EXPECT_LE(LogFiles(disk).size(), 5u);
}

// F38: a hundred memtables were written; to replay are those that may wait for their flush, and the active
// one.
TEST(LogBoundsTest, RecoveryReplaysNoMoreThanMemtablesHold) {
  SimDisk disk(8);
  constexpr int kRows = 100 * kMemtableBytes / kValueBytes;
  {
    Life life(disk, 1);
    ASSERT_TRUE(life.status.ok()) << life.status.ToString();
    ASSERT_NO_FATAL_FAILURE(life.Write(kRows));
  }
  Life next(disk, 2);
  ASSERT_TRUE(next.status.ok()) << next.status.ToString();
  EXPECT_GT(next.report().records_replayed, 0u);
  constexpr uint64_t kMemtablesWaitingMax = 10;
  EXPECT_LE(next.report().records_replayed, kMemtablesWaitingMax * kMemtableBytes / kValueBytes);
}

// F38: a row of few bytes takes a page of the log, and with a pause behind it two, but next to no memory.
TEST(LogBoundsTest, AMemtableIsFlushedForItsLogToo) {
  constexpr int kRows = 1200;
  // Four segments and four memtables, and the segment at hand; one is flushed while the next one is filled.
  constexpr uint64_t kLogMax = 2 * (5 * kSegmentBytes + 4 * kMemtableBytes);
  static_assert(kRows * 4096 > 2 * kLogMax);
  for (const bool pauses : {false, true}) {
    SimDisk disk(8);
    {
      Life life(disk, 1);
      ASSERT_TRUE(life.status.ok()) << life.status.ToString();
      ASSERT_NO_FATAL_FAILURE(life.MakeTable());
      for (int i = 0; i < kRows; ++i) {
        ASSERT_NO_FATAL_FAILURE(life.Put(0, "v"));
        if (pauses) life.Idle();
      }
      EXPECT_LE(life.live_bytes_max, kLogMax) << pauses;
      EXPECT_GT(life.flushes(), 0u) << pauses;
    }
    Life next(disk, 2);
    ASSERT_TRUE(next.status.ok()) << next.status.ToString();
    EXPECT_LE(next.report().records_replayed * 4096, kLogMax) << pauses;
  }
}

// Rows that take some of a page are flushed by their bytes alone, also behind a replay of a long log.
TEST(LogBoundsTest, RowsOfSomeSizeAreFlushedByTheirBytes) {
  constexpr int kRowsAMemtable = kMemtableBytes / kValueBytes;
  SimDisk disk(8);
  uint64_t flushes = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Life life(disk, seed);
    ASSERT_TRUE(life.status.ok()) << life.status.ToString();
    if (seed == 1) ASSERT_NO_FATAL_FAILURE(life.MakeTable());
    for (int i = 0; i < kRowsAMemtable; ++i) {
      ASSERT_NO_FATAL_FAILURE(life.Put(i, std::string(kValueBytes, 'v')));
    }
    life.Idle();
    flushes += life.flushes();
  }
  EXPECT_LE(flushes, 10u);
}

// The files go by the memtables, as does what a store takes on the disk and reads when it opens.
TEST(LogBoundsTest, ItsFilesGoByTheMemory) {
  struct Case {
    uint64_t memory_bytes, file_bytes;
  };
  for (const Case& c :
       {Case{64u << 20, 8u << 20}, Case{512u << 20, 32u << 20}, Case{4ull << 30, 64u << 20}}) {
    SimDisk disk(9);
    SimRuntime runtime({.seed = 1, .shards = 1}, disk);
    StoreOptions options;
    options.create_if_missing = true;
    options.memory_bytes = c.memory_bytes;
    options.reserve_bytes = 1u << 20;
    Result<std::unique_ptr<Store>> store = runtime.RunToEnd(Store::Open(runtime, std::move(options)));
    ASSERT_TRUE(store.ok()) << store.status().ToString();
    size_t files = 0;
    for (const std::string& path : disk.ListFiles("log-1-0/")) {
      if (!path.ends_with(".log")) continue;
      ++files;
      EXPECT_EQ(disk.ReadFile(path)->size(), c.file_bytes) << path;
    }
    EXPECT_GT(files, 0u);
    EXPECT_TRUE(runtime.RunToEnd((*store)->Close()).ok());
  }
}

// A writer who takes the log again the moment he gives it back does not keep it from being trimmed.
TEST(LogBoundsTest, ALogThatIsNeverAtRestIsTrimmed) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SimDisk disk(seed);
    Life life(disk, seed);
    ASSERT_TRUE(life.status.ok()) << life.status.ToString();
    ASSERT_NO_FATAL_FAILURE(life.Write(1000));
    EXPECT_LE(life.live_bytes_max, 8 * kSegmentBytes) << seed;
  }
}

}  // namespace
}  // namespace partita
