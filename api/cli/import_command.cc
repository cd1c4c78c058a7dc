#include <algorithm>
#include <chrono>
#include <filesystem>

#include "api/cli/commands.h"
#include "api/cli/debian_index.h"
#include "api/cli/figures.h"
#include "api/cli/import_checkpoint.h"
#include "api/cli/import_loop.h"
#include "api/cli/open_store.h"
#include "api/cli/record_source.h"
#include "api/names.h"

// partita import: reader -> pipeline -> table, with a checkpoint now and then.
//
// A checkpoint must not run ahead of the disk, so it is taken after a Barrier: then everything before
// its offset is durable whatever the durability of the writes (F8).

namespace partita {

namespace {

constexpr double kCheckpointSeconds = 5;
// Of --memory: half of what calls may hold (Table::WriteAsync), beyond which they would be told kBusy.
constexpr uint64_t kMemoryShareInFlight = 32;

class ImportCommand {
 public:
  ImportCommand(const StoreFlags& store, const ImportFlags& flags, Console& console)
      : store_flags_(store), flags_(flags), console_(console) {}

  ExitCode Run() {
    const Status prepared = Prepare();
    if (!prepared.ok() && database_ == nullptr) return FailToStart(console_, prepared);
    // That a table does not exist is an answer, unlike a store or file that is not there.
    if (!prepared.ok()) return Finish(Fail(console_, prepared));
    return Finish(RunPipeline());
  }

 private:
  ExitCode RunPipeline() {
    const uint64_t total = source_->size();
    Progress progress(console_, "import", Progress::Unit::kBytes, total);
    progress.StartAt(start_.offset, start_.imported + start_.bad);
    ImportPipeline::Options options;
    options.action = action_;
    options.write.durability = store_flags_.durability.value_or(Durability::kTableDefault);
    options.strict = flags_.strict;
    options.accept_equal = flags_.resume;
    options.stop = [this] { return console_.interrupts.Requested(); };
    options.bytes_max = std::min<size_t>(options.bytes_max, store_flags_.memory_bytes / kMemoryShareInFlight);
    ImportPipeline pipeline(*database_, *table_, options, start_);
    pipeline_ = &pipeline;
    const ImportOutcome outcome = Import(pipeline, progress);
    return Conclude(outcome, progress.seconds());
  }

  // Opens everything; nothing is written to the table yet.
  Status Prepare() {
    PARTITA_ASSIGN(action_, ParseWriteMode(flags_.mode));
    PARTITA_TRY(CheckTableName(flags_.table));
    PARTITA_ASSIGN(format_, ChooseFormat(flags_.format, flags_.file));
    PARTITA_ASSIGN(source_, RecordSource::Open(flags_.file, format_, console_.interrupts.Descriptor()));
    if (flags_.resume && !source_->resumable()) {
      return Status::InvalidArgument("'" + flags_.file + "' cannot be resumed: it is not a regular file");
    }
    Result<std::optional<ImportCheckpoint>> found = std::optional<ImportCheckpoint>();
    if (source_->resumable()) {
      // As the store was left: an opening would let an earlier state pass for a later one.
      const auto left = OriginOfTable(store_flags_.directory, AccountOf(store_flags_), flags_.table);
      if (left.ok()) origin_ = *left;
      found = LoadCheckpoint(flags_.file, CheckpointAt({}));
      if (flags_.resume && !found.ok()) return found.status();
    }
    const IfNoStore if_no_store = flags_.create ? IfNoStore::kCreate : IfNoStore::kFail;
    PARTITA_ASSIGN(database_, OpenStore(store_flags_, if_no_store, console_));
    PARTITA_TRY(OpenTargetTable());
    if (!source_->resumable()) return Status();
    PARTITA_ASSIGN(origin_, OriginOfTable(store_flags_.directory, AccountOf(store_flags_), flags_.table));
    return FindStart(found);
  }

  Status OpenTargetTable() {
    Result<Table> table = OpenTableOf(*database_, flags_.table);
    if (!table.ok() && table.code() == Code::kNotFound && flags_.create) {
      const bool is_first = database_->ListTables().empty();
      table = database_->CreateTable(
          flags_.table, {.durability = store_flags_.durability.value_or(Durability::kTableDefault)});
      if (table.ok() && is_first) TellOfNewAccount(*database_, store_flags_, console_);
    } else if (!table.ok() && table.code() == Code::kNotFound) {
      return Status::NotFound(table.status().message() + "; --create makes it");
    }
    if (!table.ok()) return table.status();
    table_.emplace(std::move(table).value());
    return Status();
  }

  ImportCheckpoint CheckpointAt(const ImportPosition& position) const {
    std::error_code error;
    const std::string store =
        std::filesystem::absolute(store_flags_.directory, error).lexically_normal().string();
    return {.table = flags_.table,
            .store = store,
            .origin = origin_,
            .account = AccountOf(store_flags_),
            .mode = flags_.mode,
            .format = std::string(FormatName(format_)),
            .position = position};
  }

  // REQUIRES: it can be resumed.
  Status FindStart(const Result<std::optional<ImportCheckpoint>>& found) {
    // Behind what was read when it was opened, as a line of column names.
    start_.offset = source_->reader().resume_offset();
    start_.line = source_->reader().resume_line();
    if (!flags_.resume) {
      if (!found.ok() || found->has_value()) {
        console_.err << "partita: importing from the start; '" << CheckpointPath(flags_.file)
                     << "' of an interrupted import is removed ("
                     << (found.ok() ? "--resume would go on from it" : found.status().message()) << ")\n";
        // Now: should this one end without a checkpoint of its own, that one must not pass for it.
        PARTITA_TRY(RemoveCheckpoint(flags_.file));
      }
      return Status();
    }
    if (!found->has_value()) {
      console_.err << "partita: there is no '" << CheckpointPath(flags_.file)
                   << "': importing from the start\n";
      return Status();
    }
    start_ = (*found)->position;
    kept_line_ = start_.line;
    PARTITA_TRY(source_->reader().SkipTo(start_.offset, start_.line));
    console_.err << "partita: going on at line " << start_.line << "\n";
    return Status();
  }

