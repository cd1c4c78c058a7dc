#include "engine/page_scan.h"

#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "engine/base/user_key.h"
#include "engine/io/sim_runtime.h"
#include "engine/store.h"

namespace partita {
namespace {

using ::testing::ElementsAre;
using Verdict = RowSink::Verdict;

// Takes rows until told otherwise.
class JudgingSink : public RowSink {
 public:
  std::vector<std::string> keys;
  std::function<Verdict(const std::string& key)> judge = [](const std::string&) { return Verdict::kTaken; };
  bool goes_on = true;
  int asked = 0;

  Verdict Add(std::string_view user_key, Version, std::string_view content) override {
    const Verdict verdict = judge(std::string(user_key));
    EXPECT_EQ(content, "value of " + std::string(user_key.substr(kTableIdSize)));
    if (verdict == Verdict::kTaken) keys.emplace_back(user_key);
    return verdict;
  }
  bool GoOn() override {
    ++asked;
    return goes_on;
  }
};

// A table cut into three ranges on two shards, with rows in memtables and files, and tombstones.
class PageScanTest : public testing::Test {
 protected:
  PageScanTest() : disk_(5), runtime_({.seed = 5, .shards = 2}, disk_) {
    StoreOptions options;
    options.create_if_missing = true;
    options.memory_bytes = 64u << 20;
    options.shards = 2;
    options.log_segment_bytes = 256u << 10;
    options.log_tail_bytes = 64u << 10;
    store_ = std::move(runtime_.RunToEnd(Store::Open(runtime_, options))).value();
    Store::TableSpec spec;
    spec.account = "default";
    spec.name = "rows";
    spec.raw = true;
    spec.split_partitions = {"b", "c"};
    table_ = runtime_.RunToEnd(store_->CreateTable(spec))->id;
    for (int round = 0; round < 3; ++round) {
      for (const char* partition : {"a", "b", "bb", "c", "d"}) {
        for (int i = round; i < 60; i += round + 1) Write(partition, i, /*remove=*/(i + round) % 7 == 0);
      }
      if (round < 2) EXPECT_TRUE(runtime_.RunToEnd(store_->FlushMemtables()).ok());
    }
  }
  ~PageScanTest() override { EXPECT_TRUE(runtime_.RunToEnd(store_->Close()).ok()); }

  std::string Key(const std::string& partition, int i) const {
    std::string row = std::to_string(i);
    return EncodeUserKey(table_, partition, std::string(3 - row.size(), '0') + row);
  }
  void Write(const std::string& partition, int i, bool remove) {
    const std::string key = Key(partition, i);
    if (!remove) {
      Put(key, "value of " + key.substr(kTableIdSize));
      rows_.insert(key);
      return;
    }
    WriteOp op;
    op.user_key = key;
    op.kind = WriteKind::kDelete;
    (void)Send(op);  // It may not be there.
    rows_.erase(key);
  }
  void Put(const std::string& key, const std::string& content) {
    WriteOp op;
    op.user_key = key;
    op.kind = WriteKind::kPut;
    op.content = content;
    const Status put = Send(op);
    EXPECT_TRUE(put.ok()) << put.ToString();
  }
  Status Send(const WriteOp& op) {
    WriteRequest request;
    request.table = table_;
    request.ops = std::span<const WriteOp>(&op, 1);
    request.durability = DurabilityLevel::kMemory;
    return runtime_.RunToEnd(store_->Write(request)).status;
  }

  ScanRequest Whole(Direction direction = Direction::kForward) const {
    ScanRequest request;
    request.lower = TableLowerBound(table_);
    request.upper = TableUpperBound(table_);
    request.direction = direction;
    request.limit = UINT32_MAX;
    return request;
  }
  ScanAnswer Scan(const ScanRequest& request, RowSink* sink) {
    Result<ScanAnswer> answer = runtime_.RunToEnd(store_->Scan(request, sink));
    EXPECT_TRUE(answer.ok()) << answer.status().ToString();
    return answer.ok() ? *answer : ScanAnswer();
  }
  std::vector<std::string> Expected(Direction direction) const {
    std::vector<std::string> keys(rows_.begin(), rows_.end());
    if (direction == Direction::kBackward) std::reverse(keys.begin(), keys.end());
    return keys;
  }

  SimDisk disk_;
  SimRuntime runtime_;
  std::unique_ptr<Store> store_;
  TableId table_;
  std::set<std::string> rows_;
};

TEST_F(PageScanTest, RowsThatAreRefusedDoNotCountForThePage) {
  JudgingSink sink;
  int seen = 0;
  sink.judge = [&seen](const std::string&) { return ++seen % 10 == 0 ? Verdict::kTaken : Verdict::kPassed; };
  const ScanAnswer answer = Scan(Whole(), &sink);
  EXPECT_TRUE(answer.done);
  EXPECT_EQ(static_cast<size_t>(seen), rows_.size());
  EXPECT_EQ(answer.rows, rows_.size() / 10);
  EXPECT_EQ(answer.rows, sink.keys.size());
}

// A counter's row may have a million of them before it is flushed.
TEST_F(PageScanTest, VersionsInAMemtableThatAreOverwrittenAreNotWalked) {
  Write("a", 1, /*remove=*/false);
  JudgingSink sink;
  const uint64_t scanned = Scan(Whole(), &sink).scanned;
  for (int i = 0; i < 100; ++i) Write("a", 1, /*remove=*/false);
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    JudgingSink again;
    EXPECT_EQ(Scan(Whole(direction), &again).scanned, scanned);
    EXPECT_EQ(again.keys, Expected(direction));
  }
}

TEST_F(PageScanTest, APageEndsBeforeTheRowThatTheSinkStopsAt) {
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    ScanRequest request = Whole(direction);
    std::vector<std::string> all;
    for (int pages = 0; pages < 1000; ++pages) {
      JudgingSink sink;
      std::string stopped_at;
      int seen = 0;
      sink.judge = [&](const std::string& key) {
        if (++seen <= 7) return Verdict::kTaken;
        stopped_at = key;
        return Verdict::kStop;
      };
      const ScanAnswer answer = Scan(request, &sink);
      all.insert(all.end(), sink.keys.begin(), sink.keys.end());
      if (answer.done) break;
      ASSERT_EQ(answer.next_key, direction == Direction::kForward ? stopped_at : stopped_at + '\0');
      (direction == Direction::kForward ? request.lower : request.upper) = answer.next_key;
    }
    EXPECT_EQ(all, Expected(direction));
  }
}

