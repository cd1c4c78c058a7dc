#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/user_key.h"
#include "engine/io/runtime_over.h"
#include "engine/io/sim_runtime.h"
#include "engine/store.h"
#include "engine/world.h"
#include "test/engine/stalled_fixture.h"
#include "test/support/hanging_files.h"
#include "test/support/into.h"
#include "test/support/scratch_directory.h"

// covers: F26 F62: a disk that does not answer reads of tables: on a worker they end at the deadline, what
// comes late changes nothing, and the rest goes on.

namespace partita {
namespace {

using testing::HasSubstr;

constexpr size_t kRows = 400;
constexpr uint64_t kHangNanos = 60 * kNanosPerSecond;

std::string KeyOf(TableId table, size_t row) { return EncodeUserKey(table, "p", std::to_string(1000 + row)); }

// Does not compress: all rows are more than what is read at once.
std::string ContentOf(size_t row) {
  std::mt19937 random(static_cast<uint32_t>(row));
  std::string content(4000, '\0');
  for (char& c : content) c = static_cast<char>(random());
  return content;
}

Task<Status> WriteRows(Store* store, TableId table, std::vector<size_t> rows, Precondition precondition) {
  std::vector<std::string> keys;
  for (size_t row : rows) keys.push_back(KeyOf(table, row));
  std::vector<std::string> contents;
  for (size_t row : rows) contents.push_back(ContentOf(row));
  std::vector<WriteOp> ops;
  for (size_t i = 0; i < rows.size(); ++i)
    ops.push_back({.precondition = precondition, .user_key = keys[i], .content = contents[i]});
  const WriteRequest request{.table = table, .ops = ops};
  WriteOutcome outcome = co_await store->Write(request);
  co_return outcome.status;
}

class CountingSink final : public RowSink {
 public:
  explicit CountingSink(uint64_t* rows) : rows_(*rows) {}
  Verdict Add(std::string_view, Version, std::string_view) override {
    ++rows_;
    return Verdict::kTaken;
  }

 private:
  uint64_t& rows_;
};

// A store on a simulated disk with rows in tables, of which memory has no block.
class StalledReadsTest : public testing::TestWithParam<uint64_t> {
 protected:
  void SetUp() override {
    Open();
    Result<TableDescriptor> made = runtime_.RunToEnd(MakeRawTable(store_.get(), "rows"));
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    table_ = made->id;
    for (size_t row = 0; row < kRows; ++row)
      ASSERT_TRUE(runtime_.RunToEnd(Write({row}, Precondition::kNone)).ok());
    ASSERT_TRUE(runtime_.RunToEnd(store_->FlushMemtables()).ok());
    Reopen();
  }
  void TearDown() override {
    if (store_ != nullptr) EXPECT_TRUE(runtime_.RunToEnd(store_->Close()).ok());
  }
  void Open() {
    Result<std::unique_ptr<Store>> opened = runtime_.RunToEnd(Store::Open(runtime_, OneShardStore()));
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    store_ = std::move(opened).value();
  }
  // With nothing in memory.
  void Reopen() {
    ASSERT_TRUE(runtime_.RunToEnd(store_->Close()).ok());
    Open();
  }

  std::string Key(size_t row) const { return KeyOf(table_, row); }
  Task<Status> Write(std::vector<size_t> rows, Precondition precondition) {
    return WriteRows(store_.get(), table_, std::move(rows), precondition);
  }
  Task<Result<ScanAnswer>> Scan(std::string lower, uint64_t* rows) {
    ScanRequest request{.lower = std::move(lower), .upper = TableUpperBound(table_)};
    CountingSink sink(rows);
    co_return co_await store_->Scan(request, &sink);
  }
  Code CodeOfGet(size_t row) { return runtime_.RunToEnd(store_->Get(Key(row), &content_)).code(); }

