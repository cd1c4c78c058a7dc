#include <functional>

#include "api/cli/commands.h"
#include "api/cli/csv.h"
#include "api/cli/figures.h"
#include "api/cli/jsonl.h"
#include "api/cli/open_store.h"
#include "api/cli/output_file.h"
#include "api/cli/progress.h"
#include "api/cli/record_source.h"

// partita export: pages of a scan, appended to an OutputFile.
//
// CSV needs its columns before its first record, so the table is read twice; an entity that changes in
// between and no longer fits the columns is told as a bad record.

namespace partita {

namespace {

constexpr uint32_t kExportPage = 1000;

class ExportCommand {
 public:
  ExportCommand(const StoreFlags& store, const ExportFlags& flags, Console& console)
      : store_flags_(store), flags_(flags), console_(console), target_(flags.file, console) {}

  ExitCode Run() {
    Status done = Prepare();
    if (!done.ok() && database_ == nullptr) return FailToStart(console_, done);
    if (done.ok()) done = Export();
    const bool findings = bad_ > 0 || skipped_ > 0;
    ExitCode code = done.ok() ? (findings ? ExitCode::kFindings : ExitCode::kOk) : Fail(console_, done);
    return database_ == nullptr ? code : CloseStore(*database_, code, console_);
  }

 private:
  Status Prepare() {
    PARTITA_ASSIGN(format_, ChooseExportFormat(flags_.format, flags_.file));
    PARTITA_ASSIGN(database_, OpenStore(store_flags_, IfNoStore::kFail, console_));
    return Status();
  }

  Status Export() {
    PARTITA_ASSIGN(Table table, OpenTableOf(*database_, flags_.table));
    // A count cannot be stopped half way.
    if (format_ != RecordFormat::kCsv && console_.err_is_terminal && !flags_.skip_damage) {
      PARTITA_ASSIGN(total_, table.Count({}));
    }
    console_.interrupts.Arm();
    if (format_ == RecordFormat::kCsv) PARTITA_TRY(LearnColumns(table));
    PARTITA_TRY(target_.Open());
    if (format_ == RecordFormat::kCsv) PARTITA_TRY(target_.Write(columns_.HeaderLine()));
    Progress progress(console_, "export", Progress::Unit::kRecords, total_);
    PARTITA_TRY(EachPage(table, [this, &progress](const Page& page) { return WritePage(page, progress); }));
    PARTITA_TRY(target_.Finish());
    progress.Finish();
    console_.err << "exported " << FormatCount(exported_) << " records, " << FormatCount(bad_) << " bad, in "
                 << FormatSeconds(progress.seconds()) << "\n";
    if (flags_.format.empty() && HasUnknownEnding(flags_.file)) {
      console_.err << "partita: the ending of '" << flags_.file
                   << "' tells no format: it has JSON lines; --format csv writes the other one\n";
    }
    return Status();
  }

  Status LearnColumns(const Table& table) {
    Progress progress(console_, "columns", Progress::Unit::kRecords, 0);
    return EachPage(table, [this, &progress](const Page& page) {
      for (const Entity& entity : page.entities) columns_.Observe(entity);
      total_ += page.entities.size();
      progress.Update(total_, total_);
      return Status();
    });
  }

  Status EachPage(const Table& table, const std::function<Status(const Page&)>& handle) {
    ScanOptions options;
    options.limit = kExportPage;
    options.skip_damage = flags_.skip_damage;
    do {
      if (console_.interrupts.Requested()) return Interrupted();
      PARTITA_ASSIGN(Page page, table.Scan(options));
      PARTITA_TRY(handle(page));
      options.continuation = page.continuation;
    } while (!options.continuation.empty());
    return Status();
  }

  // What went to a device, a pipe or the console is not taken back.
  Status Interrupted() const {
    if (target_.IsReplaced() || exported_ == 0) return Status::Cancelled("interrupted; nothing was exported");
    return Status::Cancelled("interrupted; " + FormatCount(exported_) +
                             " records were written, the rest was not");
  }

  Status WritePage(const Page& page, Progress& progress) {
    text_.clear();
    for (const SkippedKeys& skipped : page.skipped) {
      ++skipped_;
      progress.Message("skipped: " + skipped.keys + ": " + skipped.why);
    }
    for (const Entity& entity : page.entities) {
      if (format_ == RecordFormat::kCsv) {
        const Status appended = AppendCsvRecord(&text_, columns_, entity);
        if (!appended.ok()) {
          ++bad_;
          progress.Message("changed while it was exported: '" + entity.partition_key() + "' '" +
                           entity.row_key() + "': " + appended.message());
          continue;
        }
      } else {
        AppendJsonLine(&text_, entity);
      }
      ++exported_;
    }
    progress.Update(exported_, exported_);
    return target_.Write(text_);
  }

  const StoreFlags& store_flags_;
  const ExportFlags& flags_;
  Console& console_;
  RecordFormat format_ = RecordFormat::kJsonLines;
  std::unique_ptr<Database> database_;
  OutputFile target_;
  CsvColumns columns_;
  std::string text_;
  uint64_t total_ = 0, exported_ = 0, bad_ = 0, skipped_ = 0;
};

}  // namespace

ExitCode RunExport(const StoreFlags& store, const ExportFlags& flags, Console& console) {
  return ExportCommand(store, flags, console).Run();
}

}  // namespace partita
