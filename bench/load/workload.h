#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/load/engine.h"
#include "bench/load/load_loop.h"
#include "bench/load/measurement.h"
#include "bench/load/row_generator.h"
#include "bench/load/ycsb.h"
#include "engine/base/result.h"

namespace partita::bench {

// One workload as it can be asked for: "name" or "name:parallel".
struct WorkloadInfo {
  // What the rows of the data set are, before it and after.
  enum class Rows : uint8_t {
    kLoads,    // A load: begins with a fresh directory and fills it.
    kNeeds,    // Needs the data set, leaves it whole.
    kUsesUp,   // Needs the data set, and does not leave it.
    kOwnsAll,  // Begins with a fresh directory, which it opens itself, and leaves something else in it.
  };
  std::string_view name;
  uint32_t parallel_default;  // Threads; outstanding operations for async-write and async-read.
  Rows rows;
  std::string_view meaning;
  uint32_t parallel_max = 4096;  // 1: one thread does it, and no other number is taken.
};
std::span<const WorkloadInfo> Workloads();
// True for what LoadRunner::Run takes.
bool IsWorkload(std::string_view text);
// False, and says so on standard error, where an engine or a workload is none.
bool CheckNames(std::span<const std::string> engines, std::span<const std::string> workloads);
// Each as "name:parallel", also where only the name was given, as goals go by it; none twice. What is no
// workload stays as it is.
std::vector<std::string> FullWorkloadNames(const std::vector<std::string>& asked);

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
  Status MakeEmpty();
  Status OpenEmpty();
  Status OpenLoaded();
  Status Load();
  // What the workload needs of the directory, opened or not.
  Status Prepare(const WorkloadInfo& info, uint32_t parallel);
  Status RunNamed(const WorkloadInfo& info, const LoadContext& context, Measurement* measurement);
  LoadContext Context(uint32_t parallel) const;
  std::string DataSetName() const;

  uint64_t HotKeys() const;
  Status ReadHotSet();
  // The same untimed, for as long as is measured afterwards: of a store just opened most misses are of rows
  // that nobody has read yet, and the memory of caches is the kernel's, who takes milliseconds to give it.
  // What it leaves to be flushed and merged is paid within what is measured, as it is in a long run.
  Status WarmUp(const WorkloadInfo& info, uint32_t parallel);
  Status Recover(Measurement* measurement);
  Status Fill(bool in_key_order, const LoadContext& context, Measurement* measurement);

  LoadConfig config_;
  ValueGenerator values_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Ycsb> ycsb_;  // Warmed up, to be measured.
  bool has_opened_ = false;
};

}  // namespace partita::bench
