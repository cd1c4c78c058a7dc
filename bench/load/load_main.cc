// partita-bench: measures a whole engine under load; `compare` compares several.
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "bench/compare/compare_command.h"
#include "bench/load/engine.h"
#include "bench/load/measurement.h"
#include "bench/load/workload.h"

namespace partita::bench {
namespace {

struct Arguments {
  LoadConfig load;
  std::vector<std::string> workloads;
  uint64_t memory_mib = 1024;
  std::string durability = "process";
  std::string json_path;
  bool keep = false;
};

DurabilityLevel ToLevel(std::string_view name) {
  if (name == "power") return DurabilityLevel::kPower;
  return name == "process" ? DurabilityLevel::kProcess : DurabilityLevel::kMemory;
}

std::string WorkloadHelp() {
  std::string help = "\nWorkloads (name:N gives N threads, or N outstanding for async-write):\n";
  for (const WorkloadInfo& info : Workloads()) {
    std::array<char, 256> line;
    std::snprintf(line.data(), line.size(), "  %-14s %s (N = %u)\n", std::string(info.name).c_str(),
                  std::string(info.meaning).c_str(), info.parallel_default);
    help += line.data();
  }
  return help + R"(
Each workload that needs rows loads them first, untimed, if the directory does not hold them. YCSB, reads
and scans of all rows are measured after as long of the same, untimed.
Each read is checked against what was written; wrong answers are printed and end in exit code 1.

  partita-bench --workload fill-random,read-hot:2,scan-100
  partita-bench --engine rocksdb --keys 1000000 --seconds 10 --json result.json
  partita-bench compare --help
)";
}

std::string KnownEngines() {
  std::string names;
  for (std::string_view name : EngineNames()) names.append(names.empty() ? "" : ", ").append(name);
  return names;
}

void Declare(CLI::App* app, Arguments* arguments) {
  LoadConfig& load = arguments->load;
  app->add_option("--engine", load.engine, "The engine to measure: " + KnownEngines())->capture_default_str();
  app->add_option("--workload", arguments->workloads, "What to run, in this order; default: all")
      ->delimiter(',');
  app->add_option("--keys", load.keys, "Rows of the data set")
      ->capture_default_str()
      ->check(CLI::Range(1ull, 1ull << 40));
  app->add_option("--value-bytes", load.value_size, "Size of a value")
      ->capture_default_str()
      ->check(CLI::Range(64, 65536));
  app->add_option("--seconds", load.seconds, "Of each workload that is no load and no full scan")
      ->capture_default_str()
      ->check(CLI::Range(0.01, 86400.0));
  app->add_option("--memory", arguments->memory_mib, "Memory budget of the engine, in MiB")
      ->capture_default_str()
      ->check(CLI::Range(64, 1 << 20));
  app->add_option(
         "--durability", arguments->durability,
         "Of writes: power, process or memory; sync-write, async-write and egt-if are always at power")
      ->capture_default_str()
      ->check(CLI::IsMember({"power", "process", "memory"}));
  app->add_option("--directory", load.engine_config.directory, "Where the stores lie")->capture_default_str();
  app->add_option("--seed", load.seed, "Of keys and values")->capture_default_str();
  app->add_option("--json", arguments->json_path,
                  "Also write all measurements to this file; - is standard output");
  app->add_flag("--page-cache", load.engine_config.page_cache,
                "Let the peer read through the page cache, outside its memory budget");
  app->add_flag("--keep", arguments->keep, "Keep the stores, for another run on the same rows");
  app->footer(WorkloadHelp());
}

Result<std::vector<Measurement>> RunOne(const Arguments& arguments) {
  LoadRunner runner(arguments.load);
  std::vector<Measurement> measurements;
  std::printf("%s\n", TableHeader().c_str());
  for (const std::string& workload : arguments.workloads) {
    PARTITA_ASSIGN(Measurement measurement, runner.Run(workload));
    std::printf("%s\n", TableLine(measurement).c_str());
    std::fflush(stdout);
    measurements.push_back(std::move(measurement));
  }
  PARTITA_TRY(runner.Close());
  return measurements;
}

int Report(const Arguments& arguments, const std::vector<Measurement>& measurements) {
  if (arguments.json_path == "-") {
    std::printf("%s", ToJson(measurements).c_str());
  } else if (!arguments.json_path.empty()) {
    std::ofstream file(arguments.json_path);
    file << ToJson(measurements);
    if (!file.flush()) {
      std::fprintf(stderr, "partita-bench: cannot write %s\n", arguments.json_path.c_str());
      return 1;
    }
  }
  for (const Measurement& measurement : measurements) {
    if (!measurement.IsCorrect()) return 1;
  }
  return 0;
}

int Main(int argc, char** argv) {
  Arguments arguments;
  LoadConfig& load = arguments.load;
  load.engine_config.directory = "partita-bench-data";
  CLI::App app("Measures a storage engine under load; compare holds it against others.", "partita-bench");
  Declare(&app, &arguments);
  const CompareCommand compare(&app);
  CLI11_PARSE(app, argc, argv);
  if (compare.is_asked_for()) return compare.Run();
  load.engine_config.memory_bytes = arguments.memory_mib << 20;
  load.engine_config.durability = ToLevel(arguments.durability);
  if (arguments.workloads.empty()) {
    for (const WorkloadInfo& info : Workloads()) arguments.workloads.emplace_back(info.name);
  }
  const std::string directory = load.engine_config.directory;
  const bool existed = std::filesystem::exists(directory);
  load.engine_config.directory += "/" + load.engine;

  const Result<std::vector<Measurement>> measured = RunOne(arguments);
  // Only what this run made is removed.
  if (!arguments.keep && !existed) std::filesystem::remove_all(directory);
  if (!measured.ok()) {
    std::fprintf(stderr, "partita-bench: %s\n", measured.status().ToString().c_str());
    return 1;
  }
  return Report(arguments, *measured);
}

}  // namespace
}  // namespace partita::bench

int main(int argc, char** argv) {
  // Every engine keeps its table files open; the usual limit is 1,024.
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  return partita::bench::Main(argc, argv);
}
