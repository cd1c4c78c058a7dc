#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "bench/load/engine.h"
#include "bench/load/measurement.h"
#include "bench/load/row_generator.h"
#include "engine/base/result.h"

namespace partita::bench {

// What to run, and on how much.
struct LoadConfig {
  std::string engine = "partita";
  EngineConfig engine_config;
  uint64_t keys = 300'000;
  size_t value_size = 1024;
  double seconds = 5;  // Of each workload that is not a load or a full scan.
  uint64_t seed = 1;
};

// One workload as it can be asked for: "name" or "name:parallel".
struct WorkloadInfo {
  std::string_view name;
  uint32_t parallel_default;  // Threads; outstanding writes for async-write.
  bool starts_empty;          // A load: begins with a fresh directory.
  std::string_view meaning;
};
std::span<const WorkloadInfo> Workloads();

// Runs workloads one after the other on one engine and one directory. A workload that needs rows
// loads them first, untimed, when the directory does not hold the data set yet; which one it holds
// is written to a small file beside the engine's directory.
//
// Not thread-safe. Lifecycle: Run*, Close.
class LoadRunner {
 public:
  explicit LoadRunner(LoadConfig config);
  ~LoadRunner();

  // kInvalidArgument for a workload that does not exist. Wrong answers are no error here: they are
  // counted in the measurement.
  Result<Measurement> Run(std::string_view workload);

  Status Close();

 private:
  Status OpenEmpty();
  Status OpenLoaded();
  std::string MarkerPath() const { return config_.engine_config.directory + ".loaded"; }
  std::string DataSetName() const;

  uint64_t HotKeys() const;
  Status WarmUp();
  Status RunNamed(std::string_view name, uint32_t parallel, Measurement* measurement);
  Status Fill(bool in_key_order, uint32_t threads, Measurement* measurement);
  Status Write(DurabilityLevel level, uint32_t threads, Measurement* measurement);
  Status WriteOutstanding(uint32_t outstanding, Measurement* measurement);
  Status WriteAtomically(uint32_t threads, Measurement* measurement);
  Status Read(uint64_t keys, bool missing, uint32_t threads, Measurement* measurement);
  Status ScanPartitions(uint32_t threads, Measurement* measurement);
  Status ScanAll(Measurement* measurement);

  LoadConfig config_;
  ValueGenerator values_;
  std::unique_ptr<Engine> engine_;
  uint64_t generation_ = 0;  // Of the values written next.
};

}  // namespace partita::bench
