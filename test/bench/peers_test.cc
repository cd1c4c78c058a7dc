#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/load/engine.h"
#include "bench/load/workload.h"
#include "bench/peers/iterator_scan.h"
#include "bench/peers/per_thread.h"
#if __has_include(<rocksdb/options.h>)
#include <rocksdb/cache.h>

#include "bench/peers/rocksdb_options.h"
#endif

namespace partita::bench {
namespace {

// Every engine of this program, a small load on each, checked by the load itself.
class PeersTest : public testing::TestWithParam<std::string_view> {
 protected:
  PeersTest() {
    std::string pattern = testing::TempDir() + "/peers-XXXXXX";
    directory_ = mkdtemp(pattern.data());
    config_.engine = GetParam();
    config_.engine_config.directory = directory_ + "/" + config_.engine;
    config_.engine_config.memory_bytes = uint64_t{64} << 20;
    config_.keys = 1000;
    config_.value_size = 256;
    config_.seconds = 0.02;
  }
  ~PeersTest() override { std::filesystem::remove_all(directory_); }

  std::string directory_;
  LoadConfig config_;
};

TEST_P(PeersTest, AnswersEachWorkloadRight) {
  LoadRunner runner(config_);
  for (const WorkloadInfo& info : Workloads()) {
    if (info.rows == WorkloadInfo::Rows::kOwnsAll) continue;  // Needs a process of its own.
    const Result<Measurement> measured = runner.Run(info.name);
    if (info.name == "drop" && measured.code() == Code::kUnsupported) continue;
    ASSERT_TRUE(measured.ok()) << info.name << ": " << measured.status().ToString();
    EXPECT_TRUE(measured->IsCorrect())
        << info.name << ": " << measured->wrong << " wrong, " << measured->missing << " missing, "
        << measured->failed << " failed " << measured->first_error;
    EXPECT_GT(measured->operations, 0u) << info.name;
  }
  EXPECT_TRUE(runner.Close().ok());
}

TEST_P(PeersTest, HoldsItsRowsWhenItIsOpenedAgain) {
  for (int run = 0; run < 2; ++run) {
    LoadRunner runner(config_);
    const Result<Measurement> measured = runner.Run(run == 0 ? "fill-random" : "full-scan");
    ASSERT_TRUE(measured.ok()) << measured.status().ToString();
    EXPECT_TRUE(measured->IsCorrect());
    EXPECT_EQ(measured->rows, config_.keys);
    EXPECT_TRUE(runner.Close().ok());
  }
}

TEST_P(PeersTest, LoadsAnewWhereTheRowsAreOfAnotherSeed) {
  for (config_.seed = 1; config_.seed <= 2; ++config_.seed) {
    LoadRunner runner(config_);
    const Result<Measurement> measured = runner.Run("full-scan");
    ASSERT_TRUE(measured.ok()) << measured.status().ToString();
    EXPECT_EQ(measured->wrong, 0u);
    EXPECT_TRUE(runner.Close().ok());
  }
}

TEST_P(PeersTest, ReplacesNothingWhereOneOfTheRowsIsNotThere) {
  std::filesystem::create_directory(config_.engine_config.directory);
  Result<std::unique_ptr<Engine>> opened = OpenEngine(config_.engine, config_.engine_config);
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  Engine& engine = **opened;
  std::vector<Row> rows;
  for (uint64_t index = 0; index < 20; ++index) rows.push_back({.keys = KeysOf(index), .value = "old"});
  ASSERT_TRUE(engine.InsertForReplacing(rows).ok());
  for (Row& row : rows) row.value = "new";
  EXPECT_TRUE(engine.ReplaceAtomically(rows, DurabilityLevel::kProcess).ok());

  rows.insert(rows.begin() + 7, {.keys = KeysOf(6, /*missing=*/true), .value = "new"});
  for (Row& row : rows) row.value = "newer";
  EXPECT_EQ(engine.ReplaceAtomically(rows, DurabilityLevel::kProcess).code(), Code::kNotFound);
  std::string value;
  const bool in_table_of_rows = engine.Get(KeysOf(3), &value).ok();  // Partita has them in another.
  if (in_table_of_rows) EXPECT_EQ(value, "new");
  EXPECT_EQ(engine.Get(KeysOf(6, /*missing=*/true), &value).code(), Code::kNotFound);
  EXPECT_TRUE(engine.Close().ok());
}

std::string NameOf(const testing::TestParamInfo<std::string_view>& info) {
  std::string name(info.param);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Each, PeersTest, testing::ValuesIn(EngineNames().begin(), EngineNames().end()),
                         NameOf);

TEST(EngineTest, AnUnknownNameIsRefusedWithTheKnownOnes) {
  const Result<std::unique_ptr<Engine>> opened = OpenEngine("abacus", {});
  ASSERT_EQ(opened.code(), Code::kUnsupported);
  EXPECT_NE(opened.status().message().find("partita"), std::string::npos);
}

#if __has_include(<rocksdb/options.h>)
TEST(RocksDbOptionsTest, TheBlockCacheHasThePageCachesShareWhereThereIsNone) {
  EngineConfig config{.memory_bytes = uint64_t{1} << 30, .page_cache = true};
  const auto cache = [&](RocksDbVariant variant) { return RocksDbCacheBytes(config, variant) >> 20; };
  EXPECT_EQ(cache(RocksDbVariant::kLeveled), 512u);
  EXPECT_EQ(cache(RocksDbVariant::kDirect), 768u);
  config.page_cache = false;
  EXPECT_EQ(cache(RocksDbVariant::kLeveled), 768u);
  EXPECT_TRUE(RocksDbOptions(config, RocksDbVariant::kLeveled).use_direct_reads);
  EXPECT_EQ(RocksDbOptions(config, RocksDbVariant::kLeveled).blob_cache->GetCapacity() >> 20, 768u);
}
#endif

// Rows of a list, counting the steps.
struct CountingIterator {
  std::vector<std::string> keys;
  size_t at = 0;
  int steps = 0;

