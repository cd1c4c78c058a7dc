#include "bench/compare/compare_command.h"

#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "bench/compare/comparison.h"
#include "bench/compare/html_page.h"
#include "bench/compare/report.h"
#include "bench/load/result_file.h"
#include "bench/load/store_directory.h"

namespace partita::bench {
namespace {

constexpr const char* kFooter = R"(
Every workload runs on every engine in turns, each time in a process of its own and, where that can be
made, in a control group that bounds its memory, page cache included. The first engine is held against
the others; of several RocksDBs the best one counts in each row. Each round begins with probes of the
device and the processor. Ctrl-C ends it and keeps what was measured.

  partita-bench compare --small --html compare.html       # some ten minutes: beside RocksDB with lz4
  partita-bench compare --json all.json --html all.html   # the full one, all engines: two days, and 60 GB of disk
  partita-bench compare --engines partita,lmdb --workloads fill-random,read-hot:2 --rounds 5

A figure counts when the median of at least 5 rounds meets it, on a machine that does nothing else.
)";

// What the full comparison and the small one are. The small one has 420 runs: more engines would not fit its
// time, and with fewer rounds nothing would be judged.
struct Size {
  uint64_t keys, memory_mib;
  double seconds, minutes_max;
  std::vector<std::string_view> engines;  // Of those that this program has; empty: all.
};

const Size& FullSize() {
  static const Size kSize = {
      .keys = 4'000'000, .memory_mib = 1024, .seconds = 60, .minutes_max = 1e6, .engines = {}};
  return kSize;
}
const Size& SmallSize() {
  static const Size kSize = {.keys = 300'000,
                             .memory_mib = 128,
                             .seconds = 0.3,
                             .minutes_max = 12,
                             .engines = {"partita", "rocksdb-lz4"}};
  return kSize;
}

// In an order in which each finds the rows that it needs. What uses them up comes last.
const std::vector<std::string>& AllWorkloads() {
  static const std::vector<std::string> kAll = {"fill-seq:1",
                                                "fill-random:1",
                                                "read-hot:1",
                                                "read-hot:2",
                                                "read-cold:1",
                                                "async-read:64",
                                                "read-missing:1",
                                                "read-missing-partition:1",
                                                "scan-hot:1",
                                                "scan-hot:2",
                                                "scan-100:1",
                                                "scan-100:16",
                                                "full-scan-hot:1",
                                                "full-scan:1",
                                                "ycsb-c:2",
                                                "ycsb-c:16",
                                                "ycsb-b:2",
                                                "ycsb-b:16",
                                                "ycsb-a:2",
                                                "ycsb-a:16",
                                                "ycsb-f:2",
                                                "ycsb-f:16",
                                                "ycsb-d:2",
                                                "ycsb-d:16",
                                                "ycsb-e:2",
                                                "ycsb-e:16",
                                                "read-while-writing:4",
                                                "paced-70:4",
                                                "paced-50:4",
                                                "overwrite:1",
                                                "overwrite:4",
                                                "overwrite:16",
                                                "sync-write:1",
                                                "sync-write:16",
                                                "sync-write:64",
                                                "async-write:64",
                                                "egt-100:1",
                                                "egt-if:1",
                                                "egt-if:16",
                                                "delete-seek:1",
                                                "drop:1",
                                                "recovery:1"};
  return kAll;
}

// What all processes from here on may run on; false when it is not possible.
bool BindToCores(const std::vector<int>& cores) {
  if (cores.empty()) return true;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int core : cores) CPU_SET(static_cast<size_t>(core), &set);
  return sched_setaffinity(0, sizeof set, &set) == 0;
}

}  // namespace

struct CompareCommand::Arguments {
  bool small = false, keep = false;
  std::vector<std::string> engines, workloads;
  std::vector<int> cores;
  uint64_t keys = 0, memory_mib = 0, value_size = 1024, seed = 1;
  double seconds = 0, minutes_max = 0;
  uint32_t rounds = 0;
  std::string directory = "partita-bench-data", json_path, html_path;

  ComparisonConfig ToConfig() const;
  // False, and says so, where it cannot be run; asked before anything runs.
  bool Check(const ComparisonConfig& config) const;
  // False, and says so, where a file cannot be written.
  bool Write(const Report& report) const;
};

