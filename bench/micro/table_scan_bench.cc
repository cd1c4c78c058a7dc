// Scans of a whole table through the public API: cold ones beside the device's rate, and what one does to
// point reads that run at the same time. 1 KiB entities with 12 properties, a thousand to a partition, one
// range a core.
//
//   bench_table_scan --directory=DIR [--rows=2000000] [--memory=MIB] [--io=uring|threads] [--seconds=5]
//                    [--rounds=3] [--beside=3] [--readers=1] [--device=MIB_A_SECOND]
//
// --directory lies on the device and keeps the store: a later run with as many rows finds it filled. --memory
// is small against the rows, so table files are read past the page cache in each scan (O_DIRECT). --device:
// what fio read from the same device (bench/cold_scan measures and gives it); the ratio to it is printed.
//
// Cold scans: a count of all entities, and of those with `Level eq 7`, which looks at each one. Printed are
// compressed bytes read a second, and CPU time of the process over wall time: near the number of cores the
// scan is bound by CPU. Point reads: entities of a set that fits the cache, first alone, then beside a scan
// of all that is begun again when it ends; the latencies of both and their ratio, in turns.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "api/partita.h"
#include "bench/load/histogram.h"
#include "bench/micro/or_die.h"
#include "bench/micro/wide_entity.h"

