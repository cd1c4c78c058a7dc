#include "bench/load/workload.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <thread>
#include <vector>

#include "bench/load/outstanding_writes.h"
#include "bench/load/tally.h"

namespace partita::bench {
namespace {

constexpr std::array kWorkloads = {
    WorkloadInfo{"fill-seq", 1, true, "load all rows in key order into an empty store"},
    WorkloadInfo{"fill-random", 1, true, "load all rows in random order into an empty store"},
    WorkloadInfo{"overwrite", 1, false, "overwrite random rows"},
    WorkloadInfo{"read-hot", 1, false, "read random rows of a hot set that fits a quarter of the memory"},
    WorkloadInfo{"read-cold", 1, false, "read random rows of all (cold when the data exceeds the memory)"},
    WorkloadInfo{"read-missing", 1, false, "read random keys that no row has"},
    WorkloadInfo{"scan-100", 1, false, "scan the 100 rows of a random partition"},
    WorkloadInfo{"full-scan", 1, false, "scan all rows once"},
    WorkloadInfo{"sync-write", 16, false, "overwrite random rows, each durable against power loss"},
    WorkloadInfo{"async-write", 64, false, "the same with so many outstanding and no thread for each"},
    WorkloadInfo{"egt-100", 1, false, "overwrite a random partition: an atomic batch of 100 rows"},
};

// One operation of thread-private state; false when there is no more to do.
using Operation = std::function<bool(std::mt19937_64& random, Tally* tally)>;

// Runs operations until they end or `seconds` are over; one clock reading an operation.
void RunLoop(const Operation& operation, uint64_t seed, double seconds, Tally* tally) {
  std::mt19937_64 random(seed);
  uint64_t before = NowNanos();
  const uint64_t end = before + static_cast<uint64_t>(seconds * 1e9);
  while (before < end && operation(random, tally)) {
    const uint64_t after = NowNanos();
    tally->latency.Record(after - before);
    ++tally->operations;
    before = after;
  }
}

// Runs one operation a thread, made by `make(thread)`, and adds up what they saw.
void RunThreads(uint32_t threads, uint64_t seed, double seconds, size_t value_size,
                const std::function<Operation(uint32_t thread)>& make, Measurement* measurement) {
  std::vector<Tally> tallies(threads);
  const uint64_t started = NowNanos();
  if (threads == 1) {
    RunLoop(make(0), seed, seconds, &tallies[0]);
  } else {
    std::vector<std::thread> running;
    for (uint32_t thread = 0; thread < threads; ++thread) {
      running.emplace_back(RunLoop, make(thread), seed + thread, seconds, &tallies[thread]);
    }
    for (std::thread& thread : running) thread.join();
  }
  measurement->seconds = static_cast<double>(NowNanos() - started) * 1e-9;
  for (const Tally& tally : tallies) tally.AddTo(measurement, value_size);
}

constexpr double kUntilDone = 1e9;

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
    return valid && *parallel >= 1 && *parallel <= 4096 ? &info : nullptr;
  }
  return nullptr;
}

}  // namespace

std::span<const WorkloadInfo> Workloads() { return kWorkloads; }

LoadRunner::LoadRunner(LoadConfig config)
    : config_(std::move(config)), values_(config_.value_size, config_.seed) {
  config_.engine_config.partition_count = (config_.keys + kRowsPerPartition - 1) / kRowsPerPartition;
}

LoadRunner::~LoadRunner() = default;

std::string LoadRunner::DataSetName() const {
  return config_.engine + " " + std::to_string(config_.keys) + " x " + std::to_string(config_.value_size);
}

Status LoadRunner::Close() {
  if (engine_ == nullptr) return Status();
  const Status status = engine_->Close();
  engine_.reset();
  return status;
}

Status LoadRunner::OpenEmpty() {
  PARTITA_TRY(Close());
  std::error_code error;
  std::filesystem::remove(MarkerPath(), error);
  std::filesystem::remove_all(config_.engine_config.directory, error);
  std::filesystem::create_directories(config_.engine_config.directory, error);
  if (error) return Status::IoError(config_.engine_config.directory + ": " + error.message());
  PARTITA_ASSIGN(engine_, OpenEngine(config_.engine, config_.engine_config));
  return Status();
}

Status LoadRunner::OpenLoaded() {
  std::string held;
  std::getline(std::ifstream(MarkerPath()), held);
  if (held == DataSetName()) {
    if (engine_ != nullptr) return Status();
    PARTITA_ASSIGN(engine_, OpenEngine(config_.engine, config_.engine_config));
    return Status();
  }
  PARTITA_TRY(OpenEmpty());
  Measurement untimed;
  PARTITA_TRY(Fill(/*in_key_order=*/false, /*threads=*/1, &untimed));
  return untimed.failed == 0 ? engine_->Settle() : Status::IoError("loading failed: " + untimed.first_error);
}