  // The next so many reads of tables take a minute, after `skip` others.
  void HangReads(uint64_t count, uint64_t skip = 0) {
    fault_ = runtime_.AddFault({.effect = SimEffect::kSlow,
                                .operations = SimOps(SimOp::kRead),
                                .path_prefix = "tables/",
                                .skip = skip,
                                .count = count,
                                .delay_ns = kHangNanos});
  }
  // Begins it, and has it end at the deadline with that code.
  template <typename T>
  Status AtTheDeadline(Task<Result<T>> call) {
    std::optional<Result<T>> answer;
    runtime_.Spawn(Into(std::move(call), &answer));
    runtime_.AdvanceTime(29 * kNanosPerSecond);
    EXPECT_FALSE(answer);
    EXPECT_FALSE(store_->Statistics()[0].stalled);
    runtime_.AdvanceTime(2 * kNanosPerSecond);
    EXPECT_TRUE(answer);
    return answer ? answer->status() : Status();
  }
  void ExpectStalled(uint64_t reads) {
    EXPECT_EQ(runtime_.FaultHits(fault_), reads);
    EXPECT_EQ(store_->waits().overdue(), reads);
    EXPECT_TRUE(store_->Statistics()[0].stalled);
    EXPECT_FALSE(store_->Statistics()[0].fenced);
  }
  // The disk answers, and what comes then changes nothing.
  void ExpectHealthyAfterwards(uint64_t reads) {
    runtime_.AdvanceTime(kHangNanos);
    EXPECT_EQ(store_->waits().overdue(), 0u);
    EXPECT_EQ(store_->waits().overdue_total(), reads);
    EXPECT_FALSE(store_->Statistics()[0].stalled);
    for (size_t row = 0; row < kRows; ++row) ASSERT_EQ(CodeOfGet(row), Code::kOk) << row;
  }

