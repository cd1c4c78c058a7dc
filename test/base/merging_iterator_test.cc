#include "engine/base/merging_iterator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "engine/base/executor.h"

namespace partita {
namespace {

struct Row {
  std::string key;
  uint64_t version = 0;
  std::string value;
  friend bool operator==(const Row&, const Row&) = default;
};

void PrintTo(const Row& row, std::ostream* out) { *out << row.key << "@" << row.version; }

bool RowBefore(const Row& a, const Row& b, Direction direction) {
  int order = a.key.compare(b.key);
  if (order != 0) return (order < 0) == (direction == Direction::kForward);
  return a.version > b.version;
}

// A cursor over sorted rows that now and then pretends its next row must be read first.
class FlakySource : public EntryIterator {
 public:
  FlakySource(std::vector<Row> rows, Direction direction, uint32_t io_one_in, uint32_t seed)
      : rows_(std::move(rows)), direction_(direction), io_one_in_(io_one_in), random_(seed) {
    std::sort(rows_.begin(), rows_.end(),
              [direction](const Row& a, const Row& b) { return RowBefore(a, b, direction); });
  }

  IterState SeekToFirst() override { return MoveTo(0); }
  IterState Seek(std::string_view key) override {
    size_t at = 0;
    while (at < rows_.size() &&
           (direction_ == Direction::kForward ? rows_[at].key < key : rows_[at].key >= key)) {
      ++at;
    }
    return MoveTo(at);
  }
  IterState Next() override {
    EXPECT_EQ(state_, IterState::kEntry);
    return MoveTo(at_ + 1);
  }
  IterState state() const override { return state_; }
  Task<Status> Fetch() override {
    EXPECT_EQ(state_, IterState::kNeedsIo);
    ++fetches_;
    if (Executor::Current() != nullptr) co_await Yield();
    if (fail_next_fetch_) {
      fail_next_fetch_ = false;
      co_return Status::Corruption("planted");
    }
    if (random_() % 8 == 0) co_return Status();  // It still needs I/O: allowed by the contract.
    Show();
    co_return Status();
  }
  const Entry& entry() const override {
    EXPECT_EQ(state_, IterState::kEntry);
    return entry_;
  }

  void FailNextFetch() { fail_next_fetch_ = true; }
  int fetches() const { return fetches_; }

 private:
  IterState MoveTo(size_t at) {
    at_ = at;
    if (io_one_in_ != 0 && random_() % io_one_in_ == 0) return state_ = IterState::kNeedsIo;
    Show();
    return state_;
  }
  void Show() {
    state_ = at_ < rows_.size() ? IterState::kEntry : IterState::kEnd;
    if (state_ == IterState::kEnd) return;
    entry_ = Entry{rows_[at_].key, Version(rows_[at_].version), EntryKind::kPut, rows_[at_].value};
  }

  std::vector<Row> rows_;
  Direction direction_;
  uint32_t io_one_in_;
  std::mt19937 random_;
  size_t at_ = 0;
  int fetches_ = 0;
  bool fail_next_fetch_ = false;
  IterState state_ = IterState::kEnd;
  Entry entry_;
};

// One thread's event loop without clock or I/O, enough to run coroutines that suspend.
class LoopExecutor : public Executor {
 public:
  void Post(Runnable* work) override { queue_.push_back(work); }
  void PostAt(uint64_t, Runnable* work) override { queue_.push_back(work); }
  uint64_t MonotonicNanos() override { return 0; }
  bool ShouldYield() override { return false; }

  template <typename T>
  T Run(Task<T> task) {
    Scope scope(this);
    task.Start();
    while (!queue_.empty()) {
      Runnable* work = queue_.front();
      queue_.pop_front();
      work->run(work);
    }
    EXPECT_TRUE(task.done());
    return task.Take();
  }

 private:
  std::deque<Runnable*> queue_;
};

enum class Start { kFirst, kSeek };

Task<Result<std::vector<Row>>> Drain(EntryIterator* it, Start start, std::string key) {
  std::vector<Row> rows;
  IterState state = start == Start::kFirst ? it->SeekToFirst() : it->Seek(key);
  while (true) {
    if (state == IterState::kNeedsIo) {
      PARTITA_CO_TRY(co_await it->Fetch());
      state = it->state();
      continue;
    }
    if (state == IterState::kEnd) break;
    const Entry& entry = it->entry();
    rows.push_back(Row{std::string(entry.user_key), entry.version.value, std::string(entry.value)});
    state = it->Next();
  }
  co_return rows;
}

// Keys that often share their first 16 bytes, are prefixes of each other, or hold high bytes.
std::string RandomKey(std::mt19937& random) {
  static const char* const kFronts[] = {"", "a", "sixteen-bytes-ok", "sixteen-bytes-ok-and-more", "\xff\xff"};
  std::string key = kFronts[random() % 5];
  for (uint32_t length = random() % 4; length > 0; --length) {
    key.push_back("\0\x01z\xff"[random() % 4]);
  }
  return key;
}

struct Sources {
  std::vector<std::unique_ptr<EntryIterator>> iterators;
  std::vector<Row> sorted;  // What the merge must give.
};

Sources RandomSources(std::mt19937& random, Direction direction, uint32_t io_one_in) {
  Sources made;
  uint64_t version = 1;
  size_t count = random() % 10;
  uint32_t run_length = 1 + random() % 20;
  std::vector<std::vector<Row>> rows(count);
  for (size_t i = 0; count > 0 && i < random() % 300; ++i) {
    std::vector<Row>& source = rows[(i / run_length + random() % 2) % count];
    source.push_back(Row{RandomKey(random), version, "v" + std::to_string(version)});
    made.sorted.push_back(source.back());
    ++version;
  }
  for (auto& source : rows) {
    made.iterators.push_back(std::make_unique<FlakySource>(std::move(source), direction, io_one_in,
                                                           static_cast<uint32_t>(random())));
  }
  std::sort(made.sorted.begin(), made.sorted.end(),
            [direction](const Row& a, const Row& b) { return RowBefore(a, b, direction); });
  return made;
}

class MergingIteratorTest : public testing::TestWithParam<std::tuple<Direction, bool>> {
 protected:
  Direction direction() const { return std::get<0>(GetParam()); }

