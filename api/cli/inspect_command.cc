#include "engine/inspect.h"

#include "api/cli/commands.h"
#include "api/cli/report_printer.h"

namespace partita {

namespace {

Result<Report> Inspect(const InspectFlags& flags) {
  const InspectOptions options{.rows_max = flags.rows_max};
  if (flags.kind == "wal") return InspectLogFile(flags.file, options);
  if (flags.kind == "table") return InspectTableFile(flags.file, options);
  if (flags.kind == "manifest") return InspectManifestFile(flags.file);
  if (flags.kind == "catalog") return InspectCatalogFile(flags.file);
  return Status::InvalidArgument("'" + flags.kind + "' is none of wal, table, manifest, catalog");
}

}  // namespace

ExitCode RunInspect(const StoreFlags& store, const InspectFlags& flags, Console& console) {
  Result<Report> report = Inspect(flags);
  if (!report.ok()) return FailToStart(console, report.status());
  PrintAsAsked(store, *report, console);
  return report->damages.empty() ? ExitCode::kOk : ExitCode::kFindings;
}

}  // namespace partita
