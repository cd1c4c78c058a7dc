#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace partita {

// What a tool found out, as plain data: named facts, tables of rows, and damages. Printed for people or
// as JSON by who shows it (api/cli/report_printer.h). Text is UTF-8. Value types; not thread-safe.
//
// Names are snake_case and end with their unit: "file_bytes", "commit_latency_us".
using ReportValue = std::variant<std::string, uint64_t, double, bool>;

struct ReportFact {
  std::string name;
  ReportValue value;
  std::string why;  // What it follows from, or what to do about it; may be empty.
};

struct ReportTable {
  std::string name;
  std::vector<std::string> columns;
  std::vector<std::vector<ReportValue>> rows;  // Each as long as `columns`.
};

struct Report {
  std::string title;
  std::vector<ReportFact> facts;
  std::vector<ReportTable> tables;
  std::vector<std::string> damages;  // File, offset, rule; empty: clean.

  void Add(std::string name, ReportValue value, std::string why = {}) {
    facts.push_back({std::move(name), std::move(value), std::move(why)});
  }
};

}  // namespace partita
