#include "test/power/image_check.h"

#include <sys/stat.h>

#include <filesystem>
#include <memory>

#include "engine/backup.h"
#include "engine/world.h"

namespace partita {

namespace {

struct OpenedImage {
  Runtime* runtime = nullptr;
  Store* store = nullptr;
};

Result<OpenedImage> OpenImage(const LoadPlan& plan, const StoreOptions& options) {
  const WorldOptions world{plan.directory, true, plan.shards, plan.backend};
  PARTITA_ASSIGN(std::unique_ptr<Runtime> runtime, OpenWorld(world));
  Runtime* kept = runtime.release();
  PARTITA_ASSIGN(std::unique_ptr<Store> store, kept->RunToEnd(Store::Open(*kept, options)));
  return OpenedImage{kept, store.release()};
}

// "" or what is wrong.
std::string LookAtStore(OpenedImage opened, const Ledger& ledger, uint64_t cut, bool close) {
  auto [runtime, store] = opened;
  std::string wrong = ledger.Check(*store, cut);
  if (!wrong.empty()) return wrong;
  const Result<Store::VerifyResult> verified = runtime->RunToEnd(store->Verify(nullptr));
  if (!verified.ok()) return "verify: " + verified.status().ToString();
  if (!verified->damages.empty()) return "verify: " + verified->damages.front();
  // It takes writes, and what was there stays so.
  const Result<TableDescriptor> made = runtime->RunToEnd(
      store->CreateTable({.account = kLoadAccount, .name = "after", .raw = true, .split_partitions = {}}));
  if (!made.ok() && made.code() != Code::kAlreadyExists) return "create table: " + made.status().ToString();
  if (!close) return "";  // It ends like a killed process: what comes now is a second loss of power.
  const Status closed = runtime->RunToEnd(store->Close());
  return closed.ok() ? "" : "close: " + closed.ToString();
}

// What has a backup's name is one, whole (F68). "" or what is wrong.
std::string LookAtBackups(const LoadPlan& plan, const Ledger& ledger, uint64_t cut,
                          uint64_t* restored_count) {
  for (const Ledger::Backup& backup : ledger.BackupsAt(cut)) {
    const std::string directory = BackupOf(plan.directory, backup.number);
    struct stat there;
    if (stat(directory.c_str(), &there) != 0) {
      if (backup.must) return "backup " + std::to_string(backup.number) + " is gone";
      continue;
    }
    LoadPlan restored = plan;
    restored.directory = directory + ".restored";
    std::error_code failed;
    std::filesystem::remove_all(restored.directory, failed);  // Of before a second loss of power.
    if (failed) return "removal of a restored store: " + failed.message();
    const Result<BackupReport> made = RestoreStore(directory, restored.directory, BackupOptions());
    if (!made.ok()) return "restore: " + made.status().ToString();
    StoreOptions options = LoadStoreOptions(restored);
    options.create_if_missing = false;
    const Result<OpenedImage> opened = OpenImage(restored, options);
    if (!opened.ok()) return "a restored store does not open: " + opened.status().ToString();
    const std::string wrong = ledger.CheckBackup(*opened->store, backup.number);
    if (!wrong.empty()) return wrong;
    const Status closed = opened->runtime->RunToEnd(opened->store->Close());
    if (!closed.ok()) return "close of a restored store: " + closed.ToString();
    ++*restored_count;
    // The next one needs its room.
    std::filesystem::remove_all(restored.directory, failed);
    if (failed) return "removal of a restored store: " + failed.message();
  }
  return "";
}

}  // namespace

ImageFindings LookAt(const LoadPlan& plan, const Ledger& ledger, uint64_t cut, bool close) {
  StoreOptions options = LoadStoreOptions(plan);
  options.create_if_missing = !ledger.StoreExists(cut);  // A lost store must not pass for a new one (F69).
  const Result<OpenedImage> opened = OpenImage(plan, options);
  if (!opened.ok()) return {.wrong = "open: " + opened.status().ToString()};
  ImageFindings found{.wrong = LookAtStore(*opened, ledger, cut, close)};
  if (found.wrong.empty()) found.wrong = LookAtBackups(plan, ledger, cut, &found.restored);
  return found;
}

ImageFindings LookThroughFaults(const LoadPlan& plan, const Ledger& ledger, uint64_t cut) {
  // What cannot be read must not pass for what is not there: so it may make a store (F69).
  const Result<OpenedImage> opened = OpenImage(plan, LoadStoreOptions(plan));
  if (!opened.ok()) return {.wrong = {}, .refused = 1};
  ImageFindings found;
  for (int pass = 0; pass < 2; ++pass) {
    const std::string wrong = ledger.CheckWhatIsRead(*opened->store, cut, &found.refused);
    if (!wrong.empty()) return {.wrong = "while reads fail: " + wrong};
    Runtime& runtime = *opened->runtime;
    const Status calls[] = {runtime.RunToEnd(opened->store->FlushMemtables()),
                            runtime.RunToEnd(opened->store->CompactAll()),
                            runtime.RunToEnd(opened->store->Verify(nullptr)).status()};
    for (const Status& status : calls) found.refused += status.ok() ? 0 : 1;
  }
  return found;
}

}  // namespace partita
