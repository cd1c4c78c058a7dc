#include <algorithm>
#include <filesystem>
#include <optional>

#include "api/cli/commands.h"
#include "api/cli/figures.h"
#include "api/cli/open_store.h"
#include "api/cli/report_printer.h"
#include "api/cli/task_watcher.h"
#include "api/date_time.h"

// `partita repair`: the list, and the proof that the repaired store is one.

namespace partita {

namespace {

// Intervals of keys that are printed; all are counted, and FOUND.txt has them all.
constexpr size_t kRangesShownMax = 1000;

std::string WrittenAfter(uint64_t ticks) {
  return ticks == 0 || ticks > kDateTimeTicksMax ? "" : FormatDateTime(DateTime{ticks});
}

Report ReportOf(const RepairReport& found, const std::string& directory, bool apply) {
  Report report;
  report.title = (apply ? "repair of " : "what a repair would find in ") + directory;
  report.Add("shards", found.shards);
  report.Add("table_files", found.tables);
  report.Add("entries", found.entries, "that can be read");
  report.Add("log_records", found.log_records, "that can be read, of those that no table file has");
  report.Add("damaged_files", found.damages.size());
  if (found.applied)
    report.Add("old_files", directory + "/" + found.kept_in, "remove them when nobody needs them");
  ReportTable damaged{"damaged", {"file", "shard", "becomes"}, {}};
  ReportTable lost{"lost", {"table", "keys", "written_after", "file"}, {}};
  uint64_t ranges = 0;
  for (const RepairDamage& damage : found.damages) {
    report.damages.push_back(damage.file + ": " + damage.reason);
    damaged.rows.push_back(
        {damage.file, damage.shard ? std::to_string(*damage.shard) : std::string(), damage.consequence});
    for (const RepairLostRange& range : damage.lost) {
      if (++ranges > kRangesShownMax) continue;
      lost.rows.push_back({range.table, range.text, WrittenAfter(range.after_ticks), damage.file});
    }
  }
  report.Add("lost_ranges", ranges, ranges == 0 ? "nothing is lost" : "of keys: what they had may be lost");
  if (!damaged.rows.empty()) report.tables.push_back(std::move(damaged));
  if (!lost.rows.empty()) report.tables.push_back(std::move(lost));
  return report;
}

// Of earlier repairs, which may have been killed behind their commit and so have told nobody.
void TellEarlierLists(const std::string& directory, Console& console) {
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::filesystem::path list = entry->path() / "FOUND.txt";
    if (!entry->path().filename().string().starts_with("damaged-") || !std::filesystem::exists(list, error))
      continue;
    console.err << "partita: what an earlier repair found is in " << list.string() << "\n";
  }
}

// The last line of a list.
std::string WhatToDo(const RepairReport& found, const std::string& directory) {
  if (found.damages.empty()) return "everything is sound: there is nothing to repair";
  if (!found.is_backup) return "nothing was changed; --apply repairs the store";
  return "a backup is not repaired: make another one; " + AdviceForDamagedBackup(directory);
}

// Opens the repaired store and reads all of it.
ExitCode Prove(const StoreFlags& store, Console& console) {
  Result<std::unique_ptr<Database>> database = OpenStore(store, IfNoStore::kFail, console);
  if (!database.ok()) return FailToStart(console, database.status().WithContext("after the repair"));
  TaskWatcher watcher(console, "verify");
  const Result<VerifyReport> verified = (*database)->Verify(watcher.Pace(/*bytes_per_second=*/0).progress);
  watcher.Finish();
  if (!verified.ok()) return CloseStore(**database, Fail(console, verified.status()), console);
  for (const std::string& damage : verified->damages) console.err << "partita: still: " << damage << "\n";
  const bool sound = verified->damages.empty();
  if (sound && !store.json) {
    console.out << "repaired: the store opens, and its " << FormatCount(verified->entries)
                << " entries are sound\n";
  }
  return CloseStore(**database, sound ? ExitCode::kOk : ExitCode::kFindings, console);
}

}  // namespace

ExitCode RunRepair(const StoreFlags& store, const RepairFlags& flags, Console& console) {
  if (store.directory.empty()) {
    return FailUsage(console, "which store? Name its directory with --data DIR, or set PARTITA_DATA");
  }
  if (flags.apply && store.read_only) return RefuseReadOnly(console, "--apply");
  RaiseDescriptorLimit();
  TaskWatcher watcher(console, "repair");
  RepairOptions options;
  options.pace = watcher.Pace(flags.bytes_per_second);
  options.apply = flags.apply;
  options.memory_bytes = std::max(store.memory_bytes / 2, kRepairMemoryMin);
  options.account = store.account;
  // The list before all else (F53). As JSON it is one object, which tells where the old files are, and so
  // comes at the end, whichever that is.
  bool listed = false;
  std::optional<RepairReport> to_list;
  options.found = [&](const RepairReport& findings) {
    if (store.json) {
      to_list = findings;
      return;
    }
    watcher.Finish();
    PrintReport(console.out, ReportOf(findings, store.directory, flags.apply));
    console.out << "repairing; interrupted before the end this leaves the store as it was, or repaired"
                << std::endl;
    listed = true;
  };
  const Result<RepairReport> found = Database::Repair(store.directory, options);
  watcher.Finish();
  if (!found.ok() && to_list) PrintReportJson(console.out, ReportOf(*to_list, store.directory, flags.apply));
  if (!found.ok()) return FailToStart(console, found.status());
  const Report report = ReportOf(*found, store.directory, flags.apply);
  if (store.json) {
    PrintReportJson(console.out, report);
  } else if (!listed) {
    PrintReport(console.out, report);
  } else {
    console.out << "the old files are in " << store.directory << "/" << found->kept_in
                << "; remove them when nobody needs them\n";
  }
  if (found->applied) return Prove(store, console);
  if (found->damages.empty()) TellEarlierLists(store.directory, console);
  if (!store.json) console.out << WhatToDo(*found, store.directory) << "\n";
  return found->damages.empty() ? ExitCode::kOk : ExitCode::kFindings;
}

}  // namespace partita
