#include "api/cli/report_printer.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>
#include <string>

#include "api/cli/figures.h"
#include "api/cli/jsonl.h"
#include "engine/base/assert.h"

namespace partita {

namespace {

std::string FormatDouble(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.3f", value);
  return text;
}

// Names end with their unit.
bool IsBytes(std::string_view name) {
  return name == "bytes" || name.ends_with("_bytes") || name.ends_with("_bytes_max");
}

std::string TextOf(std::string_view name, const ReportValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "yes" : "no";
  if (const auto* real = std::get_if<double>(&value)) return FormatDouble(*real);
  const uint64_t number = std::get<uint64_t>(value);
  if (!IsBytes(name)) return std::to_string(number);
  if (number == UINT64_MAX) return "unlimited";
  return number < 1024 ? FormatBytes(number) : FormatBytes(number) + " (" + std::to_string(number) + ")";
}

std::string Spaced(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

void Pad(std::string* line, size_t width) {
  line->append(width > line->size() ? width - line->size() : 0, ' ');
}

void PrintTable(std::ostream& out, const ReportTable& table) {
  out << "\n" << Spaced(table.name) << " (" << table.rows.size() << ")\n";
  std::vector<size_t> widths;
  std::vector<std::vector<std::string>> cells;
  for (const std::string& column : table.columns) widths.push_back(column.size());
  for (const auto& row : table.rows) {
    std::vector<std::string>& texts = cells.emplace_back();
    for (size_t i = 0; i < row.size(); ++i) {
      texts.push_back(TextOf(table.columns[i], row[i]));
      widths[i] = std::max(widths[i], texts[i].size());
    }
  }
  auto print_line = [&out, &widths](const std::vector<std::string>& texts) {
    std::string line;
    size_t end = 0;
    for (size_t i = 0; i < texts.size(); ++i) {
      line += (i == 0 ? "  " : "  ") + texts[i];
      end += widths[i] + 2;
      if (i + 1 < texts.size()) Pad(&line, end);
    }
    out << line << "\n";
  };
  std::vector<std::string> head;
  for (const std::string& column : table.columns) head.push_back(Spaced(column));
  print_line(head);
  for (const auto& texts : cells) print_line(texts);
}

void AppendJsonValue(std::string* out, const ReportValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    AppendJsonString(out, *text);
  } else if (const auto* flag = std::get_if<bool>(&value)) {
    *out += *flag ? "true" : "false";
  } else if (const auto* real = std::get_if<double>(&value)) {
    *out += std::isfinite(*real) ? FormatDouble(*real) : "null";
  } else {
    *out += std::to_string(std::get<uint64_t>(value));
  }
}

void AppendJsonTable(std::string* out, const ReportTable& table) {
  AppendJsonString(out, table.name);
  *out += ":[";
  for (size_t r = 0; r < table.rows.size(); ++r) {
    *out += r == 0 ? "{" : ",{";
    for (size_t i = 0; i < table.columns.size(); ++i) {
      if (i > 0) *out += ",";
      AppendJsonString(out, table.columns[i]);
      *out += ":";
      AppendJsonValue(out, table.rows[r][i]);
    }
    *out += "}";
  }
  *out += "]";
}

// Of the object as JSON. Who reads it keeps one value of a name that is there twice.
bool NamesAreUnique(const Report& report) {
  std::set<std::string> names = {"title", "damages"};
  for (const ReportFact& fact : report.facts) {
    if (!names.insert(fact.name).second) return false;
    if (!fact.why.empty() && !names.insert(fact.name + "_why").second) return false;
  }
  return std::all_of(report.tables.begin(), report.tables.end(), [&names](const ReportTable& table) {
    return names.insert(table.name).second &&
           std::set<std::string>(table.columns.begin(), table.columns.end()).size() == table.columns.size();
  });
}

}  // namespace

void PrintReport(std::ostream& out, const Report& report) {
  out << report.title << "\n";
  size_t name_width = 0, value_width = 0;
  for (const ReportFact& fact : report.facts) {
    name_width = std::max(name_width, fact.name.size());
    const size_t width = TextOf(fact.name, fact.value).size();
    if (width <= 32) value_width = std::max(value_width, width);
  }
  for (const ReportFact& fact : report.facts) {
    std::string line = "  " + Spaced(fact.name);
    Pad(&line, name_width + 4);
    line += TextOf(fact.name, fact.value);
    if (!fact.why.empty()) {
      Pad(&line, name_width + value_width + 6);
      line += "  " + fact.why;
    }
    out << line << "\n";
  }
  for (const ReportTable& table : report.tables) PrintTable(out, table);
  if (report.damages.empty()) return;
  out << "\nfound (" << report.damages.size() << ")\n";
  for (const std::string& damage : report.damages) out << "  " << damage << "\n";
}

void PrintReportJson(std::ostream& out, const Report& report) {
  PARTITA_DEBUG_ASSERT(NamesAreUnique(report));
  std::string text = "{\"title\":";
  AppendJsonString(&text, report.title);
  for (const ReportFact& fact : report.facts) {
    text += ",";
    AppendJsonString(&text, fact.name);
    text += ":";
    AppendJsonValue(&text, fact.value);
    if (fact.why.empty()) continue;
    text += ",";
    AppendJsonString(&text, fact.name + "_why");
    text += ":";
    AppendJsonString(&text, fact.why);
  }
  for (const ReportTable& table : report.tables) {
    text += ",";
    AppendJsonTable(&text, table);
  }
  text += ",\"damages\":[";
  for (size_t i = 0; i < report.damages.size(); ++i) {
    if (i > 0) text += ",";
    AppendJsonString(&text, report.damages[i]);
  }
  out << text << "]}\n";
}

void PrintAsAsked(const StoreFlags& store, const Report& report, Console& console) {
  store.json ? PrintReportJson(console.out, report) : PrintReport(console.out, report);
}

}  // namespace partita