  SimDisk disk_{GetParam()};
  SimRuntime runtime_{{.seed = GetParam(), .shards = 1}, disk_};
  std::unique_ptr<Store> store_;
  TableId table_;
  std::string content_;
  size_t fault_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Seeds, StalledReadsTest, testing::Range(uint64_t{1}, uint64_t{9}));

TEST_P(StalledReadsTest, AGetIsAnsweredAtTheDeadlineAndTheRestGoesOn) {
  HangReads(1);
  std::string content;
  const Status got = AtTheDeadline(store_->Get(Key(7), &content));
  EXPECT_EQ(got.code(), Code::kDeadlineExceeded);
  EXPECT_THAT(got.message(), HasSubstr("(F26)"));
  ExpectStalled(1);
  // Another read of the same is not begun.
  const uint64_t before = runtime_.now_ns();
  EXPECT_EQ(CodeOfGet(7), Code::kDeadlineExceeded);
  EXPECT_LT(runtime_.now_ns() - before, kNanosPerSecond);
  EXPECT_EQ(store_->waits().overdue(), 1u);
  EXPECT_TRUE(runtime_.RunToEnd(Write({kRows}, Precondition::kAbsent)).ok());
  ExpectHealthyAfterwards(1);
}

// The block, behind its index block.
TEST_P(StalledReadsTest, AnyReadOfALookupHasTheDeadline) {
  HangReads(1, /*skip=*/1);
  std::string content;
  EXPECT_EQ(AtTheDeadline(store_->Get(Key(7), &content)).code(), Code::kDeadlineExceeded);
  ExpectStalled(1);
  EXPECT_EQ(CodeOfGet(7), Code::kDeadlineExceeded);
  EXPECT_EQ(CodeOfGet(300), Code::kOk);
  ExpectHealthyAfterwards(1);
}

TEST_P(StalledReadsTest, AScanIsAnsweredAtTheDeadline) {
  HangReads(1);
  uint64_t rows = 0;
  EXPECT_EQ(AtTheDeadline(Scan(Key(0), &rows)).code(), Code::kDeadlineExceeded);
  EXPECT_EQ(rows, 0u);
  ExpectStalled(1);
  ExpectHealthyAfterwards(1);
}

// A page that has its first rows: what is read ahead, and whatever else, does not come.
TEST_P(StalledReadsTest, AScanInItsMiddleIsAnsweredAtTheDeadline) {
  int pages_with_rows = 0;
  for (uint64_t skip = 1; skip < 4; ++skip) {
    HangReads(UINT64_MAX, skip);
    std::optional<Result<ScanAnswer>> answer;
    uint64_t rows = 0;
    runtime_.Spawn(Into(Scan(Key(0), &rows), &answer));
    runtime_.AdvanceTime(31 * kNanosPerSecond);
    ASSERT_TRUE(answer) << skip;
    EXPECT_GT(runtime_.FaultHits(fault_), 0u) << skip;
    EXPECT_FALSE(answer->ok() && (*answer)->done) << skip;
    if (!answer->ok()) EXPECT_EQ(answer->code(), Code::kDeadlineExceeded) << answer->status().ToString();
    runtime_.RemoveFault(fault_);
    runtime_.AdvanceTime(kHangNanos);
    EXPECT_EQ(store_->waits().overdue(), 0u);

    // Whoever asks again, or goes on, sees the rest.
    if (answer->ok()) {
      EXPECT_EQ((*answer)->rows, rows);
      pages_with_rows += rows > 0;
    } else {
      rows = 0;
    }
    const std::string from = answer->ok() ? (*answer)->next_key : Key(0);
    const Result<ScanAnswer> rest = runtime_.RunToEnd(Scan(from, &rows));
    EXPECT_TRUE(rest.ok() && rest->done);
    EXPECT_EQ(rows, kRows) << skip;
    Reopen();
  }
  EXPECT_GT(pages_with_rows, 0);
}

// Whoever reads for a job loses all its work when it gives up. Who asked for a flush is told all the same.
TEST_P(StalledReadsTest, FlushesAndCompactionsWaitForTheirReads) {
  for (size_t row = 0; row < kRows; row += 2)
    ASSERT_TRUE(runtime_.RunToEnd(Write({row}, Precondition::kPresent)).ok());
  const uint64_t flushes = store_->Statistics()[0].flushes;
  HangReads(1, /*skip=*/GetParam() % 4);
  std::optional<Status> flushed, compacted;
  runtime_.Spawn(Into(store_->FlushMemtables(), &flushed));
  runtime_.AdvanceTime(kNanosPerSecond);
  runtime_.Spawn(Into(store_->CompactAll(), &compacted));
  runtime_.AdvanceTime(32 * kNanosPerSecond);
  EXPECT_EQ(runtime_.FaultHits(fault_), 1u);
  ASSERT_TRUE(flushed && compacted);
  EXPECT_EQ(flushed->code(), Code::kDeadlineExceeded);
  EXPECT_EQ(compacted->code(), Code::kDeadlineExceeded);
  EXPECT_EQ(store_->Statistics()[0].flushes, flushes);
  runtime_.AdvanceTime(kHangNanos);
  EXPECT_EQ(store_->Statistics()[0].flushes, flushes + 1);
  EXPECT_TRUE(runtime_.RunToEnd(store_->CompactAll()).ok());
  EXPECT_EQ(store_->waits().overdue_total(), 0u);
  for (size_t row = 0; row < kRows; ++row) ASSERT_EQ(CodeOfGet(row), Code::kOk) << row;
}

// A table whose filter, or whatever else, comes late is not taken for a damaged one as long as the store
// lives.
TEST_P(StalledReadsTest, OpeningWaitsForTheReads) {
  for (uint64_t skip = 0; skip < 4; ++skip) {
    HangReads(1, skip);
    const uint64_t before = runtime_.now_ns();
    Reopen();
    const bool hung = runtime_.FaultHits(fault_) > 0;
    if (skip == 0) EXPECT_TRUE(hung);
    if (hung) EXPECT_GE(runtime_.now_ns() - before, kHangNanos);
    runtime_.RemoveFault(fault_);
    EXPECT_EQ(store_->read_faults().damaged_filters.load(), 0u);
    for (size_t row = 0; row < kRows; ++row) ASSERT_EQ(CodeOfGet(row), Code::kOk) << row;
    EXPECT_TRUE(runtime_.RunToEnd(store_->Verify({}))->damages.empty());
  }
}

TEST_P(StalledReadsTest, ATransactionThatMustReadIsAnsweredAndNotDone) {
  HangReads(1);
  std::optional<Status> answer;
  runtime_.Spawn(Into(Write({5, 100, 395}, Precondition::kPresent), &answer));
  runtime_.AdvanceTime(29 * kNanosPerSecond);
  EXPECT_FALSE(answer);
  runtime_.AdvanceTime(2 * kNanosPerSecond);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->code(), Code::kDeadlineExceeded);
  ExpectStalled(1);
  const uint64_t writes = store_->Statistics()[0].writes;
  ExpectHealthyAfterwards(1);
  EXPECT_EQ(store_->Statistics()[0].writes, writes);
  EXPECT_TRUE(runtime_.RunToEnd(Write({5, 100, 395}, Precondition::kPresent)).ok());
}

// What is read into is there until the kernel has done with it, so closing waits for that.
TEST_P(StalledReadsTest, ClosingWaitsForTheRead) {
  HangReads(1);
  std::string content;
  EXPECT_EQ(AtTheDeadline(store_->Get(Key(7), &content)).code(), Code::kDeadlineExceeded);
  const uint64_t before = runtime_.now_ns();
  EXPECT_TRUE(runtime_.RunToEnd(store_->Close()).ok());
  EXPECT_GT(runtime_.now_ns() - before, kHangNanos - 32 * kNanosPerSecond);
  store_ = nullptr;
}

// Real threads: the caller whose own read hangs cannot come back before the kernel lets it, and learns then
// that it is too late; others are answered meanwhile.
TEST(StalledReadsThreadsTest, OthersAreAnsweredWhileOneThreadHangsInTheKernel) {
  ScratchDirectory directory;
  Result<std::unique_ptr<Runtime>> world =
      OpenWorld({.directory = directory.path() + "/store", .create_directory = true, .shards = 1});
  ASSERT_TRUE(world.ok()) << world.status().ToString();
  HangingFiles files((*world)->files(), "tables/");
  RuntimeOver runtime(**world, files);
  StoreOptions options = OneShardStore();
  Result<std::unique_ptr<Store>> opened = runtime.RunToEnd(Store::Open(runtime, options));
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  const TableId table = runtime.RunToEnd(MakeRawTable(opened->get(), "rows"))->id;
  for (size_t row = 0; row < kRows; ++row) {
    ASSERT_TRUE(RunBlocking(WriteRows(opened->get(), table, {row}, Precondition::kNone)).ok());
  }
  ASSERT_TRUE(RunBlocking((*opened)->FlushMemtables()).ok());
  ASSERT_TRUE(runtime.RunToEnd((*opened)->Close()).ok());
  options.io_deadline_ns = 3 * kNanosPerSecond;  // A real disk that others write to may take one or two.
  opened = runtime.RunToEnd(Store::Open(runtime, options));
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  Store& store = **opened;
  std::string content;
  ASSERT_TRUE(RunBlocking(store.Get(KeyOf(table, 200), &content)).ok());  // The index is in memory.

  files.HangNext();
  Code hung = Code::kOk;
  std::thread reader([&] {
    std::string read;
    hung = RunBlocking(store.Get(KeyOf(table, 7), &read)).code();
  });
  files.WaitUntilOneHangs();
  while (!store.Statistics()[0].stalled) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(store.waits().overdue(), 1u);
  EXPECT_EQ(RunBlocking(store.Get(KeyOf(table, 7), &content)).code(), Code::kDeadlineExceeded);
  EXPECT_TRUE(RunBlocking(store.Get(KeyOf(table, 390), &content)).ok());
  EXPECT_TRUE(RunBlocking(WriteRows(&store, table, {kRows}, Precondition::kNone)).ok());

  files.LetGo();
  reader.join();
  EXPECT_EQ(hung, Code::kDeadlineExceeded);
  EXPECT_FALSE(store.Statistics()[0].stalled);
  EXPECT_EQ(RunBlocking(store.Get(KeyOf(table, 7), &content))->state, Shard::ReadState::kFound);
  EXPECT_TRUE(runtime.RunToEnd(store.Close()).ok());
}

}  // namespace
}  // namespace partita
