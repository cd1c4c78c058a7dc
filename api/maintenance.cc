#include "api/async_database.h"
#include "api/database_impl.h"
#include "api/names.h"
#include "engine/backup.h"
#include "engine/own_thread.h"
#include "engine/repair.h"

// What is done with a store's files as a whole: backups, stores made from them, repairs.

namespace partita {

Status CheckMayWait() { return Executor::Current() == nullptr ? Status() : WaitsInCallback(); }

Result<ScrubReport> Database::Scrub(const ScrubOptions& options) {
  PARTITA_TRY(impl_->CheckUse());
  return impl_->Run(impl_->store->Scrub(options));
}

namespace {

Status CheckBackupOptions(const BackupOptions& options) {
  if (options.sharing <= FileSharing::kNever) return Status();
  return Status::InvalidArgument("sharing is " + std::to_string(static_cast<int>(options.sharing)) +
                                 "; it must be kWherePossible or kNever");
}

}  // namespace

Result<BackupReport> Database::Backup(const std::string& directory, const BackupOptions& options) {
  PARTITA_TRY(CheckMayWait());
  PARTITA_TRY(impl_->CheckUse());
  PARTITA_TRY(CheckBackupOptions(options));
  return impl_->RunAtWorkersRank([&]() -> Result<BackupReport> {
    return BackUpStore(*impl_->runtime, *impl_->store, directory, options);
  });
}

Result<BackupReport> Database::Restore(const std::string& backup, const std::string& directory,
                                       const BackupOptions& options) {
  PARTITA_TRY(CheckMayWait());
  PARTITA_TRY(CheckBackupOptions(options));
  return RestoreStore(backup, directory, options);
}

Task<Result<ScrubReport>> AsyncDatabase::Scrub(ScrubOptions options) const {
  auto scrub = [&]() -> Result<ScrubReport> {
    PARTITA_TRY(impl_->CheckUse());
    return impl_->Run(impl_->store->Scrub(options));
  };
  co_return co_await OnOwnThread(scrub);
}

Task<Result<BackupReport>> AsyncDatabase::Backup(std::string directory, BackupOptions options) const {
  auto back_up = [&]() -> Result<BackupReport> {
    PARTITA_TRY(impl_->CheckUse());
    return BackUpStore(*impl_->runtime, *impl_->store, directory, options);
  };
  co_return co_await OnOwnThread(back_up);
}

Result<RepairReport> Database::Repair(const std::string& directory, const RepairOptions& options) {
  PARTITA_TRY(CheckMayWait());
  if (options.memory_bytes < kRepairMemoryMin) {
    return Status::InvalidArgument("memory_bytes is " + std::to_string(options.memory_bytes) +
                                   "; a repair needs at least 160 MiB");
  }
  const std::string account = options.account.empty() ? Options().account : options.account;
  PARTITA_TRY(CheckAccountName(account));  // Tables of another one could be opened by nobody.
  Result<RepairReport> report = RepairStoreIn(directory, account, ExtractZones, options);
  if (!report.ok()) return report.status().WithContext("repair of '" + directory + "'");
  return report;
}

}  // namespace partita
