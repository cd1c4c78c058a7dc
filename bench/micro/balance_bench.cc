// How soon a fresh table with one range, written to by Zipf's law, is as fast as one that was split and
// spread by who knew the load.
//
//   bench_balance --directory=DIR [--shards=2] [--threads=4] [--seconds=15] [--memory=MIB]
//
// Prints writes a second, second by second: of the table split in advance, of the fresh one with
// Options::balance_ranges and of the fresh one without. The store is DIR/bench_balance, and is removed at the
// end.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "api/partita.h"
#include "bench/micro/numbers.h"
#include "bench/micro/or_die.h"
#include "bench/micro/own_store.h"
#include "bench/micro/wide_entity.h"

namespace partita::bench {
namespace {

constexpr size_t kPartitions = 1000;
constexpr double kSkew = 0.99;

struct Settings {
  std::string directory;
  uint64_t shards = 2;
  uint64_t threads = 4;
  uint64_t seconds = 15;
  uint64_t memory_mib = 512;
};

std::string PartitionOf(size_t index) {
  const std::string number = std::to_string(index);
  return "p" + std::string(4 - number.size(), '0') + number;
}

// The share of each partition; which are popular is drawn.
std::vector<double> DrawShares() {
  std::vector<size_t> ranks(kPartitions);
  std::iota(ranks.begin(), ranks.end(), size_t{1});
  std::shuffle(ranks.begin(), ranks.end(), std::mt19937_64(1));
  std::vector<double> shares;
  for (const size_t rank : ranks) shares.push_back(std::pow(static_cast<double>(rank), -kSkew));
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= sum;
  return shares;
}

// One range a shard, with equal shares of the load.
void SplitAndSpread(Database& database, const std::vector<double>& shares, uint64_t shards) {
  double before = 0;
  uint64_t next = 1;
  for (size_t i = 0; i < shares.size() && next < shards; before += shares[i], ++i) {
    if (before < static_cast<double>(next) / static_cast<double>(shards)) continue;
    Check(database.SplitRange("Balance", PartitionOf(i)));
    Check(database.MoveRange("Balance", PartitionOf(i), static_cast<uint32_t>(next)).status());
    ++next;
  }
}

void Write(Table& table, const std::vector<double>& shares, uint64_t seed, const std::atomic<bool>& stop,
           std::atomic<uint64_t>* written) {
  std::mt19937_64 random(seed);
  std::discrete_distribution<size_t> draw(shares.begin(), shares.end());
  while (!stop.load(std::memory_order_relaxed)) {
    const Entity entity = MakeWideEntity(random, PartitionOf(draw(random)), random() % 100'000);
    Check(table.InsertOrReplace(entity).status);
    written->fetch_add(1, std::memory_order_relaxed);
  }
}

enum class Mode { kSplitBefore, kBalanced, kLeftAlone };

void Run(const Settings& settings, const std::vector<double>& shares, Mode mode, const char* name) {
  const OwnStore store(settings.directory, "bench_balance");
  Options options;
  options.directory = store.path();
  options.create_if_missing = true;
  options.memory_bytes = settings.memory_mib << 20;
  options.shards = static_cast<uint32_t>(settings.shards);
  options.durability = Durability::kProcess;
  options.balance_ranges = mode == Mode::kBalanced;
  std::unique_ptr<Database> database = Take(Database::Open(options));
  Table table = Take(database->CreateTable("Balance"));
  if (mode == Mode::kSplitBefore) SplitAndSpread(*database, shares, settings.shards);
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> written{0};
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < settings.threads; ++i) {
    threads.emplace_back([&, i] { Write(table, shares, i + 1, stop, &written); });
  }
  std::printf("%-13s", name);
  std::vector<uint64_t> each;
  for (uint64_t second = 0; second < settings.seconds; ++second) {
    const uint64_t before = written.load();
    std::this_thread::sleep_for(std::chrono::seconds(1));
    each.push_back(written.load() - before);
    std::printf(" %6llu", static_cast<unsigned long long>(each.back()));
    std::fflush(stdout);
  }
  stop.store(true);
  for (std::thread& thread : threads) thread.join();
  const DatabaseStats stats = database->Stats();
  std::nth_element(each.begin(), each.begin() + static_cast<ptrdiff_t>(each.size() / 2), each.end());
  std::printf("  median %llu; %llu splits, %llu moves, %llu failed\n",
              static_cast<unsigned long long>(each[each.size() / 2]),
              static_cast<unsigned long long>(stats.ranges_split),
              static_cast<unsigned long long>(stats.ranges_moved),
              static_cast<unsigned long long>(stats.ranges_failed));
  Check(database->Close());
}

int Main(const Settings& settings) {
  const std::vector<double> shares = DrawShares();
  Run(settings, shares, Mode::kSplitBefore, "split before");
  Run(settings, shares, Mode::kBalanced, "balanced");
  Run(settings, shares, Mode::kLeftAlone, "left alone");
  return 0;
}

}  // namespace
}  // namespace partita::bench

int main(int count, char** words) {
  partita::bench::Settings settings;
  partita::bench::ReadNumbers(count, words, "bench/micro/balance_bench.cc", &settings.directory,
                              {{"--shards", &settings.shards, 2, 64},
                               {"--threads", &settings.threads},
                               {"--seconds", &settings.seconds},
                               {"--memory", &settings.memory_mib}});
  return partita::bench::Main(settings);
}