Result<Measurement> LoadRunner::Run(std::string_view workload) {
  uint32_t parallel = 0;
  const WorkloadInfo* info = Parse(workload, &parallel);
  if (info == nullptr) {
    std::string known;
    for (const WorkloadInfo& other : kWorkloads) known.append(" ").append(other.name);
    return Status::InvalidArgument("no workload '" + std::string(workload) +
                                   "'; there are, each also with a number " +
                                   "of threads as in sync-write:16:" + known);
  }
  if (info->starts_empty) {
    PARTITA_TRY(OpenEmpty());
  } else {
    PARTITA_TRY(OpenLoaded());
  }
  Measurement measurement;
  measurement.engine = config_.engine;
  measurement.workload = workload;
  generation_ = NowNanos();
  if (info->name == "read-hot") PARTITA_TRY(WarmUp());
  const ResourceUse before = ResourceUse::Now();
  PARTITA_TRY(RunNamed(info->name, parallel, &measurement));
  if (measurement.user_bytes > 0) {
    const uint64_t settling = NowNanos();
    PARTITA_TRY(engine_->Settle());
    measurement.settle_seconds = static_cast<double>(NowNanos() - settling) * 1e-9;
  }
  const ResourceUse after = ResourceUse::Now();
  measurement.cpu_seconds = after.cpu_seconds - before.cpu_seconds;
  measurement.written_bytes = after.written_bytes - before.written_bytes;
  measurement.resident_bytes = after.resident_bytes;
  measurement.disk_bytes = DiskBytesOf(config_.engine_config.directory);
  return measurement;
}

Status LoadRunner::RunNamed(std::string_view name, uint32_t parallel, Measurement* measurement) {
  if (name == "fill-seq") return Fill(/*in_key_order=*/true, parallel, measurement);
  if (name == "fill-random") return Fill(/*in_key_order=*/false, parallel, measurement);
  if (name == "overwrite") return Write(config_.engine_config.durability, parallel, measurement);
  if (name == "sync-write") return Write(DurabilityLevel::kPower, parallel, measurement);
  if (name == "async-write") return WriteOutstanding(parallel, measurement);
  if (name == "egt-100") return WriteAtomically(parallel, measurement);
  if (name == "read-missing") return Read(config_.keys, /*missing=*/true, parallel, measurement);
  if (name == "read-cold") return Read(config_.keys, /*missing=*/false, parallel, measurement);
  if (name == "scan-100") return ScanPartitions(parallel, measurement);
  if (name == "full-scan") return ScanAll(measurement);
  return Read(HotKeys(), /*missing=*/false, parallel, measurement);  // read-hot
}

// A quarter of the memory is cached by whatever cache an engine has.
uint64_t LoadRunner::HotKeys() const {
  const uint64_t fitting = config_.engine_config.memory_bytes / 4 / (kRowKeyBytes + config_.value_size);
  return std::clamp<uint64_t>(fitting, 1, config_.keys);
}

Status LoadRunner::WarmUp() {
  std::string value;
  for (uint64_t index = 0; index < HotKeys(); ++index) PARTITA_TRY(engine_->Get(KeysOf(index), &value));
  return Status();
}

Status LoadRunner::Fill(bool in_key_order, uint32_t threads, Measurement* measurement) {
  const Permutation order(config_.keys, config_.seed);
  std::atomic<uint64_t> next = 0;
  RunThreads(
      threads, config_.seed, kUntilDone, config_.value_size,
      [&](uint32_t) -> Operation {
        return [&, value = std::string()](std::mt19937_64&, Tally* tally) mutable {
          const uint64_t position = next.fetch_add(1, std::memory_order_relaxed);
          if (position >= config_.keys) return false;
          const uint64_t index = in_key_order ? position : order.At(position);
          values_.Fill(index, generation_, &value);
          const Status status = engine_->Put(KeysOf(index), value, config_.engine_config.durability);
          if (!status.ok()) {
            tally->Failed(status);
            return false;
          }
          ++tally->rows;
          ++tally->rows_written;
          return true;
        };
      },
      measurement);
  if (measurement->failed == 0) std::ofstream(MarkerPath()) << DataSetName() << "\n";
  return Status();
}

