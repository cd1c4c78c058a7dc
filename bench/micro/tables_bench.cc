// What many small tables cost the background: every flush has something of each, so each is due to be merged
// at the same time.
//
//   bench_tables --directory=DIR [--tables=1000] [--rounds=6] [--mib=64] [--shards=2] [--memory=MIB]
//
// Each round writes about --mib MiB of rows, as many to each table, and flushes them; then everything is
// merged, and the store is opened anew. Printed are, of each, how long it takes, the process's CPU time,
// merges, files, and what memory the process has at its end and had at most so far. The store is
// DIR/bench_tables, and is removed at the end.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "api/partita.h"
#include "bench/micro/numbers.h"
#include "bench/micro/or_die.h"
#include "bench/micro/own_store.h"

namespace partita::bench {
namespace {

struct Settings {
  std::string directory;
  uint64_t tables = 1000;
  uint64_t rounds = 6;
  uint64_t mib = 64;
  uint64_t memory_mib = 1024;
  uint64_t shards = 2;
};

constexpr size_t kValueBytes = 400;
constexpr uint64_t kRowsAtOnce = 16;

double CpuSeconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

struct Mark {
  std::chrono::steady_clock::time_point when = std::chrono::steady_clock::now();
  double cpu = CpuSeconds();
  uint64_t merges = 0;
};

uint64_t MergesOf(const Database& database) {
  uint64_t merges = 0;
  for (const ShardStats& shard : database.Stats().shards) merges += shard.compactions;
  return merges;
}

// In MiB: of the kernel's line of that name.
uint64_t MemoryMib(const std::string& name) {
  std::ifstream lines("/proc/self/status");
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name + ":")) return std::strtoull(line.c_str() + name.size() + 1, nullptr, 10) >> 10;
  }
  return 0;
}

void Print(const char* what, const Database& database, const std::filesystem::path& directory, Mark* since) {
  Mark now;
  now.merges = MergesOf(database);
  uint64_t files = 0, references = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    files += entry.path().parent_path().filename() == "tables" ? 1 : 0;
  }
  for (const ShardStats& shard : database.Stats().shards) {
    for (const ShardStats::Level& level : shard.levels) references += level.files;
  }
  std::printf(
      "%-12s %7.2f s  %7.2f s CPU  %6llu merges  %6llu table files  %7llu references  "
      "%5llu MiB  %5llu at most\n",
      what, std::chrono::duration<double>(now.when - since->when).count(), now.cpu - since->cpu,
      static_cast<unsigned long long>(now.merges - since->merges), static_cast<unsigned long long>(files),
      static_cast<unsigned long long>(references), static_cast<unsigned long long>(MemoryMib("VmRSS")),
      static_cast<unsigned long long>(MemoryMib("VmHWM")));
  std::fflush(stdout);
  *since = now;
}

void WriteRound(const std::vector<RawTable>& tables, const Settings& settings, std::mt19937_64* random) {
  std::string value(kValueBytes, ' ');
  const uint64_t rows = (settings.mib << 20) / kValueBytes / tables.size() + 1;
  for (uint64_t row = 0; row < rows; row += kRowsAtOnce) {
    for (const RawTable& table : tables) {
      std::vector<RawTable::Operation> operations;
      for (uint64_t i = row; i < std::min(row + kRowsAtOnce, rows); ++i) {
        for (char& byte : value) byte = static_cast<char>('a' + (*random)() % 16);
        operations.push_back({.partition_key = "p",
                              .row_key = std::to_string((*random)() % (rows * 4) * 1000 + i),
                              .value = value});
      }
      Check(table.Apply(operations, {.durability = Durability::kProcess}).status);
    }
  }
}

int Main(const Settings& settings) {
  const OwnStore store(settings.directory, "bench_tables");
  Options options;
  options.directory = store.path();
  options.create_if_missing = true;
  options.memory_bytes = settings.memory_mib << 20;
  options.shards = static_cast<uint32_t>(settings.shards);
  options.balance_ranges = false;
  std::unique_ptr<Database> database = Take(Database::Open(options));
  Mark since;
  std::vector<RawTable> tables;
  for (uint64_t i = 0; i < settings.tables; ++i) {
    tables.push_back(Take(database->CreateRawTable("Table" + std::to_string(i))));
  }
  Print("made", *database, store.path(), &since);
  std::mt19937_64 random(1);
  for (uint64_t round = 0; round < settings.rounds; ++round) {
    WriteRound(tables, settings, &random);
    Check(database->Flush());
    Print(("round " + std::to_string(round)).c_str(), *database, store.path(), &since);
  }
  Check(database->CompactAll());
  Print("merged", *database, store.path(), &since);
  tables.clear();
  Check(database->Close());
  database.reset();
  since = Mark();
  database = Take(Database::Open(options));
  Print("opened", *database, store.path(), &since);
  Check(database->Close());
  return 0;
}

}  // namespace
}  // namespace partita::bench

int main(int count, char** words) {
  partita::bench::Settings settings;
  partita::bench::ReadNumbers(count, words, "bench/micro/tables_bench.cc", &settings.directory,
                              {{"--tables", &settings.tables},
                               {"--rounds", &settings.rounds},
                               {"--mib", &settings.mib},
                               {"--shards", &settings.shards, 1, 64},
                               {"--memory", &settings.memory_mib}});
  return partita::bench::Main(settings);
}
