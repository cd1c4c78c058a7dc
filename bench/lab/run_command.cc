#include "bench/lab/run_command.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <vector>

#include "api/cli/figures.h"
#include "api/cli/nearest_name.h"
#include "api/names.h"
#include "bench/lab/capacity.h"
#include "bench/lab/durable_file.h"
#include "bench/lab/experiment_file.h"
#include "bench/lab/hdr_log.h"
#include "bench/lab/http_store.h"
#include "bench/lab/key_expression.h"
#include "bench/lab/operation_stream.h"
#include "bench/lab/report_page.h"
#include "bench/lab/result_text.h"
#include "bench/lab/run.h"
#include "bench/lab/unfinished_run.h"
#include "bench/lab/work_directory.h"
#include "engine/base/checksum.h"

namespace partita::lab {
namespace {

// What tells a changed experiment: so many of its operations and records.
constexpr uint64_t kOperationsHashed = 10'000, kRecordsHashed = 10'000;

// What a run leaves in its directory.
std::vector<std::string> NamesWritten(bool capacity) {
  if (capacity) return {"capacity.json"};
  return {"result.json", "report.html", "summary.csv", "timeline.csv", "heat.csv", "latency.hdr.log"};
}

// kAlreadyExists: one of the names is taken, by an earlier run or by something else.
Status CheckNamesAreFree(const RunWords& words, const std::string& directory) {
  for (const std::string& name : NamesWritten(words.capacity)) {
    const bool is_whole = words.resume && name == "result.json";
    PARTITA_TRY(CheckIsNew(directory + "/" + name,
                           is_whole ? " is whole: there is nothing to resume; --force runs it anew"
                                    : " exists; --force writes over it"));
  }
  return Status();
}

// The figures; the report is made from result.json, and can be made again.
Status WriteFigures(const std::string& directory, const Experiment& experiment, const RunResult& result,
                    const std::string& json) {
  PARTITA_TRY(WriteDurably(directory + "/result.json", json));
  PARTITA_TRY(WriteDurably(directory + "/summary.csv", SummaryCsv(experiment, result)));
  PARTITA_TRY(WriteDurably(directory + "/timeline.csv", TimelineCsv(experiment, result)));
  PARTITA_TRY(WriteDurably(directory + "/heat.csv", HeatCsv(experiment, result)));
  return WriteDurably(directory + "/latency.hdr.log", HdrLog(experiment, result));
}

Status WriteReport(const std::string& path, const std::string& json) {
  PARTITA_ASSIGN(const std::string page, ReportHtml(json));
  return WriteDurably(path, page);
}

// How far a run is: drawn in place on a terminal, elsewhere a line every five seconds.
class ProgressLine {
 public:
  explicit ProgressLine(Console& console) : console_(console) {}

