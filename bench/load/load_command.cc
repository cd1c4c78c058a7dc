#include "bench/load/load_command.h"

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "bench/load/child_process.h"
#include "bench/load/engine.h"
#include "bench/load/measurement.h"
#include "bench/load/result_file.h"
#include "bench/load/store_directory.h"
#include "bench/load/workload.h"

namespace partita::bench {
namespace {

DurabilityLevel ToLevel(std::string_view name) {
  if (name == "power") return DurabilityLevel::kPower;
  return name == "process" ? DurabilityLevel::kProcess : DurabilityLevel::kMemory;
}

std::string WorkloadHelp() {
  std::string help =
      "\nWorkloads (name:N gives N threads, or N outstanding for async-read and async-write):\n";
  for (const WorkloadInfo& info : Workloads()) {
    std::array<char, 256> line;
    std::snprintf(line.data(), line.size(), "  %-22s %s (%sN = %u)\n", std::string(info.name).c_str(),
                  std::string(info.meaning).c_str(), info.parallel_max == 1 ? "always " : "",
                  info.parallel_default);
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

}  // namespace

struct LoadCommand::Arguments {
  LoadConfig load;
  std::vector<std::string> workloads;
  uint64_t memory_mib = 1024;
  std::string durability = "process";
  std::string json_path;
  bool keep = false;

  // False, and says so, where it cannot be run; asked before anything runs.
  bool Check() const;
  LoadConfig ToConfig() const;
  // Runs the workloads; the exit code.
  int Measure() const;
  // All of them, to the file; to standard output only once they are complete.
  enum class When : uint8_t { kSoFar, kAtTheEnd };
  bool Write(const std::vector<Measurement>& measurements, When when) const;
};

LoadCommand::LoadCommand(CLI::App* app) : arguments_(std::make_unique<Arguments>()) {
  Arguments* const arguments = arguments_.get();
  LoadConfig& load = arguments->load;
  load.engine_config.directory = "partita-bench-data";
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

LoadCommand::~LoadCommand() = default;

bool LoadCommand::Arguments::Check() const {
  if (!CheckNames({&load.engine, 1}, workloads)) return false;
  return json_path.empty() || json_path == "-" || CanWriteResultFile(json_path);
}

LoadConfig LoadCommand::Arguments::ToConfig() const {
  LoadConfig config = load;
  config.engine_config.memory_bytes = memory_mib << 20;
  config.engine_config.durability = ToLevel(durability);
  config.engine_config.directory += "/" + load.engine;
  return config;
}

bool LoadCommand::Arguments::Write(const std::vector<Measurement>& measurements, When when) const {
  if (json_path.empty()) return true;
  if (json_path != "-") return WriteResultFile(json_path, ToJson(measurements));
  if (when == When::kAtTheEnd) std::printf("%s", ToJson(measurements).c_str());
  return true;
}

int LoadCommand::Arguments::Measure() const {
  LoadRunner runner(ToConfig());
  std::vector<std::string> all = workloads;
  if (all.empty()) {
    for (const WorkloadInfo& info : Workloads()) all.emplace_back(info.name);
  }
  std::FILE* const table = json_path == "-" ? stderr : stdout;
  std::fprintf(table, "%s\n", TableHeader().c_str());
  std::vector<Measurement> measurements;
  Status failure;
  bool correct = true;
  for (const std::string& workload : all) {
    Result<Measurement> measured = runner.Run(workload);
    if (measured.code() == Code::kUnsupported) {
      std::fprintf(stderr, "partita-bench: %s: %s\n", workload.c_str(), measured.status().message().c_str());
      continue;
    }
    failure = measured.status();
    if (!failure.ok()) break;
    std::fprintf(table, "%s\n", TableLine(*measured).c_str());
    std::fflush(table);
    if (!measured->KeptPace()) {
      std::fprintf(stderr, "partita-bench: %s: %s\n", workload.c_str(), PaceLostText(*measured).c_str());
    }
    correct = correct && measured->IsCorrect();
    measurements.push_back(std::move(*measured));
    (void)Write(measurements, When::kSoFar);
  }
  const Status closed = runner.Close();
  if (failure.ok()) failure = closed;
  if (!failure.ok()) std::fprintf(stderr, "partita-bench: %s\n", failure.ToString().c_str());
  const bool written = Write(measurements, When::kAtTheEnd);
  return written && correct && failure.ok() && !measurements.empty() ? 0 : 1;
}

int LoadCommand::Run() const {
  const Arguments& a = *arguments_;
  if (!a.Check()) return 1;
  const std::string& directory = a.load.engine_config.directory;
  const MadeStores made(directory, {a.load.engine});
  const StopScope scope;
  const Result<pid_t> child = StartChild([&] { return a.Measure(); });
  if (!child.ok()) {
    std::fprintf(stderr, "partita-bench: %s\n", child.status().ToString().c_str());
    return 1;
  }
  const int status = WaitForChild(*child);
  const int stopped = StopScope::Signal();
  if (WIFSIGNALED(status) && stopped == 0) {
    // By a fault of its own: what it left may tell.
    std::fprintf(stderr, "partita-bench: ended by signal %s; its stores stay in %s\n",
                 strsignal(WTERMSIG(status)), directory.c_str());
    return 1;
  }
  if (!a.keep) made.Remove();
  return stopped != 0 ? 128 + stopped : WEXITSTATUS(status);
}

}  // namespace partita::bench
