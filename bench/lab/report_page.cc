#include "bench/lab/report_page.h"

#include <simdjson.h>

namespace partita::lab {
namespace {

// No source of anything is allowed but the page itself.
constexpr const char* kHead = R"html(<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>Key-layout lab</title><style>)html";
constexpr std::string_view kTitle = "<title>Key-layout lab</title>";
constexpr const char* kBody = R"html(</style></head><body>
<svg width="0" height="0" aria-hidden="true" style="position:absolute"><defs>
<pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
<path d="M0 0v5" stroke="currentColor" stroke-width="2.4"/></pattern></defs></svg>
<a class="skip" href="#verdict">To the verdict</a><header id="head"></header><main id="main"></main>
<noscript>The figures are in this file as JSON; drawing them takes a script.</noscript>
<script type="application/json" id="data">)html";

Status Check(std::string_view result_json) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  simdjson::dom::array cells, explain;
  int64_t format = 0;
  if (parser.parse(simdjson::padded_string(result_json)).get(root) != simdjson::SUCCESS ||
      root["format"].get(format) != simdjson::SUCCESS || format != 1 ||
      root["cells"].get(cells) != simdjson::SUCCESS || root["explain"].get(explain) != simdjson::SUCCESS) {
    return Status::InvalidArgument("this is no result.json of partita lab run");
  }
  if (cells.size() == 0 || explain.size() == 0) {
    return Status::InvalidArgument("this result.json holds no runs");
  }
  for (const simdjson::dom::element cell : cells) {
    if (cell["timeline"].error() != simdjson::SUCCESS) {
      return Status::InvalidArgument("this result.json is of an older partita and holds no timelines");
    }
  }
  return Status();
}

}  // namespace

bool IsReport(std::string_view text) {
  return text.substr(0, std::string_view(kHead).size()).find(kTitle) != std::string_view::npos;
}

Result<std::string> ReportHtml(std::string_view result_json) {
  PARTITA_TRY(Check(result_json));
  std::string page = std::string(kHead) + kReportStyle + kBody;
  // Within a script only the beginning of a tag would end it.
  for (const char c : result_json) {
    if (c == '<') {
      page += "\\u003c";
    } else {
      page.push_back(c);
    }
  }
  return page + "</script><script>" + kReportScript + kReportCharts + "</script></body></html>\n";
}

}  // namespace partita::lab
