#include "api/cli/commands.h"
#include "api/cli/open_store.h"
#include "api/cli/report_printer.h"
#include "api/cli/stats_report.h"

namespace partita {

ExitCode RunStats(const StoreFlags& store, Console& console) {
  Result<std::unique_ptr<Database>> database = OpenStore(store, IfNoStore::kFail);
  if (!database.ok()) return FailToStart(console, database.status());
  const Report report = DescribeStats((*database)->Stats(), store.directory);
  if (store.json) {
    PrintReportJson(console.out, report);
  } else {
    PrintReport(console.out, report);
  }
  return CloseStore(**database, ExitCode::kOk, console);
}

}  // namespace partita
