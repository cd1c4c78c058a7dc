#include "bench/lab/experiment_file.h"

#include <toml++/toml.h>

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "bench/lab/durable_file.h"
#include "bench/lab/experiment_reader.h"
#include "bench/lab/toml_section.h"

namespace partita::lab {

ExperimentFile ParseExperiment(std::string_view text, const std::string& name) {
  ExperimentFile file;
  // The one place of the lab where toml++ throws.
  try {
    const toml::table table = toml::parse(text, name);
    const TomlSection top(table, "", &file.findings);
    ExperimentReader(top, std::filesystem::path(name).parent_path(), &file.experiment).Read();
  } catch (const toml::parse_error& error) {
    file.findings.push_back({.line = error.source().begin.line,
                             .column = error.source().begin.column,
                             .what = std::string(error.description())});
  }
  std::sort(file.findings.begin(), file.findings.end(), [](const Finding& a, const Finding& b) {
    return std::tie(a.line, a.column, a.what) < std::tie(b.line, b.column, b.what);
  });
  return file;
}

Result<ExperimentFile> ReadExperimentFile(const std::string& path) {
  const Result<std::string> text = ReadWholeFile(path);
  if (!text.ok()) return text.status().WithContext("experiment");
  return ParseExperiment(*text, path);
}

std::string FindingsText(const std::string& name, const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    text += name + ":" + std::to_string(finding.line) + ":" + std::to_string(finding.column) + ": " +
            finding.what + "\n";
  }
  return text;
}

}  // namespace partita::lab
