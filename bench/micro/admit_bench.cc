#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "api/partita.h"
#include "bench/micro/numbers.h"
#include "bench/micro/or_die.h"
#include "bench/micro/own_store.h"

// Throughput targets in real time, on a real store: what they let through, and what they cost.
//
//   bench_admit --directory=DIR [--seconds=10] [--windows=2] [--rounds=9]
//
// 1. One partition that is offered 10,000 entities a second, by transactions of ten, under `storage`.
// 2. 100 partitions at 1,000 each. Both print what got through in each window behind the burst.
// 3. Upserts, point reads and pages of 1,000 rows as fast as one thread can, in turns without limits and with
//    such that are never reached: medians, and what the limits cost.

namespace partita::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

double SecondsSince(SteadyClock::time_point begin) {
  return std::chrono::duration<double>(SteadyClock::now() - begin).count();
}

struct Settings {
  std::string directory;
  uint64_t seconds = 10, windows = 2, rounds = 9;
};

std::vector<Write> Transaction(const std::string& partition) {
  std::vector<Write> writes;
  for (int i = 0; i < 10; ++i) {
    writes.push_back({WriteAction::kInsertOrReplace, Entity(partition, std::to_string(i)).Set("n", i), ""});
  }
  return writes;
}

// Offers `rate` entities a second over `partitions` for `seconds`; how many got through.
uint64_t Offer(const Table& table, const std::vector<std::vector<Write>>& partitions, uint64_t rate,
               double seconds, uint64_t* offered) {
  uint64_t admitted = 0;
  const auto begin = SteadyClock::now();
  for (double passed = 0; passed < seconds; passed = SecondsSince(begin)) {
    // What is due by now; after a pause of the machine, at most that of a tenth of a second.
    const uint64_t due = static_cast<uint64_t>(passed * static_cast<double>(rate));
    *offered = std::max(*offered, due - std::min(due, rate / 10));
    for (; *offered < due; *offered += 10) {
      const WriteResult result = table.Transact(partitions[*offered / 10 % partitions.size()]);
      if (!result.ok() && result.status.code() != Code::kThrottled) Check(result.status);
      if (result.ok()) admitted += 10;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(500));
  }
  return admitted;
}

void ShowTarget(Database& database, const Table& table, const Settings& settings, int count, uint64_t rate,
                uint64_t target) {
  std::vector<std::vector<Write>> partitions;
  for (int i = 0; i < count; ++i) partitions.push_back(Transaction("hot-" + std::to_string(i)));
  Check(database.SetThroughputTargets(ThroughputTargets::Storage()));
  uint64_t offered = 0;
  Offer(table, partitions, rate, 3, &offered);  // The burst.
  for (uint64_t window = 0; window < settings.windows; ++window) {
    offered = 0;
    const auto begin = SteadyClock::now();
    const uint64_t admitted = Offer(table, partitions, rate, static_cast<double>(settings.seconds), &offered);
    const double seconds = SecondsSince(begin);
    const double per_second = static_cast<double>(admitted) / seconds;
    std::printf("%3d partitions  offered %8.0f/s  admitted %8.1f/s  %+.2f %% of %llu\n", count,
                static_cast<double>(offered) / seconds, per_second,
                (per_second / static_cast<double>(target) - 1) * 100,
                static_cast<unsigned long long>(target));
    std::fflush(stdout);
  }
}

double RateOf(const auto& once) {
  constexpr int kCalls = 100'000;
  const auto begin = SteadyClock::now();
  for (int i = 0; i < kCalls; ++i) once(i);
  return kCalls / SecondsSince(begin);
}

void ShowCost(Database& database, const Settings& settings, const char* what, const auto& once) {
  const ThroughputTargets never{.partition_rate = kThroughputTargetMax, .account_rate = kThroughputTargetMax};
  std::vector<double> off, on, ratios;
  for (uint64_t round = 0; round < settings.rounds; ++round) {
    for (const bool limited : {round % 2 == 0, round % 2 != 0}) {
      Check(database.SetThroughputTargets(limited ? never : ThroughputTargets::Off()));
      (limited ? on : off).push_back(RateOf(once));
    }
    ratios.push_back(on.back() / off.back());
  }
  const auto median = [](std::vector<double>& of) {
    std::sort(of.begin(), of.end());
    return of[of.size() / 2];
  };
  const double without = median(off), with = median(on);
  std::printf("%-8s off %10.0f/s  limited %10.0f/s  %+.2f %% (pairs %+.2f %%)  %.1f ns a call\n", what,
              without, with, (with / without - 1) * 100, (median(ratios) - 1) * 100,
              1e9 / with - 1e9 / without);
  std::fflush(stdout);
}

int Main(const Settings& settings) {
  const OwnStore store(settings.directory, "bench_admit");
  Options options;
  options.directory = store.path();
  options.create_if_missing = true;
  options.durability = Durability::kMemory;
  options.allow_volatile_storage = true;
  const std::unique_ptr<Database> database = Take(Database::Open(options));
  const Table table = Take(database->CreateTable("Admit"));
  if (settings.windows > 0) {
    ShowTarget(*database, table, settings, 1, 10'000, 2'000);
    ShowTarget(*database, table, settings, 100, 100'000, 20'000);
  }
  std::vector<Entity> entities;
  for (int i = 0; i < 1'000; ++i) {
    entities.push_back(Entity("customer-" + std::to_string(i % 100), "row-" + std::to_string(i)).Set("n", i));
  }
  ShowCost(*database, settings, "upsert",
           [&](int i) { Check(table.InsertOrReplace(entities[static_cast<size_t>(i) % 1'000]).status); });
  ShowCost(*database, settings, "get", [&](int i) {
    const Entity& entity = entities[static_cast<size_t>(i) % 1'000];
    Check(table.Get(entity.partition_key(), entity.row_key()).status());
  });
  const ScanOptions whole{.limit = 1'000};  // All rows, of 100 partitions.
  ShowCost(*database, settings, "page/1000", [&](int i) {
    if (i % 1'000 == 0) Check(table.Scan(whole).status());
  });
  Check(database->Close());
  return 0;
}

}  // namespace
}  // namespace partita::bench

int main(int count, char** words) {
  partita::bench::Settings settings;
  partita::bench::ReadNumbers(count, words, "bench/micro/admit_bench.cc", &settings.directory,
                              {{"--seconds", &settings.seconds},
                               {"--windows", &settings.windows, 0},
                               {"--rounds", &settings.rounds}});
  return partita::bench::Main(settings);
}
