#include "bench/lab/experiment_file.h"

#include <toml++/toml.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <tuple>

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
  std::error_code ignored;  // Opening tells what there is to it.
  if (std::filesystem::is_directory(path, ignored)) {
    return Status::InvalidArgument("experiment " + path + ": a directory; the path of a TOML file is wanted");
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    const std::string what = "experiment " + path + ": " + std::strerror(errno);
    return errno == ENOENT ? Status::NotFound(what) : Status::IoError(what);
  }
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (in.bad()) return Status::IoError("experiment " + path + ": reading failed");
  return ParseExperiment(text, path);
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