Status LoadRunner::Write(DurabilityLevel level, uint32_t threads, Measurement* measurement) {
  RunThreads(
      threads, generation_, config_.seconds, config_.value_size,
      [&, level](uint32_t) -> Operation {
        return [&, level, value = std::string()](std::mt19937_64& random, Tally* tally) mutable {
          const uint64_t index = random() % config_.keys;
          values_.Fill(index, generation_ + tally->operations, &value);
          const Status status = engine_->Put(KeysOf(index), value, level);
          if (!status.ok()) {
            tally->Failed(status);
            return false;
          }
          ++tally->rows;
          ++tally->rows_written;
          return true;
        };
      },
      measurement);
  return Status();
}

Status LoadRunner::WriteOutstanding(uint32_t outstanding, Measurement* measurement) {
  if (!engine_->has_async_put()) return Write(DurabilityLevel::kPower, outstanding, measurement);
  const uint64_t started = NowNanos();
  OutstandingWrites writes(
      engine_.get(), &values_,
      {.keys = config_.keys, .generation = generation_, .seconds = config_.seconds, .seed = generation_});
  writes.Run(outstanding);
  measurement->seconds = static_cast<double>(NowNanos() - started) * 1e-9;
  writes.AddTo(measurement);
  return Status();
}

Status LoadRunner::WriteAtomically(uint32_t threads, Measurement* measurement) {
  const uint64_t partitions = config_.keys / kRowsPerPartition;
  if (partitions == 0) return Status::InvalidArgument("egt-100 needs at least 100 keys");
  RunThreads(
      threads, generation_, config_.seconds, config_.value_size,
      [&](uint32_t) -> Operation {
        return
            [&, rows = std::vector<Row>(kRowsPerPartition)](std::mt19937_64& random, Tally* tally) mutable {
              const uint64_t first = random() % partitions * kRowsPerPartition;
              for (uint64_t i = 0; i < kRowsPerPartition; ++i) {
                rows[i].keys = KeysOf(first + i);
                values_.Fill(first + i, generation_ + tally->operations, &rows[i].value);
              }
              const Status status = engine_->PutAtomically(rows, config_.engine_config.durability);
              if (!status.ok()) {
                tally->Failed(status);
                return false;
              }
              tally->rows += kRowsPerPartition;
              tally->rows_written += kRowsPerPartition;
              return true;
            };
      },
      measurement);
  return Status();
}

Status LoadRunner::Read(uint64_t keys, bool missing, uint32_t threads, Measurement* measurement) {
  RunThreads(
      threads, generation_, config_.seconds, config_.value_size,
      [&, keys, missing](uint32_t) -> Operation {
        return [&, keys, missing, value = std::string()](std::mt19937_64& random, Tally* tally) mutable {
          const uint64_t index = random() % keys;
          const Status status = engine_->Get(KeysOf(index, missing), &value);
          if (status.code() == Code::kNotFound) {
            tally->missing += missing ? 0 : 1;
          } else if (!status.ok()) {
            tally->Failed(status);
          } else {
            ++tally->rows;
            tally->wrong += missing || !values_.Check(index, value) ? 1 : 0;
          }
          return true;
        };
      },
      measurement);
  return Status();
}

Status LoadRunner::ScanPartitions(uint32_t threads, Measurement* measurement) {
  const uint64_t partitions = config_.keys / kRowsPerPartition;
  if (partitions == 0) return Status::InvalidArgument("scan-100 needs at least 100 keys");
  RunThreads(
      threads, generation_, config_.seconds, config_.value_size,
      [&](uint32_t) -> Operation {
        return [&](std::mt19937_64& random, Tally* tally) {
          const uint64_t first = random() % partitions * kRowsPerPartition;
          uint64_t at = first;
          const Status status = engine_->Scan(
              KeysOf(first), kRowsPerPartition, [&](std::string_view row_key, std::string_view value) {
                tally->wrong += !values_.Check(at, value) || row_key != KeysOf(at).row();
                ++at;
                return true;
              });
          if (!status.ok()) tally->Failed(status);
          tally->rows += at - first;
          tally->missing += kRowsPerPartition - (at - first);
          return true;
        };
      },
      measurement);
  return Status();
}

Status LoadRunner::ScanAll(Measurement* measurement) {
  Tally tally;
  uint64_t at = 0;
  const uint64_t started = NowNanos();
  const Status status =
      engine_->Scan(KeysOf(0), UINT64_MAX, [&](std::string_view row_key, std::string_view value) {
        tally.wrong += !values_.Check(at, value) || row_key != KeysOf(at).row();
        ++at;
        return true;
      });
  const uint64_t nanos = NowNanos() - started;
  if (!status.ok()) tally.Failed(status);
  tally.latency.Record(nanos);
  tally.operations = 1;
  tally.rows = at;
  tally.missing = config_.keys - std::min(at, config_.keys);
  measurement->seconds = static_cast<double>(nanos) * 1e-9;
  tally.AddTo(measurement, config_.value_size);
  return Status();
}

}  // namespace partita::bench
