#include "api/cli/commands.h"
#include "api/cli/open_store.h"
#include "api/cli/report_printer.h"
#include "engine/inspect.h"
#include "engine/world.h"

namespace partita {

ExitCode RunDoctor(const StoreFlags& store, Console& console) {
  RaiseDescriptorLimit();  // As who opens a store does.
  DiagnoseOptions options;
  options.uses_io_uring = store.io_backend == IoBackend::kUring;
  options.directory = store.directory.empty() ? "." : store.directory;
  options.memory_bytes = store.memory_bytes;
  const std::optional<uint32_t> of_store = ShardCountOfStore(options.directory);
  options.shards = store.shards.value_or(of_store.value_or(0));
  if (options.shards == 0) options.shards = ShardsByCores(options.memory_bytes);
  Result<Report> report = Diagnose(options);
  if (!report.ok()) return FailToStart(console, report.status());
  const std::string damage = DamageOfRoot(options.directory);
  if (!damage.empty()) {
    report->Add("store", std::string("damaged"), "as is listed below");
    report->damages.push_back(damage);
  } else {
    report->Add("store", std::string(of_store.has_value() ? "present" : "none"),
                of_store.has_value() ? std::to_string(*of_store) + " shards" : "in this directory");
  }
  PrintAsAsked(store, *report, console);
  return report->damages.empty() ? ExitCode::kOk : ExitCode::kFindings;
}

}  // namespace partita
