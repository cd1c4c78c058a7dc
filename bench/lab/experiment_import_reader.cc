#include <filesystem>

#include "api/cli/debian_index.h"
#include "api/limits.h"
#include "api/names.h"
#include "bench/lab/experiment_reader.h"

// Records that come from a file of one's own.
namespace partita::lab {

std::string ExperimentReader::PathOf(const std::string& file) const {
  return (std::filesystem::path(directory_) / file).string();
}

void ExperimentReader::ReadColumn(const TomlSection& section, Field field) {
  for (const auto& [key, node] : section.table()) {
    if (key == "column" || key == "type" || key == "epoch" || key == "missing") continue;
    section.Wrong(node, std::string(key.str()) + ": is not for a column");
  }
  if (!top_.Node("data")->as_table()->contains("import")) section.Wrong("column", "needs import in [data]");
  ImportColumn column;
  section.Text("column", &column.name);
  if (section.Has("epoch")) {
    size_t unit = 0;
    section.Choice("epoch", {"s", "ms", "us"}, &unit);
    column.epoch = static_cast<EpochUnit>(unit + 1);
    column.type = PropertyType::kDateTime;
  }
  if (section.Has("type")) {
    size_t type = 0;
    section.Choice("type", {"String", "Int32", "Int64", "Double", "Boolean", "DateTime", "Guid", "Binary"},
                   &type);
    if (section.Has("epoch")) section.Wrong("type", "is DateTime where there is epoch");
    column.type = static_cast<PropertyType>(type + 1);
  }
  field.distribution = Distribution::kColumn;
  field.column = columns_.size();
  field.column_says = column;
  if (section.Has("missing")) {
    if (!column.type) return section.Wrong("missing", "needs a type");
    PropertyValue missing;
    if (!ReadValue(section, *section.Node("missing"), field, &missing)) return;
    column.missing = std::move(missing);
  }
  columns_.push_back(std::move(column));
  TakeField(section, std::move(field));
}

bool ExperimentReader::ReadRowFormat(const TomlSection& section, const std::string& path,
                                     RowFileFormat* format) {
  const bool looks_json = path.ends_with(".jsonl") || path.ends_with(".ndjson") || path.ends_with(".json");
  size_t chosen = looks_json ? 1 : 0;
  if (!section.Has("format") && !looks_json && !path.ends_with(".csv")) {
    section.Wrong(section.Has("import") ? "import" : "file",
                  "the format of '" + path + "' does not show; say format = \"csv\" or \"jsonl\"");
    return false;
  }
  if (section.Has("format")) section.Choice("format", {"csv", "jsonl"}, &chosen);
  format->format = static_cast<RowFormat>(chosen);
  std::string separator(1, format->separator);
  section.Text("separator", &separator);
  if (separator.size() != 1 || separator == "\"" || separator == "\n" || separator == "\r") {
    section.Wrong("separator", "is one character, such as \";\"");
  } else {
    format->separator = separator[0];
  }
  std::vector<std::pair<std::string, const toml::node*>> columns;
  section.Texts("columns", &columns);
  for (auto& [column, node] : columns) format->columns.push_back(std::move(column));
  const bool is_json = format->format == RowFormat::kJsonLines;
  if (is_json && section.Has("columns")) section.Wrong("columns", "is for csv: JSON names its members");
  if (is_json && section.Has("separator")) section.Wrong("separator", "is for csv");
  return section.sound();
}

void ExperimentReader::TakeAllColumns(const TomlSection& data, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    Field field{
        .name = DebianPropertyName(name), .distribution = Distribution::kColumn, .column = columns_.size()};
    columns_.push_back({.name = name});
    const auto same = [&](const Field& other) { return other.name == field.name; };
    if (field.name.empty() || std::any_of(experiment_.fields.begin(), experiment_.fields.end(), same)) {
      data.Wrong("import", "column " + QuotedForMessage(name) +
                               " gives no field name of its own; list the fields in [data.fields]");
      continue;
    }
    TakeField(data, std::move(field));
  }
}

void ExperimentReader::ReadImport(const TomlSection& data) {
  std::string file;
  data.Text("import", &file);
  uint64_t rows_max = ImportedRecords::kRowsMax;
  data.Whole("rows", 1, rows_max, &rows_max);
  RowFileFormat format;
  if (!ReadRowFormat(data, file, &format)) return;
  const std::string path = PathOf(file);
  format.takes_all = !data.Has("fields");
  if (!data.Has("fields")) {
    const Result<std::unique_ptr<RowReader>> reader = RowReader::Open(path, format);
    if (!reader.ok()) return data.Wrong("import", reader.status().message());
    const size_t columns = (*reader)->columns().size();
    if (columns > kCustomPropertiesMax) {
      return data.Wrong("import", "has " + std::to_string(columns) + " columns, and an entity at most " +
                                      std::to_string(kCustomPropertiesMax) +
                                      " properties; list the fields in [data.fields]");
    }
    TakeAllColumns(data, (*reader)->columns());
  }
  if (columns_.empty()) return data.Wrong("import", "no field is a column of it");
  if (!data.sound()) return;
  std::vector<std::string> problems;
  auto imported = ImportedRecords::Read(path, format, columns_, rows_max, &problems);
  if (!imported.ok()) return data.Wrong("import", imported.status().message());
  for (const std::string& problem : problems) data.Wrong("import", problem);
  if (problems.size() >= ImportedRecords::kProblemsMax)
    data.Wrong("import", "there may be more that is wrong with it");
  if (!problems.empty()) return;
  experiment_.imported = std::move(*imported);
  for (Field& field : experiment_.fields) {
    if (field.distribution == Distribution::kColumn) {
      field.column_says = experiment_.imported->columns()[field.column];
    }
  }
  const uint64_t rows = experiment_.imported->rows();
  if (!data.Has("records")) experiment_.records = rows;
  if (experiment_.records > rows) {
    data.Wrong("records", "the file has only " + std::to_string(rows) + " rows");
  }
}

}  // namespace partita::lab
