#include "bench/load/workload.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <utility>

#include "bench/load/batch_load.h"
#include "bench/load/outstanding_operations.h"
#include "bench/load/paced_load.h"
#include "bench/load/read_load.h"
#include "bench/load/recovery_load.h"
#include "bench/load/removal_load.h"
#include "bench/load/store_directory.h"
#include "bench/load/ycsb.h"
#include "engine/base/assert.h"

namespace partita::bench {
namespace {

using Rows = WorkloadInfo::Rows;
constexpr std::array kWorkloads = {
    WorkloadInfo{"recovery", 1, Rows::kOwnsAll,
                 "open what a writer left that was killed; first in a process only", 1},
    WorkloadInfo{"fill-seq", 1, Rows::kLoads, "load all rows in key order into an empty store"},
    WorkloadInfo{"fill-random", 1, Rows::kLoads, "load all rows in random order into an empty store"},
    WorkloadInfo{"read-hot", 1, Rows::kNeeds,
                 "read random rows of a hot set that fits a quarter of the memory"},
    WorkloadInfo{"read-cold", 1, Rows::kNeeds,
                 "read random rows of all (cold when the data exceeds the memory)"},
    WorkloadInfo{"async-read", 64, Rows::kNeeds, "the same with so many outstanding and no thread for each"},
    WorkloadInfo{"read-missing", 1, Rows::kNeeds, "read random keys that no row has"},
    WorkloadInfo{"read-missing-partition", 1, Rows::kNeeds,
                 "read random keys of partitions that do not exist"},
    WorkloadInfo{"scan-hot", 1, Rows::kNeeds, "scan the 100 rows of a random partition of the hot set"},
    WorkloadInfo{"scan-100", 1, Rows::kNeeds, "scan the 100 rows of a random partition of all"},
    WorkloadInfo{"full-scan-hot", 1, Rows::kNeeds, "scan the hot set from end to end", 1},
    WorkloadInfo{"full-scan", 1, Rows::kNeeds, "scan all rows once", 1},
    WorkloadInfo{"ycsb-a", 2, Rows::kNeeds, "half reads, half overwrites, popular rows (Zipf 0.99)"},
    WorkloadInfo{"ycsb-b", 2, Rows::kNeeds, "95 % reads, 5 % overwrites"},
    WorkloadInfo{"ycsb-c", 2, Rows::kNeeds, "reads"},
    WorkloadInfo{"ycsb-d", 2, Rows::kNeeds, "95 % reads of the newest rows, 5 % inserts"},
    WorkloadInfo{"ycsb-e", 2, Rows::kNeeds, "95 % scans of 1 to 100 rows, 5 % inserts"},
    WorkloadInfo{"ycsb-f", 2, Rows::kNeeds, "half reads, half read-modify-writes"},
    WorkloadInfo{"read-while-writing", 4, Rows::kNeeds,
                 "read random rows of all beside 20,000 overwrites a second"},
    WorkloadInfo{"paced-70", 4, Rows::kNeeds,
                 "half reads, half overwrites, at 70 % of the engine's own maximum"},
    WorkloadInfo{"paced-50", 4, Rows::kNeeds, "the same at half of it"},
    WorkloadInfo{"overwrite", 1, Rows::kNeeds, "overwrite random rows"},
    WorkloadInfo{"sync-write", 16, Rows::kNeeds, "overwrite random rows, each durable against power loss"},
    WorkloadInfo{"async-write", 64, Rows::kNeeds, "the same with so many outstanding and no thread for each"},
    WorkloadInfo{"egt-100", 1, Rows::kNeeds, "overwrite a random partition: an atomic batch of 100 rows"},
    WorkloadInfo{"egt-if", 1, Rows::kNeeds,
                 "the same of the first 1,000 where each row must exist, durable against power loss"},
    WorkloadInfo{"delete-seek", 1, Rows::kUsesUp, "delete 100,000 rows at the front, then seek the first", 1},
    WorkloadInfo{"drop", 1, Rows::kUsesUp, "drop the table with all rows", 1},
};

// "name" or "name:parallel"; null when there is none of that name or the number is wrong.
const WorkloadInfo* Parse(std::string_view text, uint32_t* parallel) {
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  for (const WorkloadInfo& info : kWorkloads) {
    if (info.name != name) continue;
    *parallel = info.parallel_default;
    if (colon == std::string_view::npos) return &info;
    const std::string_view number = text.substr(colon + 1);
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), *parallel);
    const bool valid = error == std::errc() && end == number.data() + number.size();
    return valid && *parallel >= 1 && *parallel <= info.parallel_max ? &info : nullptr;
  }
  return nullptr;
}

