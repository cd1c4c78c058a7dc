#include "bench/lab/lab_command.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <functional>
#include <sstream>

#include "api/cli/figures.h"
#include "bench/lab/experiment_file.h"
#include "bench/lab/experiment_keys.h"
#include "bench/lab/explain.h"
#include "bench/lab/operation_stream.h"

namespace partita::lab {
namespace {

constexpr uint64_t kStreamSample = 100'000;

// Nothing when there were findings, which are printed.
std::optional<Experiment> Load(const std::string& path, Console& console, ExitCode* code) {
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

ExitCode Explain(const std::string& path, Console& console) {
  ExitCode code = ExitCode::kOk;
  const std::optional<Experiment> experiment = Load(path, console, &code);
  if (!experiment) return code;
  const RecordGenerator generator(*experiment);
  console.out << PredictionText(*experiment, Predict(generator));
  return code;
}

ExitCode Check(const std::string& path, Console& console) {
  ExitCode code = ExitCode::kOk;
  const std::optional<Experiment> experiment = Load(path, console, &code);
  if (!experiment) return code;
  const RecordGenerator generator(*experiment);
  const auto started = std::chrono::steady_clock::now();
  const uint64_t hash = HashOfStream(generator, kStreamSample);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  char line[160];
  std::snprintf(line, sizeof(line), "%zu operations on %zu layouts; stream %016llx, made at %s\n",
                experiment->ops.size(), experiment->layouts.size(), static_cast<unsigned long long>(hash),
                FormatRate(static_cast<double>(kStreamSample), seconds, "operations").c_str());
  console.out << path << ": sound\n" << line;
  return code;
}

struct LabWords {
  std::string file;
  std::function<ExitCode(Console&)> run;
};

CLI::App* AddWithFile(CLI::App& app, LabWords* words, const char* name, const char* manual,
                      const char* example, ExitCode (*run)(const std::string&, Console&)) {
  CLI::App* command = app.add_subcommand(name, manual);
  command->footer(std::string("Example:\n  ") + example);
  command->add_option("file", words->file, "The experiment, TOML")->required()->type_name("FILE");
  command->callback([words, run] { words->run = [words, run](Console& c) { return run(words->file, c); }; });
  return command;
}

void AddCommands(CLI::App& app, LabWords* words) {
  app.require_subcommand(1);
  AddWithFile(app, words, "check", "Tell everything that is wrong with an experiment",
              "partita lab check my.toml", &Check);
  AddWithFile(app, words, "explain", "Tell what each operation would do on each layout, without data",
              "partita lab explain my.toml", &Explain);
  CLI::App* schema = app.add_subcommand("schema", "Print the JSON schema of experiments, for editors");
  schema->callback([words] {
    words->run = [](Console& c) {
      c.out << ExperimentSchema();
      return ExitCode::kOk;
    };
  });
}

constexpr const char* kFooter =
    "Example:\n  partita lab check my.toml\n\n"
    "An experiment keeps apart what an application means (records, operations), the layouts that turn it "
    "into\n"
    "keys and entities, and when operations arrive; the same operations go to each layout, byte for byte.\n\n"
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
    std::ostringstream out, err;
    const int code = app.exit(error, out, err);
    console.out << out.str();
    if (code == 0) return ExitCode::kOk;
    console.err << "partita lab: " << error.what() << "\nTry: partita lab --help\n";
    return ExitCode::kUsage;
  }
  return flags.run(console);
}

OtherCommand LabCommand() {
  return {
      .name = "lab", .description = "Compare key layouts: what each costs, before it hurts", .run = &RunLab};
}

}  // namespace partita::lab
