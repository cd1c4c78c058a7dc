#include "api/cli/commands.h"
#include "api/cli/figures.h"
#include "api/cli/maintenance_json.h"
#include "api/cli/open_store.h"
#include "api/cli/report_printer.h"
#include "api/cli/task_watcher.h"
#include "api/http/admin_client.h"

namespace partita {

namespace {

// `whose`: the store's directory, or the address of who has it.
ExitCode TellScrub(const ScrubReport& scrubbed, const std::string& whose, const StoreFlags& store,
                   Console& console) {
  Report report;
  report.title = "scrub of " + whose;
  report.Add("table_files", scrubbed.tables);
  report.Add("entries", scrubbed.entries);
  report.Add("log_segments", scrubbed.log_segments);
  report.Add("meta_values", scrubbed.meta_values,
             "the catalog, a manifest for each shard, of a backup its record");
  report.Add("read_bytes", scrubbed.bytes);
  report.Add("transient_reads", scrubbed.transient, "bad at first, good when read again");
  report.damages = scrubbed.damages;
  PrintAsAsked(store, report, console);
  if (!store.json) {
    console.out << (report.damages.empty()
                        ? "everything is sound\n"
                        : "there is damage; restore a backup, or see what 'partita repair' can keep\n");
  }
  return report.damages.empty() ? ExitCode::kOk : ExitCode::kFindings;
}

ExitCode ScrubOnServer(const StoreFlags& store, const ScrubFlags& flags, uint64_t seconds, Console& console) {
  std::string parameters;
  if (seconds > 0) parameters += "&within=" + std::to_string(seconds);
  if (flags.bytes_per_second > 0) parameters += "&rate=" + std::to_string(flags.bytes_per_second);
  if (!parameters.empty()) parameters.front() = '?';
  const Result<std::string> answer = http::RunOnAdmin(flags.admin, "/scrub" + parameters);
  if (!answer.ok()) return Fail(console, answer.status());
  const Result<ScrubReport> scrubbed = ParseScrubJson(*answer);
  if (!scrubbed.ok()) return Fail(console, scrubbed.status());
  return TellScrub(*scrubbed, flags.admin, store, console);
}

}  // namespace

ExitCode RunScrub(const StoreFlags& store, const ScrubFlags& flags, Console& console) {
  ScrubOptions options;
  if (!flags.within.empty()) {
    const std::optional<int64_t> seconds = ParseDuration(flags.within);
    if (!seconds || *seconds == 0) {
      return FailUsage(console, "--within takes a time, such as 90m, 12h or 7d; not '" + flags.within + "'");
    }
    options.period_seconds = static_cast<uint64_t>(*seconds);
  }
  if (!flags.admin.empty()) return ScrubOnServer(store, flags, options.period_seconds, console);
  Result<std::unique_ptr<Database>> database = OpenStore(store, IfNoStore::kFail, console);
  if (!database.ok()) return FailToStart(console, AdviseAdmin(database.status(), "partita scrub"));
  TaskWatcher watcher(console, "scrub");
  options.pace = watcher.Pace(flags.bytes_per_second, options.period_seconds);
  const Result<ScrubReport> scrubbed = (*database)->Scrub(options);
  watcher.Finish();
  if (!scrubbed.ok()) return CloseStore(**database, Fail(console, scrubbed.status()), console);
  return CloseStore(**database, TellScrub(*scrubbed, store.directory, store, console), console);
}

}  // namespace partita
