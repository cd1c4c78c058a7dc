#include "bench/compare/comparison.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "bench/compare/child_run.h"
#include "bench/load/child_process.h"
#include "bench/load/format_text.h"
#include "bench/load/tally.h"

namespace partita::bench {
namespace {

double LoadAverage() {
  double average = 0;
  return getloadavg(&average, 1) == 1 ? average : 0;
}

// What the page cache has of the files below `directory` is given back, so that nobody reads there what
// was counted for somebody else.
void DropPageCache(const std::string& directory) {
  std::error_code error;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory, error)) {
    if (!entry.is_regular_file(error)) continue;
    const int file = open(entry.path().c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) continue;
    fdatasync(file);  // What is not on the disk yet would stay.
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    close(file);
  }
}

std::string Summary(const Measurement& m) {
  if (!m.IsCorrect()) return WrongAnswersText(m);
  const std::string text =
      Format("%8s ops/s, p50 %.1f us, p99 %.1f us, CPU %.1f us", ShortNumber(m.OperationsPerSecond()).c_str(),
             static_cast<double>(m.latency.Percentile(0.5)) * 1e-3,
             static_cast<double>(m.latency.Percentile(0.99)) * 1e-3, m.CpuMicrosPerOperation());
  return m.KeptPace() ? text : text + ", " + PaceLostText(m);
}

class Comparison {
 public:
  explicit Comparison(const ComparisonConfig& config) : config_(config) {
    total_ = config.rounds * config.workloads.size() * config.engines.size();
  }

  Result<ComparisonResult> Run(const AfterRound& after_round) {
    const StopScope scope;
    result_.load_before = LoadAverage();
    PARTITA_TRY(LearnMemoryLimit());
    for (uint32_t round = 0; round < config_.rounds && !IsOver(); ++round) {
      Probe();
      for (const std::string& workload : config_.workloads) {
        for (size_t turn = 0; turn < config_.engines.size() && !IsOver(); ++turn) {
          RunOne(config_.engines[(turn + round) % config_.engines.size()], workload, round);
        }
      }
      Conclude();
      if (after_round != nullptr) after_round(result_);
    }
    Conclude();
    return std::move(result_);
  }

 private:
  void Conclude() {
    result_.stopped = IsOver() && done_ < total_;
    result_.load_after = LoadAverage();
    result_.minutes = Minutes();
  }

  double Minutes() const { return static_cast<double>(NowNanos() - started_ns_) * 1e-9 / 60; }
  bool IsOver() const { return StopScope::Signal() != 0 || Minutes() > config_.minutes_max; }

  Status LearnMemoryLimit() {
    std::error_code error;
    std::filesystem::create_directories(config_.load.engine_config.directory, error);
    if (error) return Status::IoError(config_.load.engine_config.directory + ": " + error.message());
    const uint64_t limit = MemoryLimit(config_.load.engine_config.memory_bytes, config_.load.value_size);
    const Result<MemoryGroup> group = MemoryGroup::Create(limit);
    grouped_ = group.ok();
    result_.memory_limit =
        grouped_ ? "a control group of " + std::to_string(limit >> 20) +
                       " MiB around each engine, page cache and the load's own memory included"
                 : "only by each engine's own settings, without page cache where that can be told: " +
                       group.status().message();
    std::fprintf(stderr, "memory is bounded by %s\n", result_.memory_limit.c_str());
    return Status();
  }

  void Probe() {
    if (config_.probe_seconds == 0) return;
    Result<Probes> probes =
        RunProbes(config_.load.engine_config.directory, config_.load.value_size, config_.probe_seconds);
    if (probes.ok()) {
      result_.probes.push_back(*probes);
    } else {
      std::fprintf(stderr, "no probes of the machine: %s\n", probes.status().ToString().c_str());
    }
  }

  void RunOne(const std::string& engine, const std::string& workload, uint32_t round) {
    LoadConfig load = config_.load;
    load.engine = engine;
    load.engine_config.directory += "/" + engine;
    load.engine_config.page_cache = load.engine_config.page_cache || grouped_;
    if (IsDurable(workload)) load.engine_config.durability = DurabilityLevel::kPower;
    DropPageCache(load.engine_config.directory);
    Result<Measurement> measured = RunBounded(load, workload);
    ++done_;
    if (!measured.ok()) {
      if (StopScope::Signal() != 0) return;
      Tell(engine, workload, measured.status().ToString());
      result_.failures.push_back({.engine = engine,
                                  .workload = workload,
                                  .error = measured.status().message(),
                                  .code = measured.code(),
                                  .round = round});
      return;
    }
    Tell(engine, workload, Summary(*measured));
    RoundMeasurement kept;
    static_cast<Measurement&>(kept) = std::move(*measured);
    kept.round = round;
    result_.measurements.push_back(std::move(kept));
  }

  Result<Measurement> RunBounded(const LoadConfig& load, const std::string& workload) {
    // Far above what any of them needs; a process that hangs must not take the night.
    const auto seconds_max =
        static_cast<uint32_t>(120 + 5 * load.seconds + static_cast<double>(load.keys) / 2000);
    if (!grouped_) return RunInChild(load, workload, nullptr, seconds_max);
    PARTITA_ASSIGN(const MemoryGroup group,
                   MemoryGroup::Create(MemoryLimit(load.engine_config.memory_bytes, load.value_size)));
    return RunInChild(load, workload, &group, seconds_max);
  }

  void Tell(const std::string& engine, const std::string& workload, const std::string& what) {
    const double gone = Minutes();
    const double left = gone / static_cast<double>(done_) * static_cast<double>(total_ - done_);
    std::fprintf(stderr, "[%3zu/%zu, %4.1f min gone, %4.1f left] %-17s %-22s %s\n", done_, total_, gone,
                 std::min(left, config_.minutes_max - gone), engine.c_str(), workload.c_str(), what.c_str());
  }

  const ComparisonConfig& config_;
  const uint64_t started_ns_ = NowNanos();
  size_t total_ = 0, done_ = 0;
  bool grouped_ = false;
  ComparisonResult result_;
};

}  // namespace

uint64_t MemoryLimit(uint64_t budget_bytes, uint64_t value_size) {
  return budget_bytes + budget_bytes / 20 + (uint64_t{112} << 20) + ValueGenerator::kPoolSize * value_size;
}

bool IsDurable(const std::string& workload) {
  return workload.starts_with("sync-write") || workload.starts_with("async-write") ||
         workload.starts_with("egt-if");
}

Result<ComparisonResult> RunComparison(const ComparisonConfig& config, const AfterRound& after_round) {
  return Comparison(config).Run(after_round);
}

}  // namespace partita::bench
