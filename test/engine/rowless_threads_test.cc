#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <random>
#include <set>
#include <thread>

#include "engine/rowless_sweep.h"
#include "test/engine/rowless_rows.h"
#include "test/support/slowdown.h"

namespace partita {
namespace {

// Scans over what was deleted, beside threads that write. covers: F13 F14

// Writers delete what is at the front of their partitions, put rows in there again and behind; readers hold
// each page against what was and was not there all the time that it took.
class RowlessThreadsStoreTest : public testing::Test, protected Rows {
 protected:
  static constexpr int kRows = 1000, kWriters = 2, kReaders = 2;
  static constexpr uint64_t kLeapsWanted = 100 / kSlowdown;
  // Even: known, and 2 more than that the key is a row; odd: being changed. Rises with each change.
  struct State {
    std::atomic<uint64_t> changes{0};
    std::atomic<bool> is_row{false};
  };

  std::string Partition(int writer) const { return std::string(1, static_cast<char>('a' + writer)); }

  void WriteSpan(Store& store, Runtime& runtime, int writer, int begin, int end, WriteKind kind) {
    std::vector<std::string> keys;
    for (int row = begin; row < end; ++row) {
      keys.push_back(Key(Partition(writer), row));
      states_[writer][row].changes.fetch_add(1);
    }
    const WriteOutcome outcome = runtime.RunToEnd(WriteRows(store, table, keys, kind));
    ASSERT_TRUE(outcome.status.ok()) << outcome.status.ToString();
    for (int row = begin; row < end; ++row) {
      states_[writer][row].is_row.store(kind == WriteKind::kPut);
      states_[writer][row].changes.fetch_add(1);
    }
  }
  void RunWriter(Store& store, Runtime& runtime, int writer, int rounds) {
    std::mt19937_64 random(writer);
    int front = 0;
    for (int i = 0; i < rounds && leapt_.load() < kLeapsWanted && !HasFailure(); ++i) {
      // Beside slow readers the front would go on before a page can use what the one before it found.
      while (pages_.load() < static_cast<uint64_t>(i) && !HasFailure()) std::this_thread::yield();
      const int count = 1 + static_cast<int>(random() % 60);
      if (front + count >= kRows) {  // From the start again.
        for (int row = 0; row < kRows; row += 100) {
          WriteSpan(store, runtime, writer, row, row + 100, WriteKind::kPut);
        }
        front = 0;
      }
      WriteSpan(store, runtime, writer, front, front + count, WriteKind::kDelete);
      front += count;
      if (random() % 16 == 0) {
        const int back = static_cast<int>(random() % static_cast<uint64_t>(front));
        WriteSpan(store, runtime, writer, back, back + 1, WriteKind::kPut);
        if (random() % 2 == 0) WriteSpan(store, runtime, writer, back, back + 1, WriteKind::kDelete);
      }
    }
  }
  void ReadPage(Store& store, Runtime& runtime, std::mt19937_64& random) {
    const int writer = static_cast<int>(random() % kWriters);
    const int from = random() % 2 == 0 ? 0 : static_cast<int>(random() % kRows);
    ScanRequest request;
    request.lower = Key(Partition(writer), from);
    request.upper = Key(Partition(writer), kRows);
    request.limit = static_cast<uint32_t>(1 + random() % 3);
    if (random() % 4 == 0) request.direction = Direction::kBackward;
    std::vector<std::pair<uint64_t, bool>> before;
    for (int row = 0; row < kRows; ++row) {
      const uint64_t changes = states_[writer][row].changes.load();
      before.emplace_back(changes, states_[writer][row].is_row.load());
    }
    KeyTaker taken;
    Result<ScanAnswer> page = runtime.RunToEnd(store.Scan(request, &taken));
    ASSERT_TRUE(page.ok()) << page.status().ToString();
    const std::set<std::string> found(taken.keys.begin(), taken.keys.end());
    const bool forward = request.direction == Direction::kForward;
    const std::string lower = page->done || forward ? request.lower : page->next_key;
    const std::string upper = page->done || !forward ? request.upper : page->next_key;
    for (int row = from; row < kRows; ++row) {
      const std::string& key = keys_[writer][row];
      const uint64_t changes = before[row].first;
      if (key < lower || key >= upper || changes % 2 == 1) continue;
      if (states_[writer][row].changes.load() != changes) continue;
      ASSERT_EQ(found.contains(key), before[row].second) << writer << " " << row;
    }
    // From the front to a row with a look at fewer entries than there are keys before it.
    const int walked = static_cast<int>(std::min<uint64_t>(page->scanned, kRows));
    if (forward && from == 0 && !taken.keys.empty() && taken.keys.back() > Key(Partition(writer), walked)) {
      leapt_.fetch_add(1);
    }
    pages_.fetch_add(1);
  }

  std::array<std::array<std::string, kRows>, kWriters> keys_;
  std::array<std::array<State, kRows>, kWriters> states_;
  std::atomic<uint64_t> leapt_{0}, pages_{0};  // Pages that did for certain, and all.
};

TEST_F(RowlessThreadsStoreTest, PagesShowAllThatWasThereAllTheTime) {
  RealRowsStore rows(this);
  Store& store = rows.store();
  Runtime& runtime = rows.runtime();
  for (int writer = 0; writer < kWriters; ++writer) {
    for (int row = 0; row < kRows; ++row) keys_[writer][row] = Key(Partition(writer), row);
    for (int row = 0; row < kRows; row += 100) {
      WriteSpan(store, runtime, writer, row, row + 100, WriteKind::kPut);
    }
  }
  std::atomic<int> writing{kWriters};
  std::vector<std::thread> threads;
  for (int writer = 0; writer < kWriters; ++writer) {
    threads.emplace_back([&, writer] {
      RunWriter(store, runtime, writer, 500'000);  // Enough beside slow readers, too.
      writing.fetch_sub(1);
    });
  }
  for (int reader = 0; reader < kReaders; ++reader) {
    threads.emplace_back([&, reader] {
      std::mt19937_64 random(100 + reader);
      while (writing.load() > 0 && !HasFailure()) ReadPage(store, runtime, random);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(leapt_.load(), kLeapsWanted) << pages_.load();
}

}  // namespace
}  // namespace partita
