#include "api/cli/commands.h"
#include "api/cli/figures.h"
#include "api/cli/open_store.h"
#include "api/cli/report_printer.h"
#include "api/cli/task_watcher.h"

namespace partita {

ExitCode RunScrub(const StoreFlags& store, const ScrubFlags& flags, Console& console) {
  ScrubOptions options;
  if (!flags.within.empty()) {
    const std::optional<int64_t> seconds = ParseDuration(flags.within);
    if (!seconds || *seconds == 0) {
      return FailUsage(console, "--within takes a time, such as 90m, 12h or 7d; not '" + flags.within + "'");
    }
    options.period_seconds = static_cast<uint64_t>(*seconds);
  }
  Result<std::unique_ptr<Database>> database = OpenStore(store, IfNoStore::kFail);
  if (!database.ok()) return FailToStart(console, database.status());
  TaskWatcher watcher(console, "scrub");
  options.pace = watcher.Pace(flags.bytes_per_second);
  Result<ScrubReport> scrubbed = (*database)->Scrub(options);
  watcher.Finish();
  if (!scrubbed.ok()) return CloseStore(**database, Fail(console, scrubbed.status()), console);

  Report report;
  report.title = "scrub of " + store.directory;
  report.Add("table_files", scrubbed->tables);
  report.Add("entries", scrubbed->entries);
  report.Add("log_segments", scrubbed->log_segments);
  report.Add("meta_values", scrubbed->meta_values, "the catalog, and a manifest for each shard");
  report.Add("read_bytes", scrubbed->bytes);
  report.Add("transient_reads", scrubbed->transient, "bad at first, good when read again");
  report.damages = std::move(scrubbed->damages);
  PrintAsAsked(store, report, console);
  if (!store.json) {
    console.out << (report.damages.empty()
                        ? "everything is sound\n"
                        : "there is damage; restore a backup, or see what 'partita repair' can keep\n");
  }
  return CloseStore(**database, report.damages.empty() ? ExitCode::kOk : ExitCode::kFindings, console);
}

}  // namespace partita
