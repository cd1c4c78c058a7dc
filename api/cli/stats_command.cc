#include "api/cli/commands.h"
#include "api/cli/open_store.h"
#include "api/cli/report_printer.h"
#include "api/cli/stats_report.h"

namespace partita {

ExitCode RunStats(const StoreFlags& store, Console& console) {
  Result<std::unique_ptr<Database>> database = OpenStore(store, IfNoStore::kFail, console);
  if (!database.ok()) return FailToStart(console, database.status());
  Report report = DescribeStats((*database)->Stats(), store.directory);
  NoteDamagedShards((*database)->open_report().damaged_shards, &report);
  PrintAsAsked(store, report, console);
  return CloseStore(**database, report.damages.empty() ? ExitCode::kOk : ExitCode::kFindings, console);
}

}  // namespace partita
