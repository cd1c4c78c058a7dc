#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>

#include "api/cli/debian_index.h"
#include "api/cli/demo.h"
#include "api/cli/figures.h"
#include "api/cli/import_loop.h"
#include "api/cli/open_store.h"
#include "api/cli/report_printer.h"
#include "api/cli/stats_report.h"
#include "engine/inspect.h"

// The demo's frame: its steps in order, and those that bring the data in. demo_steps.cc has the reads and
// writes.

namespace partita {

namespace {

constexpr const char* kTableName = "Packages";
// A smoke run imports for at most so long; what it got to by then is what is checked.
constexpr double kSmokeImportSeconds = 20;

Result<std::string> ReadAll(std::FILE* from, const std::string& name) {
  std::string text;
  std::array<char, 1 << 16> buffer{};
  while (const size_t size = std::fread(buffer.data(), 1, buffer.size(), from))
    text.append(buffer.data(), size);
  if (std::ferror(from) != 0) return Status::IoError("reading " + name + " failed");
  return text;
}

Result<std::string> ReadFromCommand(const char* command) {
  std::FILE* pipe = ::popen(command, "r");
  if (pipe == nullptr) return Status::IoError("cannot start '" + std::string(command) + "'");
  Result<std::string> text = ReadAll(pipe, command);
  if (::pclose(pipe) != 0) {
    return Status::IoError("'" + std::string(command) +
                           "' failed; run apt-get update, or name a file with --index");
  }
  return text;
}

// How many records there are, up to as many as are needed.
uint64_t CountRecords(const std::string& index) {
  DebianIndexReader reader(std::make_unique<MemorySource>(index));
  uint64_t records = 0;
  while (records < kDemoRecordsMin) {
    const std::optional<Result<Entity>> record = reader.Next();
    if (!record) break;
    if (record->ok()) ++records;
  }
  return records;
}

}  // namespace

ExitCode RunDemo(const StoreFlags& store, const DemoFlags& flags, Console& console) {
  if (store.read_only) return RefuseReadOnly(console, "demo");
  if (store.directory.empty()) return FailUsage(console, "where to? Name a new directory with --data DIR");
  // Its table would stay in a store that somebody uses.
  if (ShardCountOfStore(store.directory)) {
    return FailUsage(console,
                     "'" + store.directory + "' holds a store already; name a new directory with --data DIR");
  }
  return Demo(store, flags, console).Run();
}

Demo::Demo(const StoreFlags& store, const DemoFlags& flags, Console& console)
    : store_flags_(store), flags_(flags), console_(console) {
  // A smoke run does not wait for the disk at each record; it ends with a barrier all the same.
  if (flags_.smoke && !store_flags_.durability) store_flags_.durability = Durability::kProcess;
}

ExitCode Demo::Run() {
  const auto started = std::chrono::steady_clock::now();
  console_.interrupts.Arm();
  const bool right = RunStep("read the index", [this] { return ReadIndex(); }) &&
                     RunStep("open a new store", [this] { return Open(); }) &&
                     RunStep("import", [this] { return Import(); }) &&
                     RunStep("parse the index again, on its own", [this] { return ParseAgain(); }) &&
                     RunStep("point reads", [this] { return ReadPoints(); }) &&
                     RunStep("row range, both ways", [this] { return ReadRowRange(); }) &&
                     RunStep("partition", [this] { return ReadPartition(); }) &&
                     RunStep("count", [this] { return Count(); }) &&
                     RunStep("filter on properties", [this] { return FilterByProperties(); }) &&
                     RunStep("update by ETag", [this] { return UpdateByEtag(); }) &&
                     RunStep("transaction of 100", [this] { return Transact(); }) &&
                     RunStep("refused transaction", [this] { return RefuseTransaction(); }) &&
                     (flags_.smoke || RunStep("compact", [this] { return Compact(); })) &&
                     RunStep("restart", [this] { return Restart(); }) &&
                     RunStep("compare everything, both ways", [this] { return CompareAll(); }) &&
                     RunStep("verify", [this] { return Verify(); });
  table_.reset();
  const bool closed =
      database_ == nullptr || CloseStore(*database_, ExitCode::kOk, console_) == ExitCode::kOk;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  const char* mode = flags_.smoke ? "smoke" : "demo";
  console_.out << mode << (right && closed ? ": ok" : ": FAILED") << " (" << FormatSeconds(seconds) << ")\n";
  console_.out.flush();
  if (right && closed) return ExitCode::kOk;
  return is_wrong_ ? ExitCode::kFindings : ExitCode::kFailed;
}

bool Demo::RunStep(const std::string& name, const Step& step) {
  const auto started = std::chrono::steady_clock::now();
  const bool goes_on = !console_.interrupts.Requested();
  const Result<std::string> told = goes_on ? step() : Result<std::string>(Status::Cancelled("interrupted"));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  ++step_;
  std::string head = (step_ < 10 ? " " : "") + std::to_string(step_) + ". " + name;
  head.resize(std::max<size_t>(head.size(), 38), ' ');
  if (!told.ok()) {
    // Behind the preparations what is missing or refused is a wrong answer, too; but not what the machine
    // did.
    const Code code = told.code();
    const bool by_machine = code == Code::kCancelled || code == Code::kIoError || code == Code::kNoSpace ||
                            code == Code::kResourceExhausted;
    is_wrong_ = code == Code::kCorruption || (step_ > kPreparations && !by_machine);
    console_.out << head << " FAILED: " << told.status().ToString() << "\n";
    return false;
  }
  console_.out << head << " " << FormatSeconds(seconds) << "  " << *told << "\n";
  console_.out.flush();
  return true;
}

Result<std::string> Demo::ReadIndex() {
  if (flags_.index.empty()) {
    PARTITA_ASSIGN(index_, ReadFromCommand("apt-cache dumpavail"));
  } else if (flags_.index == "-") {
    PARTITA_ASSIGN(index_, ReadAll(stdin, "standard input"));
  } else {
    std::FILE* file = std::fopen(flags_.index.c_str(), "rb");
    if (file == nullptr) return Status::NotFound("cannot read '" + flags_.index + "'");
    Result<std::string> text = ReadAll(file, flags_.index);
    std::fclose(file);
    PARTITA_ASSIGN(index_, std::move(text));
  }
  const std::string from = flags_.index.empty() ? "apt-cache dumpavail" : "'" + flags_.index + "'";
  const uint64_t records = CountRecords(index_);
  if (records < kDemoRecordsMin) {
    return Status::InvalidArgument(
        from + " has " + FormatCount(records) + " records; " + FormatCount(kDemoRecordsMin) + " are needed" +
        (flags_.index.empty() ? "; run apt-get update, or name a file with --index" : ""));
  }
  return FormatBytes(index_.size()) + " from " + from;
}

Result<std::string> Demo::Open() {
  PARTITA_ASSIGN(database_, OpenStore(store_flags_, IfNoStore::kCreate, console_));
  const TableOptions options{.durability = store_flags_.durability.value_or(Durability::kPower)};
  PARTITA_ASSIGN(Table table, database_->CreateTable(kTableName, options));
  table_.emplace(std::move(table));
  return "'" + store_flags_.directory + "', table '" + kTableName + "', " +
         std::to_string(database_->open_report().shards) + " shards, durability " +
         std::string(DurabilityName(options.durability));
}

Result<std::string> Demo::Import() {
  DebianIndexReader reader(std::make_unique<MemorySource>(index_));
  Progress progress(console_, "import", Progress::Unit::kBytes, index_.size());
  ImportPipeline pipeline(*database_, *table_, {}, {});
  ImportLoopOptions options;
  options.stop = [this, &progress] {
    return console_.interrupts.Requested() || (flags_.smoke && progress.seconds() > kSmokeImportSeconds);
  };
  options.each_bad_record = [this](uint64_t line) { bad_lines_.insert(line); };
  const ImportOutcome outcome = ImportRecords(reader, pipeline, progress, options);
  if (console_.interrupts.Requested()) return Status::Cancelled("interrupted");
  PARTITA_TRY(outcome.failure);
  PARTITA_TRY(database_->Barrier());
  const double seconds = progress.seconds();
  if (pipeline.bad() > bad_lines_.size()) {
    return Status::InvalidArgument(std::to_string(pipeline.bad() - bad_lines_.size()) +
                                   " writes were refused");
  }
  if (pipeline.imported() < kDemoRecordsMin) {
    return Status::InvalidArgument("only " + FormatCount(pipeline.imported()) + " records were imported; " +
                                   FormatCount(kDemoRecordsMin) + " are needed");
  }
  const uint64_t end = pipeline.position().offset;
  const std::string bounded =
      outcome.end == ImportEnd::kStopped ? "; bounded at " + FormatBytes(end) + " of the index" : "";
  index_.resize(end);
  console_.out << "mapped by the import:\n" << reader.counts().ToString();
  const auto imported = static_cast<double>(pipeline.imported());
  return FormatCount(pipeline.imported()) + " records, " + FormatCount(pipeline.bad()) + " bad, durable; " +
         FormatRate(imported, seconds, "records") + ", " +
         FormatBytes(static_cast<uint64_t>(static_cast<double>(end) / seconds)) + "/s" + bounded;
}

Result<std::string> Demo::ParseAgain() {
  expected_ = ExpectedPackages::Parse(index_, bad_lines_);
  partition_ = expected_.LargestPartition();
  return FormatCount(expected_.stanzas().size()) + " different keys in " +
         FormatCount(expected_.partition_count()) + " partitions, the largest is '" + partition_ + "'";
}

Result<std::string> Demo::Restart() {
  table_.reset();
  const auto closing = std::chrono::steady_clock::now();
  PARTITA_TRY(database_->Close());
  const double closed = std::chrono::duration<double>(std::chrono::steady_clock::now() - closing).count();
  database_.reset();
  PARTITA_ASSIGN(database_, OpenStore(store_flags_, IfNoStore::kFail, console_));
  PARTITA_ASSIGN(Table table, database_->OpenTable(kTableName));
  table_.emplace(std::move(table));
  const OpenReport& report = database_->open_report();
  if (!report.clean_shutdown) return Status::Corruption("the store was closed, but says that it was not");
  return "closed in " + FormatSeconds(closed) + ", opened in " + FormatSeconds(report.seconds) + ", " +
         FormatCount(report.records_replayed) + " log records replayed";
}

Result<std::string> Demo::Verify() {
  PARTITA_ASSIGN(VerifyReport report, database_->Verify());
  for (const std::string& damage : report.damages) console_.out << "  " << damage << "\n";
  if (!report.damages.empty()) {
    return Status::Corruption(std::to_string(report.damages.size()) + " damages found");
  }
  return FormatCount(report.tables_read) + " table files, " + FormatCount(report.entries) + " entries, " +
         FormatBytes(report.bytes) + ", no damage";
}

Result<std::string> Demo::Compact() {
  PARTITA_TRY(database_->CompactAll());
  PrintReport(console_.out, DescribeStats(database_->Stats(), store_flags_.directory));
  return std::string("everything flushed and compacted");
}

}  // namespace partita
