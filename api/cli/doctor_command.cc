#include <algorithm>
#include <thread>

#include "api/cli/commands.h"
#include "api/cli/open_store.h"
#include "api/cli/report_printer.h"
#include "engine/base/memory_budget.h"
#include "engine/catalog.h"
#include "engine/inspect.h"

namespace partita {

ExitCode RunDoctor(const StoreFlags& store, Console& console) {
  RaiseDescriptorLimit();  // As who opens a store does.
  DiagnoseOptions options;
  options.uses_io_uring = store.io_backend == IoBackend::kUring;
  options.directory = store.directory.empty() ? "." : store.directory;
  options.memory_bytes = store.memory_bytes;
  const std::optional<uint32_t> of_store = ShardCountOfStore(options.directory);
  options.shards = store.shards.value_or(of_store.value_or(0));
  if (options.shards == 0) {
    // As who opens a store does (Options::shards).
    const uint64_t fit = std::min<uint64_t>(options.memory_bytes / kMemoryBudgetPerShardMin, kShardCountMax);
    options.shards = static_cast<uint32_t>(
        std::clamp<uint64_t>(std::thread::hardware_concurrency(), 1, std::max<uint64_t>(fit, 1)));
  }
  Result<Report> report = Diagnose(options);
  if (!report.ok()) return Fail(console, report.status());
  report->Add("store", std::string(of_store.has_value() ? "present" : "none"),
              of_store.has_value() ? std::to_string(*of_store) + " shards" : "in this directory");
  if (store.json) {
    PrintReportJson(console.out, *report);
  } else {
    PrintReport(console.out, *report);
  }
  return report->damages.empty() ? ExitCode::kOk : ExitCode::kFindings;
}

}  // namespace partita