  Result<std::vector<Row>> Run(EntryIterator& it, Start start = Start::kFirst, std::string key = "") {
    if (std::get<1>(GetParam())) return loop_.Run(Drain(&it, start, key));
    return RunBlocking(Drain(&it, start, key));
  }

  LoopExecutor loop_;
};

TEST_P(MergingIteratorTest, GivesEveryEntryOfEverySourceInInternalOrder) {
  for (uint32_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    Sources sources = RandomSources(random, direction(), seed % 3 == 0 ? 0 : seed % 7 + 1);
    auto merged = MakeMergingIterator(std::move(sources.iterators), direction());
    Result<std::vector<Row>> rows = Run(*merged);
    ASSERT_TRUE(rows.ok());
    ASSERT_EQ(*rows, sources.sorted);
  }
}

TEST_P(MergingIteratorTest, SeeksToTheBoundInItsDirectionAgainAndAgain) {
  for (uint32_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    Sources sources = RandomSources(random, direction(), seed % 2 == 0 ? 0 : 3);
    auto merged = MakeMergingIterator(std::move(sources.iterators), direction());
    for (int i = 0; i < 5; ++i) {
      std::string bound = RandomKey(random);
      std::vector<Row> expected;
      for (const Row& row : sources.sorted) {
        if (direction() == Direction::kForward ? row.key >= bound : row.key < bound) expected.push_back(row);
      }
      Result<std::vector<Row>> rows = Run(*merged, Start::kSeek, bound);
      ASSERT_TRUE(rows.ok());
      ASSERT_EQ(*rows, expected);
    }
  }
}

TEST_P(MergingIteratorTest, TellsWithWhichKeyTheOtherSourcesGoOn) {
  for (uint32_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    std::vector<std::vector<Row>> left(2 + random() % 8);
    for (uint64_t version = 1; version < 200; ++version)
      left[random() % left.size()].push_back(Row{RandomKey(random), version, "v"});
    std::vector<std::unique_ptr<EntryIterator>> sources;
    const auto before = [this](const Row& a, const Row& b) { return RowBefore(a, b, direction()); };
    for (auto& rows : left) {
      sources.push_back(std::make_unique<FlakySource>(rows, direction(), /*io_one_in=*/0, seed));
      std::sort(rows.begin(), rows.end(), before);
    }
    MergingIterator merged(std::move(sources), direction());
    for (IterState at = merged.SeekToFirst(); at == IterState::kEntry; at = merged.Next()) {
      std::optional<Row> next;
      for (size_t i = 0; i < left.size(); ++i) {
        if (i == merged.leading_source() || left[i].empty()) continue;
        if (!next || before(left[i].front(), *next)) next = left[i].front();
      }
      ASSERT_EQ(merged.NextKeyOfOthers().has_value(), next.has_value());
      if (next) ASSERT_EQ(*merged.NextKeyOfOthers(), next->key);
      left[merged.leading_source()].erase(left[merged.leading_source()].begin());
    }
  }
}

// covers: F43 F46
TEST_P(MergingIteratorTest, AFailedFetchIsReportedAndPassesOverNothing) {
  std::vector<std::unique_ptr<EntryIterator>> sources;
  std::vector<FlakySource*> flaky;
  for (int i = 0; i < 3; ++i) {
    std::vector<Row> rows;
    for (uint64_t k = 0; k < 4; ++k) rows.push_back(Row{"key" + std::to_string(k), k * 3 + i, "v"});
    auto source = std::make_unique<FlakySource>(rows, direction(), 1, 7);
    flaky.push_back(source.get());
    sources.push_back(std::move(source));
  }
  auto merged = MakeMergingIterator(std::move(sources), direction());
  flaky[1]->FailNextFetch();
  EXPECT_EQ(Run(*merged).code(), Code::kCorruption);
  EXPECT_EQ(merged->state(), IterState::kNeedsIo);
  EXPECT_GT(flaky[0]->fetches(), 0);
  Result<std::vector<Row>> rows = Run(*merged);
  ASSERT_TRUE(rows.ok());
  EXPECT_EQ(rows->size(), 12u);
}

TEST_P(MergingIteratorTest, WithNoSourceItIsAtItsEnd) {
  auto merged = MakeMergingIterator({}, direction());
  EXPECT_EQ(merged->SeekToFirst(), IterState::kEnd);
  EXPECT_EQ(merged->Seek("x"), IterState::kEnd);
}

INSTANTIATE_TEST_SUITE_P(BothWays, MergingIteratorTest,
                         testing::Combine(testing::Values(Direction::kForward, Direction::kBackward),
                                          testing::Bool()),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param) == Direction::kForward ? "Forward"
                                                                                             : "Backward") +
                                  (std::get<1>(info.param) ? "OnAnExecutor" : "Blocking");
                         });

}  // namespace
}  // namespace partita
