#include "bench/lab/lab_command.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>

#include "api/cli/command_words.h"
#include "api/cli/figures.h"
#include "bench/lab/compare.h"
#include "bench/lab/durable_file.h"
#include "bench/lab/example.h"
#include "bench/lab/experiment_file.h"
#include "bench/lab/experiment_keys.h"
#include "bench/lab/explain.h"
#include "bench/lab/generator_rate.h"
#include "bench/lab/operation_stream.h"
#include "bench/lab/report_page.h"
#include "bench/lab/run_command.h"
#include "bench/lab/samples.h"

namespace partita::lab {
namespace {

constexpr uint64_t kStreamSample = 100'000;

ExitCode Explain(const std::string& path, Console& console) {
  ExitCode code = ExitCode::kOk;
  const std::optional<Experiment> experiment = LoadExperiment(path, console, &code);
  if (!experiment) return code;
  const RecordGenerator generator(*experiment);
  console.out << PredictionText(*experiment, Predict(generator));
  return code;
}

// The records of the sample "packages", beside its experiment.
Status WriteImportOf(const std::string& experiment, Console& console) {
  const std::string path = std::filesystem::path(experiment).replace_filename("packages.jsonl").string();
  PARTITA_TRY(CheckIsNew(path));
  PARTITA_ASSIGN(const uint64_t packages, WritePackages(path));
  console.out << path << ": written, " << packages << " packages\n";
  return Status();
}

ExitCode New(const std::string& given, const std::string& sample, Console& console) {
  const std::string path = !given.empty() ? given : sample.empty() ? "experiment.toml" : sample + ".toml";
  if (const Status is_new = CheckIsNew(path); !is_new.ok()) return Fail(console, is_new);
  const char* text = kExampleExperiment;
  for (const Sample& held : Samples()) {
    if (held.name == sample) text = held.text;
  }
  if (sample == "packages") {
    const Status imported = WriteImportOf(path, console);
    if (!imported.ok()) return FailToStart(console, imported);
  }
  const Status written = WriteDurably(path, text);
  if (!written.ok()) return FailToStart(console, written);
  console.out << path << ": written. Next: partita lab explain " << path << ", partita lab run " << path
              << "\n";
  return ExitCode::kOk;
}

struct LabWords {
  std::string file, sample, other_file;
  RunWords of_run;
  bool apply = false;
  double threshold = 0.1;
  std::function<ExitCode(Console&)> run;
};

ExitCode Compare(const std::string& before, const std::string& after, double threshold, Console& console) {
  const Result<std::string> first = ReadWholeFile(before), second = ReadWholeFile(after);
  if (!first.ok()) return FailToStart(console, first.status());
  if (!second.ok()) return FailToStart(console, second.status());
  const Result<RunComparison> comparison = CompareRuns(*first, *second, threshold);
  if (!comparison.ok()) return Fail(console, comparison.status());
  console.out << ComparisonText(*comparison);
  // What cannot be told is not passed: a gate that cannot fail is none.
  return comparison->any_worse() || comparison->any_undecided() ? ExitCode::kFindings : ExitCode::kOk;
}

// kAlreadyExists: something else than a report or an empty file has that name. Errors as of ReadWholeFile.
Status CheckReportMayStand(const std::string& path) {
  if (CheckIsNew(path).code() != Code::kAlreadyExists) return Status();  // Writing tells what is wrong.
  PARTITA_ASSIGN(const std::string held, ReadWholeFile(path));
  std::error_code failed;  // A device reads as empty, too.
  if (IsReport(held) || (held.empty() && std::filesystem::is_regular_file(path, failed))) return Status();
  return Status::AlreadyExists(path + " exists and is no report of the lab, so it is left alone");
}

ExitCode Report(const std::string& path, const std::string& wanted, Console& console) {
  const Result<std::string> json = ReadWholeFile(path);
  if (!json.ok()) return FailToStart(console, json.status());
  const Result<std::string> page = ReportHtml(*json);
  if (!page.ok()) return Fail(console, page.status());
  const std::string to =
      wanted.empty() ? std::filesystem::path(path).replace_filename("report.html").string() : wanted;
  if (const Status may = CheckReportMayStand(to); !may.ok()) return Fail(console, may);
  const Status written = WriteDurably(to, *page);
  if (!written.ok()) return FailToStart(console, written);
  console.out << to << ": written\n";
  return ExitCode::kOk;
}

ExitCode Check(const std::string& path, Console& console) {
  ExitCode code = ExitCode::kOk;
  const std::optional<Experiment> experiment = LoadExperiment(path, console, &code);
  if (!experiment) return code;
  const RecordGenerator generator(*experiment);
  const auto started = std::chrono::steady_clock::now();
  const uint64_t hash = HashOfStream(generator, kStreamSample);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  char line[160];
  std::snprintf(line, sizeof(line), "%zu operations on %zu layouts; stream %016llx, made at %s\n",
                experiment->ops.size(), experiment->layouts.size(), static_cast<unsigned long long>(hash),
                FormatRate(static_cast<double>(kStreamSample), seconds, "operations").c_str());
  console.out << path << ": sound\n" << line << LeftOutText(experiment->arrival);
  return code;
}

ExitCode Generator(const std::string& path, Console& console) {
  ExitCode code = ExitCode::kOk;
  const std::optional<Experiment> experiment = LoadExperiment(path, console, &code);
  if (!experiment) return code;
  const Result<GeneratorRate> rate = MeasureGenerator(*experiment);
  if (!rate.ok()) return FailToStart(console, rate.status());
  console.out << GeneratorText(*experiment, *rate);
  return ExitCode::kOk;
}

// `run` null: the caller says what is run.
CLI::App* AddWithFile(CLI::App& app, LabWords* words, const char* name, const char* manual,
                      const char* example, ExitCode (*run)(const std::string&, Console&)) {
  CLI::App* command = app.add_subcommand(name, manual);
  command->footer(std::string("Example:\n  ") + example);
  command->add_option("file", words->file, "The experiment, TOML")->required()->type_name("FILE");
  if (run != nullptr) {
    command->callback(
        [words, run] { words->run = [words, run](Console& c) { return run(words->file, c); }; });
  }
  return command;
}

void AddRunOptions(CLI::App* run, RunWords* words) {
  run->add_option("--out", words->directory, "Where results and, meanwhile, stores lie; default: NAME-result")
      ->type_name("DIR");
  run->add_option(
         "--target", words->target,
         "Instead of the experiment's: embedded or rocksdb, for new stores here; or a table service: a "
         "connection string, or env:NAME of a variable that holds it. Tables are made for the run and "
         "deleted "
         "there; limits are the service's own")
      ->check(NotEmpty())
      ->type_name("STRING");
  CLI::Option* capacity = run->add_flag(
      "--capacity", words->capacity,
      "Find for each layout the highest rate that meets [goal], up to the experiment's highest; writes "
      "capacity.json");
  CLI::Option* force =
      run->add_flag("--force", words->force, "Write over the result, or the unfinished run, that is there");
  run->add_flag("--resume", words->resume,
                "Go on with a run that was interrupted or killed: what it has done is kept. From the start, "
                "where there is none")
      ->excludes(force)
      ->excludes(capacity);
  run->add_option("--io", words->io, "How the disk is reached; threads where io_uring is forbidden")
      ->check(CLI::IsMember({"uring", "threads"}))
      ->capture_default_str();
}

void AddClean(CLI::App& app, LabWords* words) {
  CLI::App* clean = app.add_subcommand(
      "clean", "List, or delete, what killed runs left: tables in a table service, stores on this machine");
  clean->footer(
      "Examples:\n  partita lab clean --target env:CONNECTION --apply\n  partita lab clean --out my-result "
      "--apply\n\n"
      "Tables of runs that are under way are among them: look whether there are any. Stores that a process "
      "holds\n"
      "are not; the next run into the same directory removes the others too.");
  CLI::Option* target =
      clean->add_option("--target", words->of_run.target, "A connection string, or env:NAME")
          ->type_name("STRING");
  clean->add_option("--out", words->of_run.directory, "The directory of a result")
      ->type_name("DIR")
      ->excludes(target);
  clean->add_flag("--apply", words->apply, "Delete them");
  clean->callback([words] {
    words->run = [words](Console& c) {
      const RunWords& of = words->of_run;
      if (!of.directory.empty()) return CleanDirectory(of.directory, words->apply, c);
      if (!of.target.empty()) return CleanService(of.target, words->apply, c);
      c.err << "partita lab: clean wants --target or --out\nTry: partita lab clean --help\n";
      return ExitCode::kUsage;
    };
  });
}

void AddCommands(CLI::App& app, LabWords* words) {
  app.require_subcommand(1);
  AddWithFile(app, words, "check", "Tell everything that is wrong with an experiment",
              "partita lab check my.toml", &Check);
  CLI::App* fresh = app.add_subcommand("new", "Write a small experiment that explains itself");
  fresh->footer("Examples:\n  partita lab new telemetry.toml\n  partita lab new --sample packages");
  fresh->add_option("file", words->file, "Default: experiment.toml, or the sample's name")->type_name("FILE");
  std::vector<std::string> names;
  for (const Sample& sample : Samples()) names.emplace_back(sample.name);
  fresh
      ->add_option(
          "--sample", words->sample,
          "One of the experiments that come with the lab instead: of the packages of this Debian machine "
          "(their records are written beside it), devices, orders, published traces, YCSB's mixes")
      ->check(CLI::IsMember(names));
  fresh->callback(
      [words] { words->run = [words](Console& c) { return New(words->file, words->sample, c); }; });
  AddWithFile(app, words, "explain", "Tell what each operation would do on each layout, without data",
              "partita lab explain my.toml", &Explain);
  AddWithFile(app, words, "generator",
              "Tell how many operations a second one core of this machine makes, without a store",
              "partita lab generator my.toml", &Generator);
  CLI::App* run = AddWithFile(app, words, "run", "Run the operations on every layout, in turns, and compare",
                              "partita lab run my.toml", nullptr);
  run->callback([words] {
    words->of_run.file = words->file;
    words->run = [words](Console& c) { return RunExperimentFile(words->of_run, c); };
  });
  AddRunOptions(run, &words->of_run);
  CLI::App* report =
      app.add_subcommand("report", "Make the HTML report of a run again, from its result.json");
  report->footer("Example:\n  partita lab report telemetry-result/result.json");
  report->add_option("result", words->file, "result.json of a run")->required()->type_name("FILE");
  report->add_option("--out", words->other_file, "Default: report.html beside it")->type_name("FILE");
  report->callback(
      [words] { words->run = [words](Console& c) { return Report(words->file, words->other_file, c); }; });
  CLI::App* compare = app.add_subcommand(
      "compare", "Tell how a later run differs; exit code 1 where it is worse, or it cannot be told");
  compare->footer("Example:\n  partita lab compare monday/result.json tuesday/result.json --threshold 0.2");
  compare->add_option("before", words->file, "result.json of a run")->required()->type_name("FILE");
  compare->add_option("after", words->other_file, "That of a later one")->required()->type_name("FILE");
  compare
      ->add_option(
          "--threshold", words->threshold,
          "Worse is what takes longer by more than this share, beyond doubt, or is throttled more often")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  compare->callback([words] {
    words->run = [words](Console& c) { return Compare(words->file, words->other_file, words->threshold, c); };
  });
  AddClean(app, words);
  CLI::App* schema = app.add_subcommand("schema", "Print the JSON schema of experiments, for editors");
  schema->footer("Example:\n  partita lab schema > experiment.schema.json");
  schema->callback([words] {
    words->run = [](Console& c) {
      c.out << ExperimentSchema();
      return ExitCode::kOk;
    };
  });
}

constexpr const char* kFooter =
    "Example:\n  partita lab new my.toml\n  partita lab explain my.toml\n  partita lab run my.toml\n\n"
    "An experiment keeps apart what an application means (records, operations), the layouts that turn it "
    "into\n"
    "keys and entities, and when operations arrive; the same operations go to each layout, byte for byte.\n"
    "Records are generated, or come from a CSV or JSON lines file of one's own ([data] import).\n\n"
    "Exit codes: 0 done; 1 the experiment is wrong, or what it expects did not come out; 2 usage; 3 it "
    "could\n"
    "not be run.";

}  // namespace

ExitCode RunLab(const std::vector<std::string>& words, Console& console) {
  LabWords flags;
  CLI::App app("Compares key layouts: the same operations on each, what they cost and how long they take.",
               "partita lab");
  app.footer(kFooter);
  AddCommands(app, &flags);
  // CLI11 throws to end parsing.
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::ParseError& error) {
    return partita::Explain(app, error, console);
  }
  return flags.run(console);
}

OtherCommand LabCommand() {
  return {
      .name = "lab", .description = "Compare key layouts: what each costs, before it hurts", .run = &RunLab};
}

}  // namespace partita::lab