  void Tell(double done_s, double all_s, const std::string& layout) {
    const auto now = std::chrono::steady_clock::now();
    if (done_before_s_ < 0) done_before_s_ = done_s;
    if (now - told_ < std::chrono::milliseconds(console_.err_is_terminal ? 200 : 5'000)) return;
    told_ = now;
    // Stores are made and removed between runs: what is left is judged by what was.
    const double passed_s = std::chrono::duration<double>(now - started_).count();
    const double done_now_s = done_s - done_before_s_;
    const double left_s = done_now_s > 0 ? passed_s * (all_s - done_s) / done_now_s : all_s - done_s;
    console_.err << (console_.err_is_terminal ? "\r\x1b[K" : "") << "lab "
                 << static_cast<int>(100 * done_s / all_s) << " %  " << FormatSeconds(left_s) << " left  "
                 << layout << (console_.err_is_terminal ? "" : "\n") << std::flush;
  }
  void Finish() {
    if (console_.err_is_terminal) console_.err << "\r\x1b[K" << std::flush;
  }

 private:
  Console& console_;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point told_ = started_;
  double done_before_s_ = -1;  // By the run that this one goes on with.
};

// Hash of the file's text and of what is not in it: a trace, records that are read from elsewhere.
Result<std::string> HashOfExperiment(const std::string& path, const RecordGenerator& generator) {
  PARTITA_ASSIGN(const std::string text, ReadWholeFile(path));
  const Experiment& experiment = generator.experiment();
  StreamHash hash;
  hash.Update(text);
  const uint64_t stream = HashOfStream(generator, kOperationsHashed);
  hash.Update({reinterpret_cast<const char*>(&stream), sizeof(stream)});
  for (const double time : experiment.arrival.times) {
    hash.Update({reinterpret_cast<const char*>(&time), sizeof(time)});
  }
  Record record;
  std::string values;
  const uint64_t step = std::max<uint64_t>(experiment.records / kRecordsHashed, 1);
  for (uint64_t number = 0; number < experiment.records; number += step) {
    generator.Make(number, &record);
    values.clear();
    for (const PropertyValue& value : record.values) {
      values.push_back('\0');
      AppendKeyText(&values, value);
    }
    hash.Update(values);
  }
  char digits[24];
  std::snprintf(digits, sizeof(digits), "%016llx", static_cast<unsigned long long>(hash.Digest()));
  return std::string(digits);
}

ExitCode Capacity(const std::string& file, const Experiment& experiment, const RunPlace& place,
                  const RunProgress& tell, ProgressLine* progress, Console& console) {
  const RecordGenerator generator(experiment);
  const Result<std::vector<LayoutCapacity>> capacities = FindCapacities(generator, place, tell);
  progress->Finish();
  if (!capacities.ok()) return FailToStart(console, capacities.status());
  const std::string path = place.directory + "/capacity.json";
  const Status written = WriteDurably(path, CapacityJson(experiment, *capacities));
  if (!written.ok()) return FailToStart(console, written);
  console.out << CapacityText(experiment, *capacities) << "\n" << path << "\n";
  const std::vector<std::string> failed = FailedCapacities(experiment, *capacities);
  for (const std::string& line : failed) console.err << file << ": " << line << "\n";
  return failed.empty() ? ExitCode::kOk : ExitCode::kFindings;
}

// Prints what came out of a run, with its report, and says what was not as expected.
ExitCode Tell(const std::string& path, const std::string& directory, const Experiment& experiment,
              const RunResult& result, const std::string& json, Console& console) {
  const Status reported = WriteReport(directory + "/report.html", json);
  console.out << VerdictTable(experiment, result) << "\n"
              << directory << (reported.ok() ? "/report.html, " : "/")
              << "result.json, summary.csv, timeline.csv, heat.csv, latency.hdr.log\n";
  ExitCode code = ExitCode::kOk;
  for (const std::string& failed : FailedExpectations(experiment, result)) {
    console.err << path << ": " << failed << "\n";
    code = ExitCode::kFindings;
  }
  return reported.ok() ? code : FailToStart(console, reported);
}

// What the words say, else what the experiment does. kInvalidArgument: a service that is not known, or would
// not take the experiment's tables.
Status ChooseTarget(const RunWords& words, const Experiment& experiment, RunPlace* place) {
  const bool is_named = words.target.find_first_of("=:") == std::string::npos;
  place->kind = experiment.target;
  if (words.target == TargetKindName(TargetKind::kEmbedded)) {
    place->kind = TargetKind::kEmbedded;
  } else if (words.target == TargetKindName(TargetKind::kRocksDb)) {
    place->kind = TargetKind::kRocksDb;
  } else if (!words.target.empty() && is_named) {
    // What it is is not repeated, where it is not nearly one of the names: it may be a secret.
    const std::string advice = DidYouMean(words.target, {"embedded", "rocksdb"});
    return Status::InvalidArgument(
        "--target " + (advice.empty() ? "" : QuotedForMessage(words.target) + " ") +
        "is none: embedded, rocksdb, a connection string (AccountName=...;AccountKey=...), or env:NAME of a "
        "variable that holds one" +
        advice);
  } else if (!words.target.empty()) {
    place->kind = TargetKind::kHttp;
    PARTITA_ASSIGN(place->connection, ParseConnection(words.target));
  } else if (place->kind == TargetKind::kHttp && !experiment.connection.empty()) {
    PARTITA_ASSIGN(place->connection, ParseConnection(experiment.connection));
  } else if (place->kind == TargetKind::kHttp) {
    PARTITA_ASSIGN(place->connection, ConnectionOf(experiment.url, experiment.credential));
  }
  if (place->kind != TargetKind::kHttp) return Status();
  for (const Layout& layout : experiment.layouts) {
    for (const EntityPlan& entity : layout.entities) PARTITA_TRY(CheckRemoteTable(entity.table));
  }
  return Status();
}

Result<UnfinishedRun> OpenUnfinished(const RunWords& words, const RecordGenerator& generator,
                                     const RunPlace& place) {
  PARTITA_ASSIGN(std::string hash, HashOfExperiment(words.file, generator));
  const RunIdentity identity{.experiment = std::move(hash),
                             .seed = std::to_string(generator.experiment().seed),
                             .target = place.TargetName(),
                             .io = place.kind == TargetKind::kEmbedded ? words.io : "-",
                             .build = BuildOfProgram()};
  const auto start = words.resume  ? UnfinishedRun::Start::kResume
                     : words.force ? UnfinishedRun::Start::kAnew
                                   : UnfinishedRun::Start::kNew;
  return UnfinishedRun::Open(place.directory, identity, start);
}

// Whether what is in the directory can be listed: kNotFound, kIoError.
Status CheckReadable(const std::string& directory) {
  std::error_code failed;
  const std::filesystem::directory_iterator first(directory, failed);
  if (!failed) return Status();
  if (failed == std::errc::no_such_file_or_directory || failed == std::errc::not_a_directory) {
    return Status::NotFound(directory + ": there is no such directory");
  }
  return Status::IoError(directory + ": " + failed.message());
}

// The whole run, which goes on with what is kept of it.
ExitCode RunCells(const RunWords& words, const Experiment& experiment, RunPlace place,
                  const RunProgress& tell, ProgressLine* progress, Console& console) {
  const RecordGenerator generator(experiment);
  Result<UnfinishedRun> unfinished = OpenUnfinished(words, generator, place);
  if (!unfinished.ok()) {
    const bool is_there = unfinished.code() == Code::kAlreadyExists;
    return is_there ? Fail(console, unfinished.status()) : FailToStart(console, unfinished.status());
  }
  const size_t all = CellCountOf(experiment);
  // One that --force began, and that was killed before its first cell was done, has yet to write over it.
  if (unfinished->kept_count() == 0 && words.resume && !unfinished->was_begun()) {
    if (const Status free = CheckNamesAreFree(words, place.directory); !free.ok()) return Fail(console, free);
  }
  if (words.resume) {
    console.err << "lab: " << unfinished->kept_count() << " of " << all << " runs are done already\n";
  }
  place.unfinished = &*unfinished;
  const Result<RunResult> result = RunExperiment(generator, place, tell);
  progress->Finish();
  if (!result.ok()) {
    const ExitCode code = FailToStart(console, result.status());
    if (unfinished->kept_count() > 0) {
      console.err << "partita lab: " << unfinished->kept_count() << " of " << all << " runs are kept in "
                  << unfinished->path() << "; --resume goes on with them\n";
    }
    return code;
  }
  const std::string json = ResultJson(experiment, *result);
  const Status written = WriteFigures(place.directory, experiment, *result, json);
  if (!written.ok()) return FailToStart(console, written);
  unfinished->Remove();
  return Tell(words.file, place.directory, experiment, *result, json, console);
}

}  // namespace

std::optional<Experiment> LoadExperiment(const std::string& path, Console& console, ExitCode* code) {
  Result<ExperimentFile> file = ReadExperimentFile(path);
  if (!file.ok()) {
    *code = FailToStart(console, file.status());
    return std::nullopt;
  }
  if (!file->findings.empty()) {
    console.err << FindingsText(path, file->findings);
    *code = ExitCode::kFindings;
    return std::nullopt;
  }
  return std::move(file->experiment);
}

ExitCode CleanService(const std::string& target, bool apply, Console& console) {
  const Result<Connection> connection = ParseConnection(target);
  if (!connection.ok()) return FailToStart(console, connection.status());
  const std::vector<Field> no_fields;
  const auto store = HttpStore::Make(*connection, no_fields, [](const std::string&) {});
  if (!store.ok()) return FailToStart(console, store.status());
  const Result<std::vector<std::string>> tables = (*store)->LabTables();
  if (!tables.ok()) return FailToStart(console, tables.status());
  ExitCode code = ExitCode::kOk;
  size_t gone = 0;
  for (const std::string& table : *tables) {
    console.out << table << "\n";
    if (!apply) continue;
    const Status deleted = (*store)->DeleteTable(table);
    gone += deleted.ok() ? 1 : 0;
    if (!deleted.ok()) code = Fail(console, deleted);
  }
  console.out << tables->size() << " table(s) of runs in " << connection->Endpoint();
  if (apply) console.out << ", deleted " << gone;
  console.out << (!apply && !tables->empty() ? "; --apply deletes them\n" : "\n");
  return code;
}

ExitCode CleanDirectory(const std::string& directory, bool apply, Console& console) {
  if (const Status readable = CheckReadable(directory); !readable.ok()) return FailToStart(console, readable);
  std::vector<std::string> left = WorkDirectory::LeftIn(directory);
  const std::vector<std::string> unfinished = WorkDirectory::LeftIn(directory + "/unfinished");
  left.insert(left.end(), unfinished.begin(), unfinished.end());
  ExitCode code = ExitCode::kOk;
  size_t gone = 0;
  for (const std::string& path : left) {
    console.out << path << "\n";
    if (!apply) continue;
    const Status removed = WorkDirectory::RemoveLeft(path);
    gone += removed.ok() ? 1 : 0;
    if (!removed.ok()) code = Fail(console, removed);
  }
  console.out << left.size() << " store(s) that killed runs left in " << directory;
  if (apply) console.out << ", removed " << gone;
  console.out << (!apply && !left.empty() ? "; --apply removes them\n" : "\n");
  return code;
}

ExitCode RunExperimentFile(const RunWords& words, Console& console) {
  ExitCode code = ExitCode::kOk;
  const std::optional<Experiment> experiment = LoadExperiment(words.file, console, &code);
  if (!experiment) return code;
  const std::string directory = words.directory.empty() ? experiment->name + "-result" : words.directory;
  if (!words.force && !words.resume) {
    if (const Status free = CheckNamesAreFree(words, directory); !free.ok()) return Fail(console, free);
  }
  RunPlace place{.directory = directory,
                 .io_backend = words.io == "uring" ? IoBackend::kUring : IoBackend::kThreads,
                 .connection = {}};
  if (const Status known = ChooseTarget(words, *experiment, &place); !known.ok()) {
    return FailToStart(console, known);
  }
  console.interrupts.Arm();
  ProgressLine progress(console);
  const RunProgress tell = [&](double done_s, double all_s, const std::string& cell) {
    progress.Tell(done_s, all_s, cell);
    return !console.interrupts.Requested();
  };
  place.warn = [&](const std::string& text) {
    progress.Finish();
    console.err << "partita lab: " << text << "\n";
  };
  if (words.capacity) return Capacity(words.file, *experiment, place, tell, &progress, console);
  return RunCells(words, *experiment, place, tell, &progress, console);
}

}  // namespace partita::lab
