// A filter on a date that grows with the key, with zone maps and without: 1 KiB entities with 12 properties.
//
//   bench_zone [--rows=200000] [--percent=1] [--updates=0] [--memory=MIB] [--rounds=5] [--directory=DIR]
//
// --percent: how much of the table matches. --updates: percent of the rows that are written again, in random
// order, after the table was compacted; they are flushed and compacted as far as that is due, so that several
// levels overlap. --memory: of the store, in MiB; left out, everything fits the cache.
//
// A round runs the query without zone maps and then with them (A B A B); printed are the medians of the
// rounds, CPU time of the whole process and wall time, and the blocks. The blocks that match are counted from
// below: as many as the matching rows fill.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "api/partita.h"
#include "api/query.h"
#include "bench/micro/or_die.h"
#include "bench/micro/wide_entity.h"

namespace partita {
namespace {

using bench::Check;
using bench::Die;

constexpr uint64_t kTicksFirst = 636'000'000'000'000'000;
constexpr uint64_t kTicksPerRow = 10'000'000;  // A second.

struct Settings {
  uint64_t rows = 200'000;
  double percent = 1;
  double updates = 0;
  uint64_t memory_mib = 0;
  int rounds = 5;
  std::string directory = std::filesystem::temp_directory_path();
};

double WallSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class CountingSink : public QueryRowSink {
 public:
  bool Add(const QueryRow& row) override {
    bytes += row.content.size();
    return true;
  }
  uint64_t bytes = 0;
};

struct Run {
  double cpu = 0, wall = 0;
  uint64_t rows = 0;
  BlockCounts blocks;
};

class Bench {
 public:
  explicit Bench(const Settings& settings)
      : settings_(settings), directory_(settings.directory + "/bench_zone") {
    std::filesystem::remove_all(directory_);
    Options options;
    options.directory = directory_;
    options.create_if_missing = true;
    const uint64_t all_mib = 256 + settings.rows * 3 / 1024;
    options.memory_bytes = (settings.memory_mib != 0 ? settings.memory_mib : all_mib) << 20;
    options.shards = 1;
    options.durability = Durability::kMemory;
    options.io_backend = IoBackend::kThreads;
    Result<std::unique_ptr<Database>> opened = Database::Open(options);
    Check(opened.status());
    database_ = std::move(opened).value();
    Result<Table> table = database_->CreateTable("Zones");
    Check(table.status());
    table_ = *table;
    async_table_ = *AsyncDatabase(*database_).FindTable(options.account, "Zones");
  }
  ~Bench() {
    table_.reset();
    async_table_.reset();
    Check(database_->Close());
    database_.reset();
    std::filesystem::remove_all(directory_);
  }

  void Load() {
    std::mt19937_64 random(42);
    for (uint64_t i = 0; i < settings_.rows; ++i)
      Check(table_->Insert(bench::MakeWideEntity(random, "customer-00001", i)).status);
    Check(database_->CompactAll());
    const auto updates = static_cast<uint64_t>(static_cast<double>(settings_.rows) * settings_.updates / 100);
    for (uint64_t i = 0; i < updates; ++i) {
      Check(
          table_->InsertOrReplace(bench::MakeWideEntity(random, "customer-00001", random() % settings_.rows))
              .status);
    }
    if (updates > 0) Check(database_->CompactAll());
  }

  Run Measure(bool use_zone_maps) {
    const auto span = static_cast<uint64_t>(static_cast<double>(settings_.rows) * settings_.percent / 100);
    const uint64_t first = kTicksFirst + settings_.rows / 3 * kTicksPerRow;
    Query query;
    query.filter = Filter::And(
        Filter::Comparison("Created", ComparisonOp::kGreaterOrEqual, DateTime{first}),
        Filter::Comparison("Created", ComparisonOp::kLess, DateTime{first + span * kTicksPerRow}));
    query.use_zone_maps = use_zone_maps;
    CountingSink sink;
    Run run;
    run.cpu = -bench::CpuSeconds();
    run.wall = -WallSeconds();
    while (true) {
      Result<QueryPage> page =
          AsyncDatabase(*database_).runtime().RunToEnd(RunQuery(*async_table_, query, &sink));
      Check(page.status());
      run.rows += page->rows;
      run.blocks += page->blocks;
      if (!page->next) break;
      query.from = page->next;
    }
    run.cpu += bench::CpuSeconds();
    run.wall += WallSeconds();
    return run;
  }