  ImportOutcome Import(ImportPipeline& pipeline, Progress& progress) {
    console_.interrupts.Arm();
    ImportLoopOptions options;
    options.strict = flags_.strict;
    options.errors_max = flags_.errors_max;
    options.stop = [this] { return console_.interrupts.Requested(); };
    options.now_and_then = [this, &progress] { return CheckpointIfDue(progress); };
    return ImportRecords(source_->reader(), pipeline, progress, options);
  }

  Status CheckpointIfDue(Progress& progress) {
    if (!source_->resumable() || checkpoint_failed_) return Status();
    const double now = progress.seconds();
    const uint64_t offset = pipeline_->position().offset;
    if (offset - checkpoint_offset_ < flags_.checkpoint_bytes &&
        now - checkpoint_time_ < kCheckpointSeconds) {
      return Status();
    }
    checkpoint_time_ = now;
    return SaveCheckpointNow();
  }

  // A failing barrier is the store's failure and ends the import; a checkpoint that cannot be written
  // is told once.
  Status SaveCheckpointNow() {
    const ImportPosition position = pipeline_->position();
    checkpoint_offset_ = position.offset;
    PARTITA_TRY(database_->Barrier());
    const Status saved = SaveCheckpoint(flags_.file, CheckpointAt(position));
    if (!saved.ok()) {
      checkpoint_failed_ = true;
      console_.err << "partita: this import cannot be resumed"
                   << (kept_line_ == 0 ? "" : " but from line " + std::to_string(kept_line_)) << ": "
                   << saved.message() << "\n";
    } else {
      kept_line_ = position.line;
    }
    return Status();
  }

  // How to go on, when the import did not reach the end.
  std::string Advice() {
    if (!source_->resumable()) return "";
    // There is nothing to go on from.
    if (kept_line_ == 0 && pipeline_->position().offset == start_.offset) return "";
    if (!checkpoint_failed_) {
      const Status saved = SaveCheckpointNow();
      if (!saved.ok()) checkpoint_failed_ = true;
    }
    if (checkpoint_failed_ && kept_line_ == 0) return "; import again from the start";
    if (checkpoint_failed_)
      return "; the same command with --resume goes on at line " + std::to_string(kept_line_);
    return "; everything before line " + std::to_string(pipeline_->position().line) +
           " is done, the same command with --resume goes on there";
  }

  ExitCode Conclude(const ImportOutcome& outcome, double seconds) {
    Status end;
    if (outcome.end == ImportEnd::kFailed) end = outcome.failure;
    if (outcome.end == ImportEnd::kStopped) end = Status::Cancelled("interrupted");
    if (outcome.end == ImportEnd::kStrict)
      end = Status::Cancelled("stopped at the first bad record (--strict)");
    if (end.ok()) end = database_->Barrier();
    PrintSummary(seconds);
    if (!end.ok()) {
      console_.err << "partita: " << end.message() << Advice() << "\n";
      return outcome.end == ImportEnd::kStrict ? ExitCode::kFindings : ExitCode::kFailed;
    }
    if (source_->resumable()) {
      const Status removed = RemoveCheckpoint(flags_.file);
      if (!removed.ok()) console_.err << "partita: " << removed.message() << "\n";
    }
    return pipeline_->bad() > 0 ? ExitCode::kFindings : ExitCode::kOk;
  }

  void PrintSummary(double seconds) {
    const uint64_t imported = pipeline_->imported();
    const uint64_t bad = pipeline_->bad();
    if (store_flags_.json) {
      console_.out << "{\"imported\":" << imported << ",\"bad\":" << bad << ",\"seconds\":" << seconds
                   << "}\n";
      return;
    }
    console_.out << "imported " << FormatCount(imported) << " records into '" << flags_.table << "', "
                 << FormatCount(bad) << " bad, in " << FormatSeconds(seconds) << " ("
                 << FormatRate(static_cast<double>(imported - start_.imported), seconds, "records") << ")\n";
    if (format_ == RecordFormat::kDebianIndex) {
      console_.out << static_cast<DebianIndexReader&>(source_->reader()).counts().ToString();
    }
  }

  ExitCode Finish(ExitCode code) {
    if (database_ == nullptr) return code;
    return CloseStore(*database_, code, console_);
  }

  const StoreFlags& store_flags_;
  const ImportFlags& flags_;
  Console& console_;
  WriteAction action_ = WriteAction::kInsertOrReplace;
  RecordFormat format_ = RecordFormat::kJsonLines;
  std::unique_ptr<RecordSource> source_;
  std::unique_ptr<Database> database_;
  std::optional<Table> table_;
  TableOrigin origin_;
  ImportPosition start_;
  ImportPipeline* pipeline_ = nullptr;  // While RunPipeline runs.
  uint64_t checkpoint_offset_ = 0;
  double checkpoint_time_ = 0;
  bool checkpoint_failed_ = false;
  uint64_t kept_line_ = 0;  // Of the checkpoint that is there; 0: none.
};

}  // namespace

ExitCode RunImport(const StoreFlags& store, const ImportFlags& flags, Console& console) {
  if (store.read_only) return RefuseReadOnly(console, "import");
  return ImportCommand(store, flags, console).Run();
}

}  // namespace partita
