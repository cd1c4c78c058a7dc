#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/user_key.h"
#include "engine/io/sim_runtime.h"
#include "engine/store.h"
#include "test/engine/stalled_fixture.h"
#include "test/support/into.h"

// covers: F26 F58: many large rows are read in turns, within the memory for it, and a disk that is but slow
// is waited for.

namespace partita {
namespace {

constexpr size_t kLargeRows = 6;
constexpr size_t kLargeRowBytes = 700u << 10;

// Does not compress.
std::string LargeContentOf(size_t row) {
  std::mt19937_64 random(row);
  std::string content(kLargeRowBytes, '\0');
  for (size_t i = 0; i + 8 <= content.size(); i += 8) {
    const uint64_t word = random();
    content.replace(i, 8, reinterpret_cast<const char*>(&word), 8);
  }
  return content;
}

// Rows of which a read takes 1.4 MiB, where 2 MiB may be read at once: of 64 MiB.
class ReadsInTurnTest : public testing::Test {
 protected:
  using Answer = std::optional<Result<Shard::ReadAnswer>>;

  void SetUp() override {
    Open();
    Result<TableDescriptor> made = runtime_.RunToEnd(MakeRawTable(store_.get(), "rows"));
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    table_ = made->id;
    for (size_t row = 0; row < kLargeRows; ++row) ASSERT_TRUE(runtime_.RunToEnd(Write(row)).ok());
    ASSERT_TRUE(runtime_.RunToEnd(store_->FlushMemtables()).ok());
    const ShardStatistics statistics = store_->Statistics()[0];
    uint64_t files = 0;
    for (const auto& level : statistics.levels) files += level.files;
    ASSERT_EQ(files, 1u);  // So that one read has the index of all.
    ASSERT_TRUE(runtime_.RunToEnd(store_->Close()).ok());
    Open();  // With nothing in memory.
  }
  void TearDown() override {
    if (store_ != nullptr) EXPECT_TRUE(runtime_.RunToEnd(store_->Close()).ok());
  }
  void Open() {
    Result<std::unique_ptr<Store>> opened = runtime_.RunToEnd(Store::Open(runtime_, OneShardStore()));
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    store_ = std::move(opened).value();
  }
  Task<Status> Write(size_t row) {
    const std::string key = KeyOfLarge(row), content = LargeContentOf(row);
    const WriteOp op{.user_key = key, .content = content};
    const WriteRequest request{.table = table_, .ops = std::span<const WriteOp>(&op, 1)};
    WriteOutcome outcome = co_await store_->Write(request);
    co_return outcome.status;
  }
  std::string KeyOfLarge(size_t row) const { return EncodeUserKey(table_, "p", std::to_string(1000 + row)); }

  Task<Result<Shard::ReadAnswer>> Read(size_t row) {
    co_return co_await store_->Get(KeyOfLarge(row), &contents_[row]);
  }
  void Begin(size_t row) { runtime_.Spawn(Into(Read(row), &answers_[row])); }
  void SlowReads(uint64_t delay_ns) {
    runtime_.AddFault({.effect = SimEffect::kSlow,
                       .operations = SimOps(SimOp::kRead),
                       .path_prefix = "tables/",
                       .delay_ns = delay_ns});
  }
  size_t answered() const {
    return static_cast<size_t>(std::count_if(answers_.begin(), answers_.end(),
                                             [](const Answer& answer) { return answer.has_value(); }));
  }

  SimDisk disk_{1};
  SimRuntime runtime_{{.seed = 1, .shards = 1}, disk_};
  std::unique_ptr<Store> store_;
  TableId table_;
  std::vector<Answer> answers_{kLargeRows};
  std::vector<std::string> contents_{kLargeRows};
};

// All of them together wait for longer than the deadline of one.
TEST_F(ReadsInTurnTest, ManyStayWithinTheirMemoryAndAllAreAnswered) {
  const uint64_t bytes_max = store_->memory_plan().request_bytes / 2;
  SlowReads(8 * kNanosPerSecond);
  for (size_t row = 0; row < kLargeRows; ++row) Begin(row);
  uint64_t in_flight_max = 0, reads_max = 0;
  for (int second = 0; answered() < kLargeRows && second < 200; ++second) {
    runtime_.AdvanceTime(kNanosPerSecond);
    in_flight_max = std::max(in_flight_max, store_->read_turns().bytes_in_flight());
    // The first ones read index blocks, which are small.
    if (second > 16) reads_max = std::max(reads_max, runtime_.operations_in_flight());
  }
  EXPECT_GT(in_flight_max, 2 * kLargeRowBytes - 1);
  EXPECT_LE(in_flight_max, bytes_max);
  EXPECT_EQ(reads_max, 1u);
  ASSERT_EQ(answered(), kLargeRows);
  for (size_t row = 0; row < kLargeRows; ++row) {
    ASSERT_TRUE(answers_[row]->ok()) << row << answers_[row]->status().ToString();
    EXPECT_EQ(contents_[row], LargeContentOf(row)) << row;
  }
  EXPECT_EQ(store_->read_turns().bytes_in_flight(), 0u);
  EXPECT_EQ(store_->waits().overdue_total(), 0u);
}

// Whoever waits for its turn as long as a read may take learns that the disk does not answer, too.
TEST_F(ReadsInTurnTest, BehindReadsThatHangTheWaitEnds) {
  ASSERT_TRUE(runtime_.RunToEnd(Read(0)).ok());  // The index is in memory.
  SlowReads(1000 * kNanosPerSecond);
  for (size_t row = 1; row < kLargeRows; ++row) {
    Begin(row);
    if (row == kLargeRows / 2) runtime_.AdvanceTime(10 * kNanosPerSecond);
  }
  runtime_.AdvanceTime(19 * kNanosPerSecond);
  EXPECT_EQ(answered(), 0u);
  runtime_.AdvanceTime(2 * kNanosPerSecond);  // The first one is overdue, and those that waited so long.
  EXPECT_EQ(answered(), kLargeRows / 2);
  runtime_.AdvanceTime(30 * kNanosPerSecond);  // One more went, and hung.
  EXPECT_EQ(answered(), kLargeRows - 1);
  for (size_t row = 1; row < kLargeRows; ++row) {
    if (answers_[row]) EXPECT_EQ(answers_[row]->code(), Code::kDeadlineExceeded) << row;
  }
  EXPECT_EQ(store_->waits().overdue_total(), 2u);
  runtime_.ClearFaults();
  runtime_.AdvanceTime(1000 * kNanosPerSecond);
  EXPECT_EQ(store_->waits().overdue(), 0u);
  for (size_t row = 0; row < kLargeRows; ++row) ASSERT_TRUE(runtime_.RunToEnd(Read(row)).ok()) << row;
}

}  // namespace
}  // namespace partita