  void Seek(std::string_view from) { at = std::lower_bound(keys.begin(), keys.end(), from) - keys.begin(); }
  bool Valid() const { return at < keys.size(); }
  void Next() { ++at, ++steps; }
  std::string_view key() const { return keys[at]; }
  std::string_view value() const { return "value"; }
};

TEST(IteratorScanTest, NoStepIsTakenBehindTheLastRowThatIsWanted) {
  CountingIterator iterator;
  for (uint64_t row = 0; row < 9; ++row) {
    const JoinedKey key(KeysOf(row));
    iterator.keys.emplace_back(key.data(), key.size());
  }
  const std::string from = iterator.keys[2];
  std::vector<std::string> seen;
  const auto see = [&](std::string_view row_key, std::string_view) {
    seen.emplace_back(row_key);
    return seen.size() != 4;
  };
  ScanByIterator(&iterator, std::string_view(from), 3, see);
  EXPECT_EQ(iterator.steps, 2);
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen.back(), KeysOf(4).row());
  ScanByIterator(&iterator, std::string_view(from), 100, see);  // Ended by the visitor, at its fourth.
  EXPECT_EQ(iterator.steps, 2);
  ScanByIterator(&iterator, std::string_view(from), 0, see);
  EXPECT_EQ(seen.size(), 4u);
}

TEST(PerThreadTest, KeepsOneForEachThreadUntilCleared) {
  PerThread<int> numbers;
  int made = 0;
  const auto make = [&] { return std::make_unique<int>(++made); };
  EXPECT_EQ(*numbers.Get(make), 1);
  EXPECT_EQ(*numbers.Get(make), 1);
  numbers.Clear();
  EXPECT_EQ(*numbers.Get(make), 2);
}

}  // namespace
}  // namespace partita::bench
