#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "api/cli/figures.h"
#include "bench/lab/experiment_reader.h"
#include "bench/lab/metrics.h"

// What concerns the run: arrival, limits, target, goal, expectations.
namespace partita::lab {
namespace {

constexpr double kRateMax = 10'000'000;
constexpr uint64_t kClientsMax = 512;
constexpr uint64_t kTimesMax = 10'000'000;
constexpr const char* kTooManyTimes = "has more than ten million times";

// The index of the thing called `name`.
template <typename Named>
std::optional<size_t> IndexOf(const std::vector<Named>& things, const std::string& name) {
  for (size_t i = 0; i < things.size(); ++i) {
    if (things[i].name == name) return i;
  }
  return std::nullopt;
}

// Each is a cell of its own, which is known by its rate.
void CheckRatesDiffer(const TomlSection& section, const Arrival& arrival) {
  if (arrival.model == ArrivalModel::kSteps) return;
  std::vector<double> rates = arrival.rates;
  std::sort(rates.begin(), rates.end());
  if (std::adjacent_find(rates.begin(), rates.end()) != rates.end()) {
    section.Wrong("rate", "has a rate twice: repeats says how often each is run");
  }
}

}  // namespace

void ExperimentReader::ReadArrival(const TomlSection& section) {
  Arrival& arrival = experiment_.arrival;
  size_t model = 0;
  section.Choice("model", {"constant", "poisson", "ramp", "steps", "burst", "diurnal", "replay", "closed"},
                 &model);
  arrival.model = static_cast<ArrivalModel>(model);
  ReadShape(section, &arrival);
  section.OnlyWith(arrival.model == ArrivalModel::kReplay, "model replay",
                   {"times", "file", "column", "format", "separator", "columns", "unit", "scale"});
  section.OnlyWith(arrival.model == ArrivalModel::kClosed, "model closed", {"think"});
  section.Number("scale", 1e-6, 1e6, &arrival.scale);
  if (arrival.model == ArrivalModel::kReplay) ReadReplay(section);
  uint64_t clients = arrival.clients;
  section.Whole("clients", 1, kClientsMax, &clients);
  arrival.clients = static_cast<uint32_t>(clients);
  section.Seconds("think", kRunSecondsMax, &arrival.think_s);
  section.Seconds("warmup", kRunSecondsMax, &arrival.warmup_s);
  section.Seconds("duration", kRunSecondsMax, &arrival.duration_s);
  if (arrival.duration_s < 0.1) section.Wrong("duration", "is at least 100ms");
}

void ExperimentReader::ReadShape(const TomlSection& section, Arrival* to) {
  Arrival& arrival = *to;
  section.Numbers("rate", 0.01, kRateMax, &arrival.rates);
  const bool needs_rate = arrival.model != ArrivalModel::kReplay && arrival.model != ArrivalModel::kClosed;
  if (needs_rate) section.Require("rate");
  section.OnlyWith(needs_rate, "models but replay and closed", {"rate"});
  if (needs_rate && section.Has("rate") && arrival.rates.empty()) section.Wrong("rate", "takes at least one");
  // So that it is one cell; how fast that is Arrival::HighestRate knows.
  if (!needs_rate || arrival.rates.empty()) arrival.rates = {1};
  CheckRatesDiffer(section, arrival);
  if (arrival.model == ArrivalModel::kRamp) section.Require("to");
  section.Number("to", 0, kRateMax, &arrival.rate_end);
  section.Seconds("on", kRunSecondsMax, &arrival.on_s);
  section.Seconds("off", kRunSecondsMax, &arrival.off_s);
  section.Number("amplitude", 0, 1, &arrival.amplitude);
  section.Seconds("period", kRunSecondsMax, &arrival.period_s);
  section.OnlyWith(arrival.model == ArrivalModel::kRamp, "model ramp", {"to"});
  section.OnlyWith(arrival.model == ArrivalModel::kBurst, "model burst", {"on", "off"});
  section.OnlyWith(arrival.model == ArrivalModel::kDiurnal, "model diurnal", {"amplitude", "period"});
  if (arrival.on_s <= 0) section.Wrong("on", "is a time above 0");
  if (arrival.period_s <= 0) section.Wrong("period", "is a time above 0");
}

void ExperimentReader::ReadOwnArrival(const TomlSection& section, Layout* layout) {
  const Arrival& common = experiment_.arrival;
  if (common.model == ArrivalModel::kSteps || common.model >= ArrivalModel::kReplay) {
    return section.Wrong(
        section.table(),
        "a layout has an arrival of its own where that of all is no steps, replay or closed");
  }
  Arrival own = common;
  size_t chosen = 0;
  section.Choice("model", {"constant", "poisson", "ramp", "burst", "diurnal"}, &chosen);
  constexpr ArrivalModel kModels[] = {ArrivalModel::kConstant, ArrivalModel::kPoisson, ArrivalModel::kRamp,
                                      ArrivalModel::kBurst, ArrivalModel::kDiurnal};
  own.model = kModels[chosen];
  own.rates.clear();
  ReadShape(section, &own);
  if (own.rates.size() != common.rates.size()) section.Wrong("rate", "has as many as that of [arrival]");
  layout->arrival = std::move(own);
}

void ExperimentReader::ReadReplay(const TomlSection& section) {
  Arrival& arrival = experiment_.arrival;
  section.Numbers("times", 0, kRunSecondsMax, &arrival.times);
  if (section.Has("file")) {
    std::string path;
    section.Text("file", &path);
    if (section.Has("column")) {
      ReadTraceTimes(section, path);
    } else {
      ReadPlainTimes(section, path);
    }
    const auto outside = [](double time) { return !(time >= 0 && time <= kRunSecondsMax); };
    if (std::any_of(arrival.times.begin(), arrival.times.end(), outside)) {
      section.Wrong("file", "holds times that are not from 0 to 604800 seconds");
    }
  }
  if (arrival.times.empty()) section.Wrong("model", "replay needs times, or a file of them");
  if (!std::is_sorted(arrival.times.begin(), arrival.times.end()))
    section.Wrong("model", "replay: times must not fall");
}

void ExperimentReader::ReadPlainTimes(const TomlSection& section, const std::string& path) {
  std::error_code error;
  // Of a FIFO reading would wait for a writer.
  if (!std::filesystem::is_regular_file(PathOf(path), error)) {
    return section.Wrong("file", "cannot be read: '" + path + "' is no plain file");
  }
  std::ifstream file(PathOf(path));
  std::vector<double>& times = experiment_.arrival.times;
  for (double time = 0; times.size() <= kTimesMax && file >> time;) times.push_back(time);
  if (times.size() > kTimesMax) return section.Wrong("file", kTooManyTimes);
  if (!file.eof()) section.Wrong("file", "cannot be read: a time in seconds on each line is expected");
}

void ExperimentReader::ReadTraceTimes(const TomlSection& section, const std::string& path) {
  RowFileFormat format;
  if (!ReadRowFormat(section, path, &format)) return;
  ImportColumn column;
  section.Text("column", &column.name);
  size_t unit = 0;
  if (section.Has("unit")) section.Choice("unit", {"s", "ms", "us"}, &unit);
  const bool is_time = !section.Has("unit");
  column.type = PropertyType::kDateTime;
  if (!is_time) column.epoch = static_cast<EpochUnit>(unit + 1);
  std::vector<std::string> problems;
  const auto rows = ImportedRecords::Read(PathOf(path), format, {column}, kTimesMax + 1, &problems);
  if (!rows.ok()) return section.Wrong("file", rows.status().message());
  for (const std::string& problem : problems) section.Wrong("file", problem);
  if (!problems.empty()) return;
  if ((*rows)->rows() > kTimesMax) return section.Wrong("file", kTooManyTimes);
  std::vector<PropertyValue> values;
  uint64_t first = 0;
  for (uint64_t row = 0; row < (*rows)->rows(); ++row) {
    (*rows)->Decode(row, &values);
    const uint64_t ticks = values[0].if_date_time()->ticks;
    if (row == 0) first = ticks;
    // What falls is told with all others.
    experiment_.arrival.times.push_back((static_cast<double>(ticks) - static_cast<double>(first)) / 1e7);
  }
}

void ExperimentReader::ReadLimits(const TomlSection& section) {
  std::string profile = "off";
  section.Text("profile", &profile);
  Result<ThroughputTargets> targets = ParseThroughputTargets(profile);
  if (targets.ok()) {
    experiment_.limits = std::move(*targets);
  } else {
    section.Wrong("profile", targets.status().message());
  }
  size_t throttled = 0;
  section.Choice("throttled", {"drop", "retry"}, &throttled);
  experiment_.on_throttled = static_cast<OnThrottled>(throttled);
}

void ExperimentReader::ReadTarget(const TomlSection& section) {
  size_t kind = 0, durability = 1;
  section.Choice("kind", {"embedded", "http", "rocksdb"}, &kind);
  experiment_.target = static_cast<TargetKind>(kind);
  ReadService(section);
  section.Choice("durability", {"power", "process", "memory"}, &durability);
  experiment_.durability = static_cast<uint8_t>(durability + 1);
  uint64_t shards = 0;
  section.Whole("shards", 1, 256, &shards);
  experiment_.shards = static_cast<uint32_t>(shards);
  if (!section.Has("memory")) return;
  std::string memory;
  section.Text("memory", &memory);
  const Result<uint64_t> bytes = ParseBytes(memory);
  if (!bytes.ok() || *bytes < 64u << 20)
    return section.Wrong("memory", "is a size such as \"256M\", at least 64M");
  experiment_.memory_bytes = *bytes;
}

void ExperimentReader::ReadService(const TomlSection& section) {
  section.Text("connection", &experiment_.connection);
  section.Text("url", &experiment_.url);
  section.Text("credential", &experiment_.credential);
  const bool any = section.Has("connection") || section.Has("url") || section.Has("credential");
  if (experiment_.target != TargetKind::kHttp) {
    if (any) section.Wrong("kind", "must be http for connection, url and credential");
    return;
  }
  const std::string& connection = experiment_.connection;
  if (section.Has("connection") == section.Has("url")) {
    section.Wrong("kind", "http takes either connection, or url with credential");
  }
  if (section.Has("url") != section.Has("credential")) {
    section.Wrong("url", "and credential belong together");
  }
  if (!connection.empty() && !connection.starts_with("env:") && connection != "UseDevelopmentStorage=true") {
    section.Wrong(
        "connection",
        "is env:NAME of a variable that holds the connection string, or UseDevelopmentStorage=true: "
        "keys do not belong into files");
  }
  if (!experiment_.credential.empty() && !experiment_.credential.starts_with("env:")) {
    section.Wrong("credential", "is env:NAME of a variable that holds the account's key, or a signature");
  }
}

void ExperimentReader::ReadGoal(const TomlSection& section) {
  if (section.Has("p99")) {
    double seconds = 0;
    section.Seconds("p99", kRunSecondsMax, &seconds);
    experiment_.goal.p99_ms = seconds * 1e3;
  }
  if (section.Has("throttled")) section.Number("throttled", 0, 1, &experiment_.goal.throttled.emplace());
}

std::optional<size_t> ExperimentReader::LayoutNamed(const TomlSection& section, std::string_view key) {
  if (!section.Has(key)) return std::nullopt;
  std::string name;
  section.Text(key, &name);
  const auto found = IndexOf(experiment_.layouts, name);
  if (!found) section.Wrong(key, "there is no layout '" + name + "'");
  return found;
}

std::optional<size_t> ExperimentReader::OpNamed(const TomlSection& section, std::string_view key) {
  if (!section.Has(key)) return std::nullopt;
  std::string name;
  section.Text(key, &name);
  const auto found = IndexOf(experiment_.ops, name);
  if (!found) section.Wrong(key, "there is no operation '" + name + "'");
  return found;
}

void ExperimentReader::ReadExpectation(const TomlSection& section) {
  Expectation expectation{.line = section.table().source().begin.line};
  std::vector<std::string> metrics = MetricNames();
  metrics.emplace_back(kHotShare);
  metrics.emplace_back("plan");
  size_t metric = 0;
  if (section.Require("metric")) section.Choice("metric", metrics, &metric);
  expectation.metric = metrics[metric];
  if (section.Require("layout")) expectation.layout = LayoutNamed(section, "layout").value_or(0);
  expectation.op = OpNamed(section, "op");
  expectation.times_of = LayoutNamed(section, "times_of");
  const auto number = [&](std::string_view key, std::optional<double>* out) {
    if (section.Has(key)) section.Number(key, -1e300, 1e300, &out->emplace());
  };
  number("above", &expectation.above);
  number("below", &expectation.below);
  number("equals", &expectation.equals);
  if (section.Has("is")) section.Text("is", &expectation.is.emplace());
  if (expectation.metric == kHotShare && expectation.op) {
    section.Wrong("op", "hot_share is of all operations together");
  }
  if (expectation.metric == "hottest_rate" && experiment_.arrival.model == ArrivalModel::kClosed) {
    section.Wrong("metric",
                  "hottest_rate is predicted, and how fast a closed loop is is known when it has run");
  }
  const bool is_plan = expectation.metric == "plan";
  section.OnlyWith(is_plan, "metric plan", {"is"});
  section.OnlyWith(!is_plan, "metrics that are numbers", {"above", "below", "equals", "times_of"});
  if (is_plan && !(expectation.is && expectation.op)) {
    section.Wrong("metric", "plan needs op and is");
  } else if (is_plan) {
    size_t plan = 0;
    section.Choice("is", {"point", "row-range", "partition", "partition-range", "table-scan"}, &plan);
  } else if (!expectation.above && !expectation.below && !expectation.equals) {
    section.Wrong("metric", "needs above, below or equals");
  }
  experiment_.expectations.push_back(std::move(expectation));
}

}  // namespace partita::lab