CompareCommand::CompareCommand(CLI::App* app)
    : command_(
          app->add_subcommand("compare", "Compares engines in turns and judges the first one by its goals")),
      arguments_(std::make_unique<Arguments>()) {
  Arguments& a = *arguments_;
  command_->add_flag(
      "--small", a.small,
      "The comparison of some ten minutes: fewer rows, less memory, shorter runs, and rocksdb-lz4 alone");
  command_
      ->add_option(
          "--engines", a.engines,
          "Which, the one to be judged first; default: all of this program, small partita,rocksdb-lz4")
      ->delimiter(',');
  command_
      ->add_option("--workloads", a.workloads, "Which, as name:N (see partita-bench --help); default: all")
      ->delimiter(',');
  command_
      ->add_option("--rounds", a.rounds,
                   "How often everything is repeated; default 5; with fewer nothing is judged")
      ->check(CLI::Range(1, 1000));
  command_->add_option("--seconds", a.seconds, "Of each run; default 60, small 0.3")
      ->check(CLI::Range(0.01, 86400.0));
  command_->add_option("--minutes", a.minutes_max, "Begin nothing after so many; default: none, small 12")
      ->check(CLI::Range(0.01, 1e6));
  command_->add_option("--keys", a.keys, "Rows; default 4,000,000, small 300,000")
      ->check(CLI::Range(1ull, 1ull << 40));
  command_->add_option("--value-bytes", a.value_size, "Size of a value")
      ->capture_default_str()
      ->check(CLI::Range(64, 65536));
  command_->add_option("--memory", a.memory_mib, "Budget of each engine in MiB; default 1,024, small 128")
      ->check(CLI::Range(64, 1 << 20));
  command_->add_option("--cores", a.cores, "Run everything on these cores alone, as 0,1; default: all")
      ->delimiter(',')
      ->check(CLI::Range(0, 1023));
  command_->add_option("--directory", a.directory, "Where the stores lie")->capture_default_str();
  command_->add_option("--seed", a.seed, "Of keys and values")->capture_default_str();
  command_->add_option("--json", a.json_path, "Write everything that was measured to this file");
  command_->add_option("--html", a.html_path, "Write a page with charts to this file; it needs no network");
  command_->add_flag("--keep", a.keep, "Keep the stores");
  command_->footer(kFooter);
  // Its own come after its name; those before it are of the plain command, and would do nothing.
  for (CLI::Option* option : app->get_options()) {
    if (option != app->get_help_ptr()) command_->excludes(option);
  }
}

CompareCommand::~CompareCommand() = default;

ComparisonConfig CompareCommand::Arguments::ToConfig() const {
  const Size& size = small ? SmallSize() : FullSize();
  ComparisonConfig config;
  config.load.keys = keys > 0 ? keys : size.keys;
  config.load.value_size = value_size;
  config.load.seed = seed;
  config.load.seconds = seconds > 0 ? seconds : size.seconds;
  config.load.engine_config.directory = directory;
  config.load.engine_config.memory_bytes = (memory_mib > 0 ? memory_mib : size.memory_mib) << 20;
  config.rounds = rounds > 0 ? rounds : kRoundsToJudge;
  config.minutes_max = minutes_max > 0 ? minutes_max : size.minutes_max;
  config.workloads = FullWorkloadNames(workloads.empty() ? AllWorkloads() : workloads);
  config.engines = engines;
  if (!engines.empty()) return config;
  for (std::string_view engine : EngineNames()) {
    const bool wanted = size.engines.empty() || std::ranges::find(size.engines, engine) != size.engines.end();
    if (wanted) config.engines.emplace_back(engine);
  }
  return config;
}

bool CompareCommand::Arguments::Write(const Report& report) const {
  const bool good = json_path.empty() || WriteResultFile(json_path, ToJson(report));
  return (html_path.empty() || WriteResultFile(html_path, ToHtml(report))) && good;
}

bool CompareCommand::Arguments::Check(const ComparisonConfig& config) const {
  if (!CheckNames(config.engines, config.workloads)) return false;
  if (const std::set<std::string> names(config.engines.begin(), config.engines.end());
      names.size() < config.engines.size()) {
    std::fprintf(stderr, "partita-bench: an engine is named twice; both would write to one store\n");
    return false;
  }
  return (json_path.empty() || CanWriteResultFile(json_path)) &&
         (html_path.empty() || CanWriteResultFile(html_path));
}

int CompareCommand::Run() const {
  const Arguments& a = *arguments_;
  const ComparisonConfig config = a.ToConfig();
  if (!a.Check(config)) return 1;
  if (!BindToCores(a.cores)) {
    std::fprintf(stderr, "partita-bench: cannot run on the cores that --cores names\n");
    return 1;
  }
  const MadeStores made(a.directory, config.engines);
  Result<ComparisonResult> result = RunComparison(
      config, [&](const ComparisonResult& so_far) { (void)a.Write(MakeReport(config, so_far)); });
  if (!result.ok()) {
    std::fprintf(stderr, "partita-bench: %s\n", result.status().ToString().c_str());
    return 1;
  }
  const Report report = MakeReport(config, std::move(*result));
  if (!a.keep) made.Remove();
  std::printf("%s", ToText(report).c_str());
  bool good = a.Write(report);
  for (const RoundMeasurement& m : report.result.measurements) {
    if (m.IsCorrect()) continue;
    std::fprintf(stderr, "%s\n", TableLine(m).c_str());
    good = false;
  }
  for (const Failure& failure : report.result.failures) good = good && failure.code == Code::kUnsupported;
  return good ? 0 : 1;
}

}  // namespace partita::bench