Status RunOutstanding(OutstandingOperations::Kind kind, const LoadContext& context,
                      Measurement* measurement) {
  if (!context.engine.has_async()) {
    return kind == OutstandingOperations::Kind::kRead
               ? RunReads(ReadOf::kExisting, context.config.keys, context, measurement)
               : RunOverwrites(DurabilityLevel::kPower, context, measurement);
  }
  const uint64_t started = NowNanos();
  OutstandingOperations operations(kind, context);
  operations.Run();
  measurement->seconds = static_cast<double>(NowNanos() - started) * 1e-9;
  operations.AddTo(measurement);
  return Status();
}

// Reads of more than any cache holds. Those at a pace are, by themselves.
bool IsWarmedUp(std::string_view name) {
  return name.starts_with("ycsb-") || name == "read-cold" || name == "async-read" || name == "scan-100" ||
         name == "read-while-writing";
}

}  // namespace

std::span<const WorkloadInfo> Workloads() { return kWorkloads; }

bool IsWorkload(std::string_view text) {
  uint32_t parallel = 0;
  return Parse(text, &parallel) != nullptr;
}

bool CheckNames(std::span<const std::string> engines, std::span<const std::string> workloads) {
  for (const std::string& engine : engines) {
    if (IsEngine(engine)) continue;
    std::fprintf(stderr, "partita-bench: no engine '%s' in this program; it has: %s\n", engine.c_str(),
                 KnownEngines().c_str());
    return false;
  }
  for (const std::string& workload : workloads) {
    if (IsWorkload(workload)) continue;
    std::fprintf(stderr, "partita-bench: no workload '%s'; see partita-bench --help\n", workload.c_str());
    return false;
  }
  return true;
}

std::vector<std::string> FullWorkloadNames(const std::vector<std::string>& asked) {
  std::vector<std::string> names;
  for (const std::string& text : asked) {
    uint32_t parallel = 0;
    const WorkloadInfo* const info = Parse(text, &parallel);
    std::string name = info == nullptr ? text : std::string(info->name) + ":" + std::to_string(parallel);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
  }
  return names;
}

LoadRunner::LoadRunner(LoadConfig config)
    : config_(std::move(config)), values_(config_.value_size, config_.seed) {
  config_.engine_config.partition_count = (config_.keys + kRowsPerPartition - 1) / kRowsPerPartition;
}

LoadRunner::~LoadRunner() = default;

std::string LoadRunner::DataSetName() const {
  return config_.engine + " " + std::to_string(config_.keys) + " x " + std::to_string(config_.value_size) +
         ", seed " + std::to_string(config_.seed);
}

Status LoadRunner::Close() {
  if (engine_ == nullptr) return Status();
  const Status status = engine_->Close();
  engine_.reset();
  return status;
}

Status LoadRunner::MakeEmpty() {
  PARTITA_TRY(Close());
  return MakeStoreDirectory(config_.engine_config.directory);
}

Status LoadRunner::OpenEmpty() {
  PARTITA_TRY(MakeEmpty());
  has_opened_ = true;
  PARTITA_ASSIGN(engine_, OpenEngine(config_.engine, config_.engine_config));
  return Status();
}

