// What a move of a range costs who writes to it: writers at level power on one table, whose ranges go to the
// other shard and back all the while.
//
//   bench_move --directory=DIR [--rows=200000] [--threads=4] [--moves=200] [--memory=MIB] [--seconds=5]
//
// Printed are the pauses of the moves (from the fence until writes are routed anew), what was written
// meanwhile, and the latencies of writes without moves and with them, in the same run. --directory lies on
// the device; the store is DIR/bench_move, and is removed at the end.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "api/partita.h"
#include "bench/load/histogram.h"
#include "bench/micro/numbers.h"
#include "bench/micro/or_die.h"
#include "bench/micro/own_store.h"
#include "bench/micro/wide_entity.h"

namespace partita::bench {
namespace {

constexpr uint64_t kPartitions = 64;
constexpr uint64_t kRanges = 8;

struct Settings {
  std::string directory;
  uint64_t rows = 200'000;
  uint64_t threads = 4;
  uint64_t moves = 200;
  uint64_t memory_mib = 256;
  uint64_t seconds = 5;
};

uint64_t NowNanos() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}
std::string PartitionOf(uint64_t index) {
  const std::string number = std::to_string(index);
  return "p" + std::string(3 - number.size(), '0') + number;
}

class Writers {
 public:
  Writers(Table& table, const Settings& settings) {
    for (uint64_t i = 0; i < settings.threads; ++i) {
      threads_.emplace_back([this, &table, &settings, i] { Run(table, settings, i); });
    }
  }
  // Stops them, and gives their latencies.
  Histogram End() {
    stop_.store(true);
    Histogram all;
    for (std::thread& thread : threads_) thread.join();
    for (const Histogram& one : latencies_) all.Merge(one);
    return all;
  }

 private:
  void Run(Table& table, const Settings& settings, uint64_t seed) {
    Histogram& latencies = latencies_[seed];
    std::mt19937_64 random(seed + 1);
    while (!stop_.load(std::memory_order_relaxed)) {
      const uint64_t row = random() % settings.rows;
      const Entity entity = MakeWideEntity(random, PartitionOf(row % kPartitions), row);
      const uint64_t begun = NowNanos();
      Check(table.InsertOrReplace(entity).status);
      latencies.Record(NowNanos() - begun);
    }
  }

  std::atomic<bool> stop_{false};
  std::array<Histogram, 64> latencies_;
  std::vector<std::thread> threads_;
};

double Micros(uint64_t nanos) { return static_cast<double>(nanos) / 1e3; }

void PrintLatencies(const char* what, const Histogram& latencies, double seconds) {
  std::printf("%-16s %9.0f writes/s  p50 %7.0f us  p99 %7.0f us  p99.9 %7.0f us  max %7.0f us\n", what,
              static_cast<double>(latencies.count()) / seconds, Micros(latencies.Percentile(0.5)),
              Micros(latencies.Percentile(0.99)), Micros(latencies.Percentile(0.999)),
              Micros(latencies.max()));
}

void Fill(Table& table, uint64_t rows) {
  std::mt19937_64 random(1);
  std::vector<Write> writes;
  for (uint64_t partition = 0; partition < kPartitions; ++partition) {
    for (uint64_t row = partition; row < rows; row += kPartitions) {
      writes.push_back({.action = WriteAction::kInsertOrReplace,
                        .entity = MakeWideEntity(random, PartitionOf(partition), row)});
      if (writes.size() == 100 || row + kPartitions >= rows) {
        Check(table.Transact(writes).status);
        writes.clear();
      }
    }
  }
}

void MoveAll(Database& database, const Settings& settings) {
  std::vector<double> pauses;
  uint64_t rest = 0, busy = 0;
  const uint64_t begun = NowNanos();
  std::mt19937_64 random(99);
  while (pauses.size() < settings.moves) {
    const std::string partition = PartitionOf(random() % kRanges * (kPartitions / kRanges));
    const auto moved = database.MoveRange("Moves", partition, static_cast<uint32_t>(random() % 2));
    if (moved.code() == Code::kBusy) {
      ++busy;
      continue;
    }
    Check(moved.status());
    if (moved->from == moved->to) continue;
    pauses.push_back(moved->pause_ms);
    rest += moved->bytes_written;
  }
  const double seconds = static_cast<double>(NowNanos() - begun) / 1e9;
  std::sort(pauses.begin(), pauses.end());
  const auto at = [&](double share) {
    return pauses[std::min(pauses.size() - 1,
                           static_cast<size_t>(share * static_cast<double>(pauses.size())))];
  };
  std::printf(
      "%zu moves in %.1f s (%llu busy): pause p50 %.2f ms  p99 %.2f ms  p99.9 %.2f ms  max %.2f ms; %.0f KiB "
      "written in one\n",
      pauses.size(), seconds, static_cast<unsigned long long>(busy), at(0.5), at(0.99), at(0.999),
      pauses.back(), static_cast<double>(rest) / static_cast<double>(pauses.size()) / 1024);
}

int Main(const Settings& settings) {
  const OwnStore store(settings.directory, "bench_move");
  Options options;
  options.directory = store.path();
  options.create_if_missing = true;
  options.memory_bytes = settings.memory_mib << 20;
  options.shards = 2;
  options.balance_ranges = false;
  options.durability = Durability::kPower;
  std::unique_ptr<Database> database = Take(Database::Open(options));
  TableOptions in_ranges;
  for (uint64_t i = 1; i < kRanges; ++i) {
    in_ranges.split_partition_keys.push_back(PartitionOf(i * (kPartitions / kRanges)));
  }
  Table table = Take(database->CreateTable("Moves", in_ranges));
  Fill(table, settings.rows);
  Check(database->Flush());
  {
    Writers writers(table, settings);
    const uint64_t begun = NowNanos();
    std::this_thread::sleep_for(std::chrono::seconds(settings.seconds));
    PrintLatencies("without moves", writers.End(), static_cast<double>(NowNanos() - begun) / 1e9);
  }
  {
    Writers writers(table, settings);
    const uint64_t begun = NowNanos();
    MoveAll(*database, settings);
    PrintLatencies("beside moves", writers.End(), static_cast<double>(NowNanos() - begun) / 1e9);
  }
  const uint64_t begun = NowNanos();
  for (uint64_t i = 0; i < kPartitions; ++i) {
    if (i % (kPartitions / kRanges) != 0) Check(database->SplitRange("Moves", PartitionOf(i)));
  }
  std::printf("a split takes %.2f ms\n",
              static_cast<double>(NowNanos() - begun) / 1e6 / static_cast<double>(kPartitions - kRanges));
  Check(database->Close());
  return 0;
}

}  // namespace
}  // namespace partita::bench

int main(int count, char** words) {
  partita::bench::Settings settings;
  partita::bench::ReadNumbers(count, words, "bench/micro/move_bench.cc", &settings.directory,
                              {{"--rows", &settings.rows},
                               {"--threads", &settings.threads, 1, 64},
                               {"--moves", &settings.moves},
                               {"--memory", &settings.memory_mib},
                               {"--seconds", &settings.seconds}});
  return partita::bench::Main(settings);
}
