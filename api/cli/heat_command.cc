#include <algorithm>

#include "api/cli/commands.h"
#include "api/cli/figures.h"
#include "api/cli/heat_picture.h"
#include "api/cli/heat_png.h"
#include "api/cli/open_store.h"
#include "api/cli/output_file.h"
#include "api/http/admin_client.h"

// partita heat.

namespace partita {

namespace {

static_assert(kHeatSecondsMax == 14 * 86'400, "as the message says");

ExitCode WriteFile(const std::string& path, std::string_view text, Console& console) {
  OutputFile file(path, console);
  Status written = file.Open();
  if (written.ok()) written = file.Write(text);
  if (written.ok()) written = file.Finish();
  return written.ok() ? ExitCode::kOk : Fail(console, written);
}

Result<std::string> TargetOf(const StoreFlags& store, const HeatFlags& flags) {
  const std::optional<int64_t> seconds = ParseDuration(flags.last);
  if (!seconds || *seconds < 1 || *seconds > kHeatSecondsMax) {
    return Status::InvalidArgument("--last takes a time of 1s to 14d, such as 5m or 1h, not '" + flags.last +
                                   "'");
  }
  std::string target =
      "/heat?seconds=" + std::to_string(*seconds) + "&columns=" + std::to_string(flags.columns) +
      "&buckets=" + std::to_string(flags.rows) + "&top=" + std::to_string(flags.top) + "&by=" + flags.metric;
  if (!flags.table.empty()) target += "&table=" + http::EncodeParameter(TableOnServer(store, flags.table));
  return target;
}

}  // namespace

ExitCode RunHeat(const StoreFlags& store, const HeatFlags& flags, Console& console) {
  const auto metric = std::find(kHeatMetricNames.begin(), kHeatMetricNames.end(), flags.metric);
  if (metric == kHeatMetricNames.end()) return FailUsage(console, "--by: there is no metric " + flags.metric);
  const Result<std::string> target = TargetOf(store, flags);
  if (!target.ok()) return Fail(console, target.status());
  const Result<std::string> answer = http::AskAdmin(flags.admin, *target);
  if (!answer.ok()) return Fail(console, answer.status());
  const Result<HeatReport> report = ParseHeatJson(*answer);
  if (!report.ok()) return Fail(console, report.status());
  const auto by = static_cast<HeatMetric>(metric - kHeatMetricNames.begin());
  if (!flags.html.empty()) return WriteFile(flags.html, HeatHtml(*report, by), console);
  if (!flags.png.empty()) return WriteFile(flags.png, HeatImage(*report, by).Encode(), console);
  if (store.json) {
    console.out << *answer;
    return ExitCode::kOk;
  }
  const HeatStyle style = console.out_is_terminal ? HeatStyle::kColour : HeatStyle::kPlain;
  console.out << DrawHeat(*report, by, style);
  return ExitCode::kOk;
}

}  // namespace partita