TEST_F(PageScanTest, ASinkThatDoesNotGoOnEndsThePageWithoutLosingARow) {
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    ScanRequest request = Whole(direction);
    std::vector<std::string> all;
    int pages = 1;
    for (; pages < 1000; ++pages) {
      JudgingSink sink;
      sink.goes_on = false;
      const ScanAnswer answer = Scan(request, &sink);
      EXPECT_LE(answer.scanned, 128u);
      all.insert(all.end(), sink.keys.begin(), sink.keys.end());
      if (answer.done) break;
      (direction == Direction::kForward ? request.lower : request.upper) = answer.next_key;
    }
    EXPECT_EQ(all, Expected(direction));
    EXPECT_GT(pages, 3);
  }
}

// A row may have a MiB.
TEST_F(PageScanTest, LargeRowsMakeSlicesShort) {
  class CountingSink : public RowSink {
   public:
    int rows = 0;
    int asked = 0;
    Verdict Add(std::string_view, Version, std::string_view) override {
      ++rows;
      return Verdict::kTaken;
    }
    bool GoOn() override {
      ++asked;
      return true;
    }
  };
  constexpr int kRows = 60;  // Less than a slice, were they small.
  const std::string large(30'000, 'x');
  for (int i = 0; i < kRows; ++i) Put(Key("large", i), large);
  for (const bool flushed : {false, true}) {
    if (flushed) EXPECT_TRUE(runtime_.RunToEnd(store_->FlushMemtables()).ok());
    for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
      ScanRequest request = Whole(direction);
      request.lower = Key("large", 0);
      CountingSink sink;
      Scan(request, &sink);
      EXPECT_EQ(sink.rows, kRows);
      EXPECT_GE(sink.asked, kRows / 10) << "8 rows to a slice";
    }
  }
}

TEST_F(PageScanTest, ADeadlineInThePastStillLetsEveryPageGetOn) {
  ScanRequest request = Whole();
  request.deadline_ns = 1;
  size_t rows = 0;
  for (int pages = 0; pages < 1000; ++pages) {
    JudgingSink sink;
    const ScanAnswer answer = Scan(request, &sink);
    rows += answer.rows;
    if (answer.done) break;
    ASSERT_GT(answer.next_key, request.lower);
    request.lower = answer.next_key;
  }
  EXPECT_EQ(rows, rows_.size());
}

TEST_F(PageScanTest, IntervalsGiveTheirKeysAcrossRangesAndNothingElseInBothDirections) {
  std::mt19937_64 random(6);
  const char* partitions[] = {"", "a", "b", "ba", "bb", "c", "d", "e"};
  for (int round = 0; round < 400; ++round) {
    std::set<std::string> cuts;
    while (cuts.size() < 2 + random() % 12) cuts.insert(Key(partitions[random() % 8], random() % 70));
    std::vector<ScanInterval> intervals;
    for (auto cut = cuts.begin(); cut != cuts.end(); ++cut) {
      const auto next = std::next(cut);
      if (random() % 3 == 0) {
        intervals.push_back({*cut, *cut + '\0'});
      } else if (next != cuts.end()) {
        intervals.push_back({*cut, *next});
        if (random() % 2 == 0) cut = next;
        if (cut == cuts.end()) break;
      }
    }
    std::vector<std::string> expected, found;
    for (const std::string& key : rows_) {
      for (const auto& interval : intervals) {
        if (key >= interval.lower && key < interval.upper) expected.push_back(key);
      }
    }
    const bool forward = round % 2 == 0;
    if (!forward) std::reverse(expected.begin(), expected.end());
    ScanRequest request = Whole(forward ? Direction::kForward : Direction::kBackward);
    request.only = intervals;
    request.limit = 1 + random() % 40;
    while (!intervals.empty()) {
      JudgingSink sink;
      const ScanAnswer answer = Scan(request, &sink);
      ASSERT_LE(answer.rows, request.limit);
      found.insert(found.end(), sink.keys.begin(), sink.keys.end());
      if (answer.done) break;
      std::string& bound = forward ? request.lower : request.upper;
      ASSERT_TRUE(forward ? answer.next_key > bound : answer.next_key < bound);
      bound = answer.next_key;
    }
    ASSERT_EQ(found, expected) << (forward ? "forward" : "backward");
  }
}

TEST_F(PageScanTest, IntervalsBehindTheTablesRowsEndAtOnce) {
  JudgingSink sink;
  const std::vector<ScanInterval> intervals = {{Key("x", 1), Key("x", 2)}};
  ScanRequest request = Whole();
  request.only = intervals;
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    request.direction = direction;
    const ScanAnswer answer = Scan(request, &sink);
    EXPECT_TRUE(answer.done);
    EXPECT_EQ(answer.scanned, 0u);
  }
}

}  // namespace
}  // namespace partita
