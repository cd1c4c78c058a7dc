#include <filesystem>

#include "api/cli/commands.h"
#include "api/cli/figures.h"
#include "api/cli/maintenance_json.h"
#include "api/cli/open_store.h"
#include "api/cli/report_printer.h"
#include "api/cli/task_watcher.h"
#include "api/http/admin_client.h"

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

// `whose`: the store's directory, or the address of who has it.
ExitCode TellBackup(const BackupReport& done, const std::string& whose, const StoreFlags& store,
                    const BackupFlags& flags, Console& console) {
  Print(done, "backup of " + whose + " in " + flags.directory, store, console);
  for (const std::string& damage : done.base_damages) {
    console.err << "partita: the earlier backup '" << flags.base << "' is damaged: " << damage
                << "; this one is complete, with the store's own\n";
  }
  return done.base_damages.empty() ? ExitCode::kOk : ExitCode::kFindings;
}

// The server's own directory may be another one.
std::string DirectoryParameter(const char* name, const std::string& directory) {
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::absolute(directory, error).lexically_normal();
  return std::string(name) + "=" + http::EncodeParameter(error ? directory : whole.string());
}

ExitCode BackUpOnServer(const StoreFlags& store, const BackupFlags& flags, Console& console) {
  std::string target = "/backup?" + DirectoryParameter("to", flags.directory);
  if (!flags.base.empty()) target += "&" + DirectoryParameter("base", flags.base);
  if (flags.copy) target += "&copy=1";
  if (flags.bytes_per_second > 0) target += "&rate=" + std::to_string(flags.bytes_per_second);
  const Result<std::string> answer = http::RunOnAdmin(flags.admin, target);
  if (!answer.ok()) return NotMade(console, answer.status());
  const Result<BackupReport> done = ParseBackupJson(*answer);
  if (!done.ok()) return NotMade(console, done.status());
  return TellBackup(*done, flags.admin, store, flags, console);
}

}  // namespace

ExitCode RunBackup(const StoreFlags& store, const BackupFlags& flags, Console& console) {
  if (!flags.admin.empty()) return BackUpOnServer(store, flags, console);
  Result<std::unique_ptr<Database>> database = OpenStore(store, IfNoStore::kFail, console);
  if (!database.ok())
    return NotMade(console, AdviseAdmin(database.status(), "partita backup " + flags.directory));
  TaskWatcher watcher(console, "backup");
  Result<BackupReport> done = (*database)->Backup(flags.directory, OptionsOf(flags, &watcher));
  watcher.Finish();
  if (!done.ok()) return CloseStore(**database, NotMade(console, done.status()), console);
  const ExitCode told = TellBackup(*done, store.directory, store, flags, console);
  (void)CloseStore(**database, told, console);  // The backup is there, however its store closes.
  return told;
}

ExitCode RunRestore(const StoreFlags& store, const BackupFlags& flags, Console& console) {
  if (store.read_only) return RefuseReadOnly(console, "restore");
  if (store.directory.empty()) return FailUsage(console, "where to? Name a new directory with --data DIR");
  RaiseDescriptorLimit();
  TaskWatcher watcher(console, "restore");
  Result<BackupReport> done = Database::Restore(flags.directory, store.directory, OptionsOf(flags, &watcher));
  watcher.Finish();
  if (!done.ok()) {
    // What is there already is no damage.
    const bool is_damage = done.code() == Code::kCorruption;
    const ExitCode code = is_damage ? Fail(console, done.status()) : NotMade(console, done.status());
    if (is_damage)
      console.err << "partita: restore another backup; " << AdviceForDamagedBackup(flags.directory) << "\n";
    return code;
  }
  Print(*done, "restored " + flags.directory + " to " + store.directory, store, console);
  return ExitCode::kOk;
}

}  // namespace partita
