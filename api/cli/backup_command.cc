#include "api/cli/commands.h"
#include "api/cli/figures.h"
#include "api/cli/open_store.h"
#include "api/cli/report_printer.h"
#include "api/cli/task_watcher.h"

// `partita backup` and `partita restore`.

namespace partita {

namespace {

BackupOptions OptionsOf(const BackupFlags& flags, TaskWatcher* watcher) {
  BackupOptions options;
  options.pace = watcher->Pace(flags.bytes_per_second);
  options.sharing = flags.copy ? FileSharing::kNever : FileSharing::kWherePossible;
  options.base = flags.base;
  return options;
}

void Print(const BackupReport& done, const std::string& title, const StoreFlags& store, Console& console) {
  Report report;
  report.title = title;
  report.Add("table_files", done.files);
  report.Add("bytes", done.bytes);
  report.Add("shared_bytes", done.bytes_shared,
             done.bytes_shared > 0
                 ? "links to files of this file system: the same blocks; --copy makes others"
                 : "");
  report.Add("entries", done.entries, "each read back and verified");
  PrintAsAsked(store, report, console);
}

// Exit code 1 tells of a backup that was made (commands.h).
ExitCode NotMade(Console& console, const Status& why) {
  const ExitCode code = Fail(console, why);
  return code == ExitCode::kFindings ? ExitCode::kFailed : code;
}

}  // namespace

ExitCode RunBackup(const StoreFlags& store, const BackupFlags& flags, Console& console) {
  Result<std::unique_ptr<Database>> database = OpenStore(store, IfNoStore::kFail);
  if (!database.ok()) return NotMade(console, database.status());
  TaskWatcher watcher(console, "backup");
  Result<BackupReport> done = (*database)->Backup(flags.directory, OptionsOf(flags, &watcher));
  watcher.Finish();
  if (!done.ok()) return CloseStore(**database, NotMade(console, done.status()), console);
  Print(*done, "backup of " + store.directory + " in " + flags.directory, store, console);
  for (const std::string& damage : done->base_damages) {
    console.err << "partita: the earlier backup '" << flags.base << "' is damaged: " << damage
                << "; this one is complete, with the store's own\n";
  }
  const bool sound = done->base_damages.empty();
  return CloseStore(**database, sound ? ExitCode::kOk : ExitCode::kFindings, console);
}

ExitCode RunRestore(const StoreFlags& store, const BackupFlags& flags, Console& console) {
  if (store.directory.empty()) return FailUsage(console, "where to? Name a new directory with --data DIR");
  RaiseDescriptorLimit();
  TaskWatcher watcher(console, "restore");
  Result<BackupReport> done = Database::Restore(flags.directory, store.directory, OptionsOf(flags, &watcher));
  watcher.Finish();
  if (!done.ok()) {
    const ExitCode code = FailToStart(console, done.status());
    if (done.code() == Code::kCorruption)
      console.err << "partita: restore another backup; " << AdviceForDamagedBackup(flags.directory) << "\n";
    return code;
  }
  Print(*done, "restored " + flags.directory + " to " + store.directory, store, console);
  return ExitCode::kOk;
}

}  // namespace partita
