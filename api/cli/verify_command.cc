#include <chrono>

#include "api/cli/commands.h"
#include "api/cli/figures.h"
#include "api/cli/open_store.h"
#include "api/cli/report_printer.h"
#include "api/cli/task_watcher.h"

namespace partita {

namespace {

Report Describe(const VerifyReport& verified, const OpenReport& opened, const std::string& directory) {
  Report report;
  report.title = "verify of " + directory;
  report.Add("table_files", verified.tables_read);
  report.Add("entries", verified.entries);
  report.Add("read_bytes", verified.bytes);
  report.Add("log_records", opened.records_replayed, "replayed, and so checked, when the store was opened");
  report.Add("log_torn_bytes", opened.torn_bytes,
             "at the log's end: of a write that did not finish or was damaged later");
  report.Add("log_stranded_records", opened.records_stranded,
             "of level process, lost behind others that are gone: power was lost, or the log is damaged");
  report.damages = verified.damages;
  return report;
}

// As a line begins with it, and as an exit code.
struct Verdict {
  const char* text;
  ExitCode code;
};

Verdict VerdictOf(const VerifyReport& verified, const OpenReport& opened) {
  if (!verified.damages.empty()) return {"there is damage", ExitCode::kFindings};
  if (opened.records_stranded > 0)
    return {"what is there is sound, but writes are lost", ExitCode::kFindings};
  return {"everything is sound", ExitCode::kOk};
}

}  // namespace

ExitCode RunVerify(const StoreFlags& store, Console& console) {
  Result<std::unique_ptr<Database>> database = OpenStore(store, IfNoStore::kFail, console);
  if (!database.ok()) return FailToStart(console, database.status());
  const auto started = std::chrono::steady_clock::now();
  TaskWatcher watcher(console, "verify");
  Result<VerifyReport> verified = (*database)->Verify(watcher.Pace(/*bytes_per_second=*/0).progress);
  watcher.Finish();
  if (!verified.ok()) return CloseStore(**database, Fail(console, verified.status()), console);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  const Report report = Describe(*verified, (*database)->open_report(), store.directory);
  PrintAsAsked(store, report, console);
  const Verdict verdict = VerdictOf(*verified, (*database)->open_report());
  if (!store.json) console.out << verdict.text << "; read in " << FormatSeconds(seconds) << "\n";
  return CloseStore(**database, verdict.code, console);
}

}  // namespace partita
