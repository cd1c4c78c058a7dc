#pragma once
#include <optional>
#include <string>

#include "api/cli/console.h"
#include "bench/lab/experiment.h"

namespace partita::lab {

// What follows `partita lab run`.
struct RunWords {
  std::string file, directory, target, io = "uring";
  bool force = false, resume = false, capacity = false;
};

// Runs an experiment's file and writes and prints what came out.
ExitCode RunExperimentFile(const RunWords& words, Console& console);

// Lists the tables that runs gave their names in a table service, killed ones and those under way, and with
// `apply` deletes them.
ExitCode CleanService(const std::string& target, bool apply, Console& console);

// Lists the stores that killed runs left below the directory of a result, and with `apply` removes them.
ExitCode CleanDirectory(const std::string& directory, bool apply, Console& console);

// The experiment of a file that is sound. Nothing when there is none, which is printed, with the exit code
// for it.
std::optional<Experiment> LoadExperiment(const std::string& path, Console& console, ExitCode* code);

}  // namespace partita::lab
