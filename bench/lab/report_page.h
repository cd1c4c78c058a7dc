#pragma once
#include <string>
#include <string_view>

#include "engine/base/result.h"

namespace partita::lab {

// A run's result.json as one page that needs nothing else and asks for nothing: the verdict, what to change,
// and for each layout where load lay over time, latency and throttling, a histogram, what each operation does
// and costs. The text goes into the page as it is. kInvalidArgument: it is no result.json with timelines.
Result<std::string> ReportHtml(std::string_view result_json);

// Whether a file is such a page, whatever it reports.
bool IsReport(std::string_view text);

// The parts of the page that are the same for all (report_style.cc, report_script.cc).
extern const char* const kReportStyle;
extern const char* const kReportScript;
extern const char* const kReportCharts;

}  // namespace partita::lab
