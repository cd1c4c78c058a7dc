#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "test/engine/rowless_rows.h"

namespace partita {
namespace {

// Popular rows of a store that is larger than its cache, read while they and all others are written, flushed
// and merged: what the cache keeps of rows is never an older one. covers: F13 F14
class CachedRowsThreadsTest : public testing::Test, protected Rows {
 protected:
  static constexpr int kRows = 45'000, kReaders = 2, kPopularStep = 30;
  static constexpr uint64_t kReads = 20'000;

  // What is written of a row: its number and how often it was written, the rest is noise.
  static std::string ContentOf(int row, uint64_t times) {
    std::string content(1000, '\0');
    std::mt19937_64 random(row * 1'000'003ULL + times);
    for (size_t at = 16; at + 8 <= content.size(); at += 8) {
      const uint64_t noise = random();
      std::memcpy(content.data() + at, &noise, sizeof(noise));
    }
    const auto number = static_cast<uint64_t>(row);
    std::memcpy(content.data(), &number, sizeof(number));
    std::memcpy(content.data() + 8, &times, sizeof(times));
    return content;
  }

  void WriteRow(Store& store, Runtime& runtime, int row) {
    const uint64_t times = begun_[row].fetch_add(1) + 1;
    const std::string key = Key("p", row), content = ContentOf(row, times);
    WriteOp op;
    op.kind = WriteKind::kPut;
    op.user_key = key;
    op.content = content;
    WriteRequest request;
    request.table = table;
    request.ops = {&op, 1};
    request.durability = DurabilityLevel::kProcess;
    const WriteOutcome outcome = runtime.RunToEnd(store.Write(request));
    ASSERT_TRUE(outcome.status.ok()) << outcome.status.ToString();
    ended_[row].store(times);
  }

  void ReadRow(Store& store, Runtime& runtime, int row) {
    const uint64_t at_least = ended_[row].load();
    const std::string key = Key("p", row);
    std::string content;
    Shard::ReadAnswer answer = store.TryGet(key, &content);
    if (answer.state == Shard::ReadState::kNeedsIo || answer.state == Shard::ReadState::kMoved) {
      Result<Shard::ReadAnswer> read = runtime.RunToEnd(store.Get(key, &content));
      ASSERT_TRUE(read.ok()) << read.status().ToString();
      answer = *read;
    }
    ASSERT_EQ(answer.state, Shard::ReadState::kFound) << row;
    uint64_t times = 0;
    ASSERT_GE(content.size(), 16u);
    std::memcpy(&times, content.data() + 8, sizeof(times));
    ASSERT_GE(times, at_least) << row;
    ASSERT_LE(times, begun_[row].load()) << row;
    ASSERT_EQ(content, ContentOf(row, times)) << row;
  }

  static int Draw(std::mt19937_64& random) {
    const int row = static_cast<int>(random() % kRows);
    return random() % 4 == 0 ? row : row / kPopularStep * kPopularStep % (kRows / 4);
  }

  std::vector<std::atomic<uint64_t>> begun_ = std::vector<std::atomic<uint64_t>>(kRows);
  std::vector<std::atomic<uint64_t>> ended_ = std::vector<std::atomic<uint64_t>>(kRows);
};

TEST_F(CachedRowsThreadsTest, NoReadIsOlderThanWhatWasWrittenBefore) {
  RealRowsStore rows(this);
  Store& store = rows.store();
  Runtime& runtime = rows.runtime();
  for (int row = 0; row < kRows; ++row) WriteRow(store, runtime, row);
  std::atomic<int> reading{kReaders};
  std::vector<std::thread> threads;
  for (int reader = 0; reader < kReaders; ++reader) {
    threads.emplace_back([&, reader] {
      std::mt19937_64 random(100 + reader);
      for (uint64_t i = 0; i < kReads && !HasFailure(); ++i) ReadRow(store, runtime, Draw(random));
      reading.fetch_sub(1);
    });
  }
  std::mt19937_64 random(1);
  uint64_t rows_most = 0;
  for (uint64_t i = 0; reading.load() > 0 && !HasFailure(); ++i) {
    WriteRow(store, runtime, Draw(random));
    if (i % 64 == 0) rows_most = std::max(rows_most, store.CacheStats().rows);
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(rows_most, 100u);  // Else nothing was shown.
}

}  // namespace
}  // namespace partita