namespace partita::bench {
namespace {

constexpr uint64_t kPartitionRows = 1000;
constexpr uint64_t kHotPartitions = 16;  // 16 MiB of entities.

struct Settings {
  std::string directory;
  uint64_t rows = 2'000'000;
  uint64_t memory_mib = 128;
  IoBackend backend = IoBackend::kUring;
  int seconds = 5;
  int rounds = 3;
  int beside = 3;
  int readers = 1;
  double device = 0;
};

uint64_t NowNanos() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}
std::string PartitionOf(uint64_t index) {
  std::string number = std::to_string(index / kPartitionRows);
  return "customer-" + number.insert(0, 8 - number.size(), '0');
}

void Fill(Table& table, uint64_t rows) {
  std::mt19937_64 random(1);
  std::vector<Write> writes;
  for (uint64_t i = 0; i < rows; ++i) {
    writes.push_back(
        {.action = WriteAction::kInsertOrReplace, .entity = MakeWideEntity(random, PartitionOf(i), i)});
    if (writes.size() < 100) continue;
    Check(table.Transact(writes).status);
    writes.clear();
    if (i % 100'000 == 99'999) std::fprintf(stderr, "\rfilled %llu", static_cast<unsigned long long>(i + 1));
  }
  for (const Write& write : writes) Check(table.InsertOrReplace(write.entity).status);
  std::fprintf(stderr, "\n");
}

Table OpenTable(Database& database, const Settings& settings) {
  const std::string name = "Rows" + std::to_string(settings.rows);
  Result<Table> found = database.OpenTable(name);
  if (found.ok()) return *found;
  TableOptions options;
  options.durability = Durability::kProcess;
  const uint64_t shards = database.open_report().shards;
  for (uint64_t cut = 1; cut < shards; ++cut) {
    options.split_partition_keys.push_back(PartitionOf(settings.rows * cut / shards));
  }
  Table table = Take(database.CreateTable(name, options));
  Fill(table, settings.rows);
  Check(database.Flush());
  Check(database.CompactAll());
  return table;
}

void ColdScan(Table& table, const Settings& settings, const std::string& filter) {
  const uint64_t started = NowNanos();
  const double cpu_before = CpuSeconds();
  const AggregateAnswer answer = Take(table.Aggregate({{AggregateKind::kCount}}, {.filter = filter}));
  const double seconds = static_cast<double>(NowNanos() - started) * 1e-9;
  const double cpu = CpuSeconds() - cpu_before;
  if (filter.empty() && answer.count != settings.rows) Die("the scan missed entities");
  const double rate = static_cast<double>(answer.cost.blocks.bytes_read) / seconds / (1 << 20);
  std::printf("cold scan, %-12s %5.0f MiB/s read, %.2f M entities/s, %.2f s, CPU %.2f s = %.2f cores",
              filter.empty() ? "all:" : (filter + ":").c_str(), rate,
              static_cast<double>(settings.rows) / seconds / 1e6, seconds, cpu, cpu / seconds);
  if (settings.device > 0) std::printf(", %.2f of the device", rate / settings.device);
  std::printf("\n");
}

// Point reads by `readers` threads for so long; what each took.
Histogram ReadPoints(const Table& table, const Settings& settings) {
  std::vector<Histogram> latencies(static_cast<size_t>(settings.readers));
  std::vector<std::thread> threads;
  const uint64_t until = NowNanos() + static_cast<uint64_t>(settings.seconds) * 1'000'000'000;
  const uint64_t hot = std::min(settings.rows, kHotPartitions * kPartitionRows);
  for (int i = 0; i < settings.readers; ++i) {
    threads.emplace_back([&, i] {
      std::mt19937_64 random(static_cast<uint64_t>(i) + 7);
      for (uint64_t started = NowNanos(), ended; started < until; started = ended) {
        // Spread over all ranges, so that every shard is read from.
        const uint64_t nth = random() % hot, stride = settings.rows / hot;
        const uint64_t index = nth / kPartitionRows * kPartitionRows * stride + nth % kPartitionRows;
        std::string row = std::to_string(index);
        Check(table.Get(PartitionOf(index), row.insert(0, 12 - row.size(), '0')).status());
        ended = NowNanos();
        latencies[static_cast<size_t>(i)].Record(ended - started);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 1; i < latencies.size(); ++i) latencies[0].Merge(latencies[i]);
  return latencies[0];
}

void ReadBesideScans(Table& table, const Settings& settings) {
  Histogram alone, beside;
  uint64_t scans = 0;
  for (int round = 0; round < settings.beside; ++round) {
    alone.Merge(ReadPoints(table, settings));
    std::atomic<bool> stop = false;
    std::thread scanner([&] {
      while (!stop) {
        Result<AggregateAnswer> answer =
            table.Aggregate({{AggregateKind::kCount}}, {.filter = "Level eq 7", .cancelled = &stop});
        if (answer.ok()) {
          ++scans;
        } else if (answer.code() != Code::kCancelled) {
          Check(answer.status());
        }
      }
    });
    beside.Merge(ReadPoints(table, settings));
    stop = true;
    scanner.join();
  }
  const auto print = [](const char* title, const Histogram& latency) {
    std::printf(
        "point reads %-20s %8llu, p50 %6.1f us, p99 %7.1f us, p99.9 %8.1f us, longest %8.1f us\n", title,
        static_cast<unsigned long long>(latency.count()), static_cast<double>(latency.Percentile(0.5)) * 1e-3,
        static_cast<double>(latency.Percentile(0.99)) * 1e-3,
        static_cast<double>(latency.Percentile(0.999)) * 1e-3, static_cast<double>(latency.max()) * 1e-3);
  };
  print("alone", alone);
  print("beside a table scan", beside);
  std::printf("p99 ratio %.2f; %llu scans ended\n",
              static_cast<double>(beside.Percentile(0.99)) / static_cast<double>(alone.Percentile(0.99)),
              static_cast<unsigned long long>(scans));
}

Settings Parse(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    if (equals == std::string::npos) Die("usage: see the top of bench/micro/table_scan_bench.cc");
    const std::string value = argument.substr(equals + 1);
    if (name == "--directory") {
      settings.directory = value;
    } else if (name == "--rows") {
      settings.rows = std::stoull(value);
    } else if (name == "--memory") {
      settings.memory_mib = std::stoull(value);
    } else if (name == "--io" && (value == "uring" || value == "threads")) {
      settings.backend = value == "uring" ? IoBackend::kUring : IoBackend::kThreads;
    } else if (name == "--seconds") {
      settings.seconds = std::stoi(value);
    } else if (name == "--rounds") {
      settings.rounds = std::stoi(value);
    } else if (name == "--beside") {
      settings.beside = std::stoi(value);
    } else if (name == "--readers") {
      settings.readers = std::stoi(value);
    } else if (name == "--device") {
      settings.device = std::stod(value);
    } else {
      Die("unknown option " + argument);
    }
  }
  if (settings.directory.empty()) Die("--directory is missing");
  return settings;
}

int Main(int argc, char** argv) {
  const Settings settings = Parse(argc, argv);
  Options options;
  options.directory = settings.directory;
  options.create_if_missing = true;
  options.memory_bytes = settings.memory_mib << 20;
  options.io_backend = settings.backend;
  std::unique_ptr<Database> database = Take(Database::Open(options));
  {
    Table table = OpenTable(*database, settings);
    for (int round = 0; round < settings.rounds; ++round) {
      ColdScan(table, settings, "");
      ColdScan(table, settings, "Level eq 7");
    }
    if (settings.beside > 0) {
      (void)ReadPoints(table, settings);  // Fills the cache.
      ReadBesideScans(table, settings);
    }
  }
  Check(database->Close());
  return 0;
}

}  // namespace
}  // namespace partita::bench

int main(int argc, char** argv) { return partita::bench::Main(argc, argv); }