Status LoadRunner::OpenLoaded() {
  std::string held;
  std::getline(std::ifstream(LoadedPath(config_.engine_config.directory)), held);
  if (held == DataSetName()) {
    if (engine_ != nullptr) return Status();
    has_opened_ = true;
    PARTITA_ASSIGN(engine_, OpenEngine(config_.engine, config_.engine_config));
    return Status();
  }
  // A flush for each row would take hours; what is to be measured is how it is written to afterwards.
  const DurabilityLevel asked = config_.engine_config.durability;
  if (asked == DurabilityLevel::kPower) config_.engine_config.durability = DurabilityLevel::kProcess;
  Status loaded = Load();
  config_.engine_config.durability = asked;
  if (asked != DurabilityLevel::kPower || !loaded.ok()) return loaded;
  PARTITA_TRY(Close());
  PARTITA_ASSIGN(engine_, OpenEngine(config_.engine, config_.engine_config));
  return Status();
}

Status LoadRunner::Load() {
  PARTITA_TRY(OpenEmpty());
  Measurement untimed;
  PARTITA_TRY(Fill(/*in_key_order=*/false, Context(1), &untimed));
  return untimed.failed == 0 ? engine_->Settle() : Status::IoError("loading failed: " + untimed.first_error);
}

LoadContext LoadRunner::Context(uint32_t parallel) const {
  return {.config = config_,
          .values = values_,
          .engine = *engine_,
          .generation = NowNanos(),
          .parallel = parallel};
}

Status LoadRunner::Prepare(const WorkloadInfo& info, uint32_t parallel) {
  std::error_code error;
  switch (info.rows) {
    case Rows::kLoads:
      return OpenEmpty();
    case Rows::kNeeds:
      PARTITA_TRY(OpenLoaded());
      if (info.name.ends_with("-hot")) return ReadHotSet();
      return IsWarmedUp(info.name) ? WarmUp(info, parallel) : Status();
    case Rows::kUsesUp:
      PARTITA_TRY(OpenLoaded());
      std::filesystem::remove(LoadedPath(config_.engine_config.directory), error);
      return Status();
    case Rows::kOwnsAll:
      return has_opened_ ? Status(Code::kUnsupported, "recovery has to be the first workload of a process")
                         : MakeEmpty();
  }
  return Status();
}

Result<Measurement> LoadRunner::Run(std::string_view workload) {
  uint32_t parallel = 0;
  const WorkloadInfo* info = Parse(workload, &parallel);
  if (info == nullptr) {
    std::string known;
    for (const WorkloadInfo& other : kWorkloads) known.append(" ").append(other.name);
    return Status::InvalidArgument("no workload '" + std::string(workload) +
                                   "'; there are, each but those of one thread also with a number " +
                                   "of threads as in sync-write:16:" + known);
  }
  PARTITA_TRY(Prepare(*info, parallel));
  Measurement measurement;
  measurement.engine = config_.engine;
  measurement.workload = workload;
  measurement.begun = ResourceUse::Now();
  if (info->rows == Rows::kOwnsAll) {
    PARTITA_TRY(Recover(&measurement));
  } else {
    PARTITA_TRY(RunNamed(*info, Context(parallel), &measurement));
  }
  if (measurement.user_bytes > 0) {
    const uint64_t settling = NowNanos();
    PARTITA_TRY(engine_->Settle());
    measurement.settle_seconds = static_cast<double>(NowNanos() - settling) * 1e-9;
  }
  const ResourceUse after = ResourceUse::Now();
  measurement.cpu_seconds = after.cpu_seconds - measurement.begun.cpu_seconds;
  const uint64_t written = after.written_bytes - measurement.begun.written_bytes;
  measurement.written_bytes =
      written - std::min(written, after.cancelled_bytes - measurement.begun.cancelled_bytes);
  measurement.resident_bytes = after.resident_bytes;
  measurement.disk_bytes = DiskBytesOf(config_.engine_config.directory);
  return measurement;
}