 private:
  const Settings settings_;
  const std::string directory_;
  std::unique_ptr<Database> database_;
  std::optional<Table> table_;
  std::optional<AsyncTable> async_table_;
};

Run Median(std::vector<Run> runs) {
  const auto middle = [&](double Run::*field) {
    std::vector<double> values;
    for (const Run& run : runs) values.push_back(run.*field);
    std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2),
                     values.end());
    return values[values.size() / 2];
  };
  Run median = runs.back();
  median.cpu = middle(&Run::cpu);
  median.wall = middle(&Run::wall);
  return median;
}

void Print(const char* title, const Run& run) {
  std::printf(
      "%-18s %8llu rows  %9llu blocks read  %9llu passed over  %6llu files  %8.1f MiB  %10.3f ms CPU  %10.3f "
      "ms\n",
      title, static_cast<unsigned long long>(run.rows),
      static_cast<unsigned long long>(run.blocks.blocks_read),
      static_cast<unsigned long long>(run.blocks.blocks_skipped),
      static_cast<unsigned long long>(run.blocks.files_skipped),
      static_cast<double>(run.blocks.bytes_read) / (1 << 20), 1e3 * run.cpu, 1e3 * run.wall);
}

void RunAll(const Settings& settings) {
  Bench bench(settings);
  bench.Load();
  bench.Measure(false);  // Brings into the cache what fits.
  std::vector<Run> without, with;
  for (int round = 0; round < settings.rounds; ++round) {
    without.push_back(bench.Measure(false));
    with.push_back(bench.Measure(true));
  }
  const Run all = Median(without);
  const Run few = Median(with);
  if (all.rows != few.rows) Die("zone maps changed the answer");
  Print("without zone maps", all);
  Print("with zone maps", few);
  const double rows_per_block =
      static_cast<double>(settings.rows) / static_cast<double>(all.blocks.blocks_read);
  std::printf("blocks read are %.2f times those that match; %.1f times faster by CPU, %.1f by wall time\n",
              static_cast<double>(few.blocks.blocks_read) * rows_per_block / static_cast<double>(few.rows),
              all.cpu / few.cpu, all.wall / few.wall);
}

bool TakeValue(const std::string& argument, const std::string& name, std::string* value) {
  const std::string start = "--" + name + "=";
  if (!argument.starts_with(start)) return false;
  *value = argument.substr(start.size());
  return true;
}

}  // namespace
}  // namespace partita

int main(int argc, char** argv) {
  partita::Settings settings;
  for (int i = 1; i < argc; ++i) {
    std::string value;
    if (partita::TakeValue(argv[i], "rows", &value)) {
      settings.rows = std::stoull(value);
    } else if (partita::TakeValue(argv[i], "percent", &value)) {
      settings.percent = std::stod(value);
    } else if (partita::TakeValue(argv[i], "updates", &value)) {
      settings.updates = std::stod(value);
    } else if (partita::TakeValue(argv[i], "memory", &value)) {
      settings.memory_mib = std::stoull(value);
    } else if (partita::TakeValue(argv[i], "rounds", &value)) {
      settings.rounds = std::stoi(value);
    } else if (partita::TakeValue(argv[i], "directory", &value)) {
      settings.directory = value;
    } else {
      partita::bench::Die(std::string("what is ") + argv[i] + "?");
    }
  }
  partita::RunAll(settings);
}
