#include "api/database_impl.h"
#include "engine/backup.h"

// What is done with a store's files as a whole: backups, and stores made from them.

namespace partita {

namespace {

Status CheckMayWait() {
  if (Executor::Current() == nullptr) return Status();
  return Status::InvalidArgument("a call that waits was made from a callback");
}

}  // namespace

Result<ScrubReport> Database::Scrub(const ScrubOptions& options) {
  return impl_->Run(impl_->store->Scrub(options));
}

Result<BackupReport> Database::Backup(const std::string& directory, const BackupOptions& options) {
  PARTITA_TRY(CheckMayWait());
  return BackUpStore(*impl_->runtime, *impl_->store, directory, options);
}

Result<BackupReport> Database::Restore(const std::string& backup, const std::string& directory,
                                       const BackupOptions& options) {
  PARTITA_TRY(CheckMayWait());
  return RestoreStore(backup, directory, options);
}

}  // namespace partita
