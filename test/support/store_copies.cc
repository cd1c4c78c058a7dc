#include "engine/backup.h"
#include "engine/base/user_key.h"
#include "engine/io/runtime_over.h"
#include "test/support/row_collector.h"
#include "test/support/store_workload.h"
#include "test/support/subdirectory.h"

// Backups, restores and scrubs in the life of a store. Copies lie beside the store on its disk.

namespace partita {

namespace {}  // namespace

Task<Status> StoreLife::BackUp() {
  const size_t index = world_.copies.size();
  const std::string directory = "backup-" + std::to_string(++world_.directories);
  const bool restore_now = Chance(60);
  StoreModel::CopyClaim claim = world_.model.ClaimCopy();
  std::array<std::optional<TableId>, StoreWorld::kTables> before;
  for (size_t i = 0; i < StoreWorld::kTables; ++i) {
    if (world_.tables[i].pending == StoreWorld::Table::Pending::kNone) before[i] = world_.tables[i].id;
  }
  world_.copies.push_back({directory, false, 0, {}});
  if (options_.trace) Tell("keeper: back up to " + directory);
  Subdirectory to(runtime_.files(), directory);
  backing_up_ = true;
  PARTITA_CO_TRY(co_await to.Make());
  Result<BackupReport> made = co_await store_->Backup(to, nullptr, BackupOptions());
  if (crashed()) co_return Status();
  backing_up_ = false;
  if (options_.trace) Tell("keeper: " + directory + ": " + made.status().ToString());
  if (!made.ok()) co_return made.status();
  ++world_.counts.backups;
  world_.copies[index].complete = true;
  world_.copies[index].created_ticks = made->created_ticks;
  for (const std::string& key : world_.model.Keys()) {
    for (size_t i = 0; i < StoreWorld::kTables; ++i) {
      if (before[i] && Live(i, *before[i]) && key.starts_with(TableLowerBound(*before[i])))
        world_.model.AddToClaim(key, &claim);
    }
  }
  if (restore_now) co_await RestoreOnce(index, &claim);
  co_return Status();
}

// Makes a store of a copy, reads all of it, and removes it again. With a claim what it holds is judged by the
// model; else it is held against what it showed before.
Task<void> StoreLife::RestoreOnce(size_t index, const StoreModel::CopyClaim* claim) {
  const StoreWorld::Copy copy = world_.copies[index];
  const std::string directory = "restored-" + std::to_string(++world_.directories);
  const uint64_t random = runtime_.RandomU64();
  Subdirectory from(runtime_.files(), copy.directory);
  Subdirectory to(runtime_.files(), directory);
  restoring_ = true;
  Result<BackupReport> restored = Status::IoError("no directory");
  Status directory_made = co_await to.Make();
  if (directory_made.ok()) {
    restored = co_await RestoreBackup(runtime_.clock(), random, from, to, BackupOptions());
  }
  if (crashed()) co_return;
  restoring_ = false;
  if (options_.trace) Tell("keeper: restore " + copy.directory + ": " + restored.status().ToString());
  if (!restored.ok()) {
    // An unfinished copy; or the wall clock was set back behind a finished one (F17).
    const bool clock_is_behind = runtime_.clock().WallTicks() <= copy.created_ticks + kTicksPerSecond;
    const bool refused = restored.code() == Code::kInvalidArgument && (!copy.complete || clock_is_behind);
    if (!refused && !faulty_) Violation("restore of " + copy.directory + ": " + restored.status().ToString());
    if (refused && !copy.complete) world_.rare.Note(RareState::kUnfinishedCopyRefused);
    co_return;
  }
  ++world_.counts.restores;
  RuntimeOver there(runtime_, to);
  StoreOptions options;
  options.memory_bytes = 64u << 20;
  options.shards = plan_.shards;
  options.log_segment_bytes = 32u << 10;
  options.log_tail_bytes = 16u << 10;
  options.reserve_bytes = 256u << 10;
  Result<std::unique_ptr<Store>> opened = co_await Store::Open(there, options);
  if (crashed() && opened.ok()) (void)co_await (*opened)->Close();
  if (crashed()) co_return;
  if (!opened.ok()) {
    if (!faulty_) Violation("a restored store does not open: " + opened.status().ToString());
    co_return;
  }
  StoreModel::Rows rows;
  const bool whole = co_await ReadCopy(opened->get(), &rows);
  Status closed = co_await (*opened)->Close();
  if (crashed() || !whole) co_return;
  if (!closed.ok() && !faulty_) Violation("close of a restored store: " + closed.ToString());
  StoreWorld::Copy& known = world_.copies[index];
  if (claim != nullptr) {
    world_.model.SeenCopy(*claim, rows);
  } else {
    world_.rare.Note(RareState::kCopyRestoredLater);
  }
  auto same = [](const StoreModel::Rows& a, const StoreModel::Rows& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
      return x.first == y.first && x.second.version == y.second.version &&
             x.second.content == y.second.content;
    });
  };
  if (known.rows && !same(*known.rows, rows))
    Violation(copy.directory + " holds other rows than before (F68)");
  known.rows = std::move(rows);
  co_await RemoveAll(directory);
}

Task<bool> StoreLife::ReadCopy(Store* copy, StoreModel::Rows* rows) {
  for (const TablePtr& table : copy->ListTables("default")) {
    ScanRequest request;
    request.lower = TableLowerBound(table->id);
    request.upper = TableUpperBound(table->id);
    for (bool done = false; !done;) {
      RowCollector sink(rows);
      Result<ScanAnswer> answer = co_await copy->Scan(request, &sink);
      if (crashed()) co_return false;
      if (!answer.ok()) {
        if (!faulty_) Violation("scan of a restored store: " + answer.status().ToString());
        co_return false;
      }
      done = answer->done;
      request.lower = answer->next_key;
    }
  }
  co_return true;
}

Task<Status> StoreLife::ScrubOnce() {
  if (options_.trace) Tell("keeper: scrub");
  Result<ScrubReport> report = co_await store_->Scrub(ScrubOptions());
  if (crashed()) co_return Status();
  if (!report.ok()) co_return report.status();
  ++world_.counts.scrubs;
  for (const std::string& damage : report->damages) {
    if (!faulty_) Violation("scrub: " + damage);
  }
  co_return Status();
}

Task<void> StoreLife::RemoveAll(std::string directory) {
  for (const std::string& path : runtime_.disk().ListFiles(directory + "/")) {
    (void)co_await runtime_.files().Remove(path);
  }
}

}  // namespace partita
