#include "api/cli/commands.h"
#include "api/cli/report_printer.h"
#include "api/cli/stalls_json.h"
#include "api/date_time.h"
#include "api/http/admin_client.h"
#include "engine/inspect_text.h"

// partita stalls.

namespace partita {

namespace {

constexpr size_t kLastShown = 20;

Report DescribeStalls(const StallSummary& stalls, const std::string& whose) {
  Report report;
  report.title = "stalls of " + whose;
  ReportTable shards{"shards", {"shard", "stalls", "own", "lasted_ms", "ran_ms", "longest_ms"}, {}};
  for (const StallCount& count : stalls.shards) {
    shards.rows.push_back({uint64_t{shards.rows.size()}, count.stalls, count.own, count.lasted_ms,
                           count.ran_ms, count.longest_ms});
  }
  ReportTable places{"places", {"place", "stalls", "own", "lasted_ms", "ran_ms", "longest_ms"}, {}};
  for (const StallPlace& place : stalls.places) {
    places.rows.push_back({SafeText(place.place), place.count.stalls, place.count.own, place.count.lasted_ms,
                           place.count.ran_ms, place.count.longest_ms});
  }
  ReportTable last{"last", {"began", "shard", "lasted_ms", "ran_ms", "from", "to"}, {}};
  for (const StallEvent& stall : stalls.last) {
    if (last.rows.size() == kLastShown) break;
    last.rows.push_back({FormatDateTime(DateTime{stall.began_ticks}), uint64_t{stall.shard}, stall.lasted_ms,
                         stall.ran_ms, SafeText(stall.from), SafeText(stall.to)});
  }
  report.tables = {std::move(shards), std::move(places), std::move(last)};
  return report;
}

}  // namespace

ExitCode RunStalls(const StallsFlags& flags, bool json, Console& console) {
  const Result<std::string> answer = http::AskAdmin(flags.admin, "/stalls");
  if (!answer.ok()) return Fail(console, answer.status());
  const Result<StallSummary> stalls = ParseStallsJson(*answer);
  if (!stalls.ok()) return Fail(console, stalls.status());
  if (json) {
    console.out << *answer;
  } else {
    PrintReport(console.out, DescribeStalls(*stalls, flags.admin));
  }
  return ExitCode::kOk;
}

}  // namespace partita