Status LoadRunner::RunNamed(const WorkloadInfo& info, const LoadContext& context, Measurement* measurement) {
  using Kind = OutstandingOperations::Kind;
  const std::string_view name = info.name;
  const DurabilityLevel usual = config_.engine_config.durability;
  const uint64_t all = config_.keys;
  if (name.starts_with("ycsb-")) {
    std::exchange(ycsb_, nullptr)->Run(measurement);
    return Status();
  }
  if (name == "fill-seq") return Fill(/*in_key_order=*/true, context, measurement);
  if (name == "fill-random") return Fill(/*in_key_order=*/false, context, measurement);
  if (name == "overwrite") return RunOverwrites(usual, context, measurement);
  if (name == "sync-write") return RunOverwrites(DurabilityLevel::kPower, context, measurement);
  if (name == "egt-100") return RunBatches(context, measurement);
  if (name == "egt-if") return RunConditionalBatches(context, measurement);
  if (name == "read-hot") return RunReads(ReadOf::kExisting, HotKeys(), context, measurement);
  if (name == "read-cold") return RunReads(ReadOf::kExisting, all, context, measurement);
  if (name == "read-missing") return RunReads(ReadOf::kMissingRow, all, context, measurement);
  if (name == "read-missing-partition") {
    return RunReads(ReadOf::kMissingPartition, all, context, measurement);
  }
  if (name == "scan-hot") return RunScans(HotKeys(), context, measurement);
  if (name == "scan-100") return RunScans(all, context, measurement);
  if (name == "full-scan-hot") return RunFullScans(HotKeys(), config_.seconds, context, measurement);
  if (name == "full-scan") return RunFullScans(all, /*seconds=*/0, context, measurement);
  if (name == "read-while-writing") return RunReadsBesideWrites(context, measurement);
  if (name == "paced-70") return RunPaced(0.7, context, measurement);
  if (name == "paced-50") return RunPaced(0.5, context, measurement);
  if (name == "async-read") return RunOutstanding(Kind::kRead, context, measurement);
  if (name == "async-write") return RunOutstanding(Kind::kDurableWrite, context, measurement);
  if (name == "delete-seek") return RunDeleteThenSeek(context, measurement);
  PARTITA_ASSERT(name == "drop");
  return RunDrop(context, measurement);
}

// A quarter of the memory is cached by whatever cache an engine has.
uint64_t LoadRunner::HotKeys() const {
  const uint64_t fitting = config_.engine_config.memory_bytes / 4 / (kRowKeyBytes + config_.value_size);
  return std::clamp<uint64_t>(fitting, 1, config_.keys);
}

Status LoadRunner::ReadHotSet() {
  std::string value;
  for (uint64_t index = 0; index < HotKeys(); ++index) PARTITA_TRY(engine_->Get(KeysOf(index), &value));
  return Status();
}

Status LoadRunner::WarmUp(const WorkloadInfo& info, uint32_t parallel) {
  Measurement untimed;
  std::unique_ptr<Ycsb> ycsb;
  if (info.name.starts_with("ycsb-")) {
    ycsb = std::make_unique<Ycsb>(info.name.back(), Context(parallel));
    ycsb->Run(&untimed);
  } else {
    PARTITA_TRY(RunNamed(info, Context(parallel), &untimed));
  }
  if (untimed.wrong + untimed.missing > 0) return Status::Corruption("wrong answers while warming up");
  if (untimed.failed > 0) return Status::IoError("warming up failed: " + untimed.first_error);
  ycsb_ = std::move(ycsb);
  return Status();
}

Status LoadRunner::Recover(Measurement* measurement) {
  has_opened_ = true;
  PARTITA_ASSIGN(engine_, RunRecovery(config_, values_, measurement));
  return Status();
}

Status LoadRunner::Fill(bool in_key_order, const LoadContext& context, Measurement* measurement) {
  const Permutation order(config_.keys, config_.seed);
  std::atomic<uint64_t> next = 0;
  RunThreads(
      context.parallel, config_.seed, kUntilDone, config_.value_size,
      [&]() -> Operation {
        return [&, value = std::string()](std::mt19937_64&, Tally* tally) mutable {
          const uint64_t position = next.fetch_add(1, std::memory_order_relaxed);
          if (position >= config_.keys) return false;
          const uint64_t index = in_key_order ? position : order.At(position);
          return PutRow(context, index, config_.engine_config.durability, &value, tally);
        };
      },
      measurement);
  if (measurement->failed == 0)
    std::ofstream(LoadedPath(config_.engine_config.directory)) << DataSetName() << "\n";
  return Status();
}

}  // namespace partita::bench
