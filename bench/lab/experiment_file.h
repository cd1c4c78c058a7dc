#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bench/lab/experiment.h"
#include "engine/base/result.h"

namespace partita::lab {

// Something wrong with an experiment file, where it stands.
struct Finding {
  uint32_t line = 0, column = 0;
  std::string what;
};

// An experiment file (TOML; bench/lab/experiment.schema.json says what may stand in it). With findings the
// experiment is not to be used.
struct ExperimentFile {
  Experiment experiment;
  std::vector<Finding> findings;  // In the order of the file.
};

// Reads and checks it: syntax, unknown keys (with the nearest known one), values, templates, and that the
// service would take the keys, properties, batches and entities that a sample of the records gives. Reports
// everything that is wrong, but for what stands behind an error of TOML itself. Files that it names lie where
// `name` does.
ExperimentFile ParseExperiment(std::string_view text, const std::string& name);
// kNotFound, kIoError: it cannot be read.
Result<ExperimentFile> ReadExperimentFile(const std::string& path);

// "file:3:5: unknown key 'recrods'; did you mean records?" a line.
std::string FindingsText(const std::string& name, const std::vector<Finding>& findings);

}  // namespace partita::lab
