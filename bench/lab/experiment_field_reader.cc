#include <algorithm>

#include "api/date_time.h"
#include "api/limits.h"
#include "api/names.h"
#include "bench/lab/experiment_reader.h"

// What records are made of, but for what comes from a file.
namespace partita::lab {
namespace {

constexpr uint64_t kValuesMax = 1'000'000'000;
constexpr double kAnyNumber = 1e300;
constexpr double kWeightMax = 1e9;

// "{:06}" and what stands around it.
std::optional<Field::NumberFormat> ParseNumberFormat(const std::string& text) {
  const size_t open = text.find('{'), close = text.find('}');
  if (open == std::string::npos || close == std::string::npos || close < open) return std::nullopt;
  Field::NumberFormat format{.before = text.substr(0, open), .after = text.substr(close + 1)};
  const std::string inner = text.substr(open + 1, close - open - 1);
  if (inner.empty()) return format;
  if (inner.size() < 3 || inner.size() > 4 || !inner.starts_with(":0")) return std::nullopt;
  for (const char c : inner.substr(2)) {
    if (c < '0' || c > '9') return std::nullopt;
    format.digits = format.digits * 10 + static_cast<uint32_t>(c - '0');
  }
  return format;
}

// A key that its distribution has no use for would be ignored.
void CheckKeysOfField(const TomlSection& section, Distribution of) {
  const auto is = [of](std::initializer_list<Distribution> these) {
    return std::find(these.begin(), these.end(), of) != these.end();
  };
  using enum Distribution;
  section.OnlyWith(is({kConstant}), "dist constant", {"value"});
  section.OnlyWith(is({kUniform, kZipf}), "dist uniform and zipf", {"n"});
  section.OnlyWith(is({kZipf}), "dist zipf", {"theta"});
  section.OnlyWith(is({kWeighted}), "dist weighted", {"values"});
  section.OnlyWith(is({kNormal}), "dist normal", {"mean", "sd", "swing"});
  section.OnlyWith(is({kClock}), "dist clock", {"rhythm", "late", "late_by"});
  section.OnlyWith(is({kSequence, kClock}), "dist sequence and clock", {"start", "step"});
  section.OnlyWith(is({kText}), "dist text", {"bytes", "sigma"});
  section.OnlyWith(is({kSequence, kUniform, kZipf}), "dist sequence, uniform and zipf", {"format"});
  section.OnlyWith(is({kColumn}), "column", {"type", "epoch", "missing"});
  section.OnlyWith(!is({kColumn}), "a dist", {"per", "clock", "text", "pareto"});
}

Distribution ChooseDistribution(const TomlSection& section) {
  size_t chosen = 0;
  section.Choice(
      "dist", {"constant", "sequence", "clock", "uniform", "zipf", "weighted", "normal", "text", "template"},
      &chosen);
  using enum Distribution;
  constexpr Distribution kOrder[] = {kConstant, kSequence, kClock, kUniform, kZipf,
                                     kWeighted, kNormal,   kText,  kTemplate};
  return kOrder[chosen];
}

// Whether making a field needs the field itself, however many lie between.
bool IsMadeOfItself(const std::vector<Field>& fields, size_t index) {
  std::vector<bool> is_needed(fields.size());
  std::vector<size_t> pending = {index};
  const auto need = [&](size_t next) {
    if (!is_needed[next]) pending.push_back(next);
    is_needed[next] = true;
  };
  while (!pending.empty() && !is_needed[index]) {
    const Field& field = fields[pending.back()];
    pending.pop_back();
    if (field.per) need(*field.per);
    if (field.clock) need(*field.clock);
    for (const KeyTemplate::Part& part : field.text_template.parts()) {
      for (const size_t used : part.fields) need(used);
    }
  }
  return is_needed[index];
}

}  // namespace

void ExperimentReader::ReadField(const std::string& name, const TomlSection& section) {
  Field field{.name = name};
  if (section.Has("column")) {
    CheckKeysOfField(section, Distribution::kColumn);
    return ReadColumn(section, std::move(field));
  }
  if (!section.Require("dist")) return;
  field.distribution = ChooseDistribution(section);
  CheckKeysOfField(section, field.distribution);
  section.Text("value", &field.text);
  const bool ranked =
      field.distribution == Distribution::kUniform || field.distribution == Distribution::kZipf;
  if (ranked && !section.Require("n")) field.n = 1;
  section.Whole("n", 1, kValuesMax, &field.n);
  field.n = std::max<uint64_t>(field.n, 1);
  section.Number("theta", 0.01, 10, &field.theta);
  section.Number("mean", -kAnyNumber, kAnyNumber, &field.mean);
  section.Number("sd", 0, kAnyNumber, &field.sd);
  section.Number("sigma", 0, 5, &field.text_sigma);
  section.Number("swing", 0, kAnyNumber, &field.swing);
  uint64_t bytes = 100;
  section.Whole("bytes", 0, kStringUnitsMax, &bytes);
  field.text_size = static_cast<uint32_t>(bytes);
  field.text_pareto = ReadPareto(section, "pareto");
  if (field.text_pareto && field.distribution != Distribution::kText) section.Wrong("pareto", "is for text");
  if (field.text_pareto && field.text_sigma > 0) section.Wrong("pareto", "and sigma are two distributions");
  if (field.distribution == Distribution::kClock) {
    ReadClock(section, &field);
  } else {
    ReadSequence(section, &field);
  }
  ReadFormat(section, &field);
  ReadChoices(section, &field);
  for (const char* key : {"per", "clock", "text"}) {
    if (!section.Has(key)) continue;
    // They name other fields, of which some are still to come.
    derived_.emplace_back(section, experiment_.fields.size());
    break;
  }
  if (field.distribution == Distribution::kTemplate) section.Require("text");
  if (field.swing > 0) section.Require("clock");
  TakeField(section, std::move(field));
}

void ExperimentReader::TakeField(const TomlSection& section, Field field) {
  const Status as_property = IsSystemPropertyName(field.name)
                                 ? Status::InvalidArgument(field.name + " is a name of the service's own")
                                 : CheckPropertyName(field.name);
  if (!as_property.ok()) section.Wrong(section.table(), as_property.message());
  experiment_.fields.push_back(std::move(field));
}

void ExperimentReader::ReadSequence(const TomlSection& section, Field* field) {
  for (const char* key : {"start", "step"}) {
    const toml::node* node = section.Node(key);
    if (node == nullptr) continue;
    const auto number = node->value_exact<int64_t>();
    if (!number) section.Wrong(key, "takes a whole number");
    (key == std::string_view("start") ? field->start : field->step) = number.value_or(0);
  }
  CheckSteps(section, *field, INT64_MIN, INT64_MAX);
}

void ExperimentReader::CheckSteps(const TomlSection& section, const Field& field, int64_t min, int64_t max) {
  const __int128 last =
      static_cast<__int128>(field.start) + static_cast<__int128>(experiment_.records) * field.step;
  if (last >= min && last <= max) return;
  section.Wrong("step", field.distribution == Distribution::kClock
                            ? "the clock leaves the years 1601 to 9999 before all records are there"
                            : "the numbers leave 64 bits before all records are there");
}

void ExperimentReader::ReadClock(const TomlSection& section, Field* field) {
  std::string start = "2026-01-01T00:00:00Z";
  const toml::node* node = section.Node("start");
  if (node != nullptr && node->is_string()) section.Text("start", &start);
  const Result<DateTime> time = ParseDateTime(start);
  if (!time.ok() || (node != nullptr && !node->is_string())) {
    section.Wrong("start", "a clock begins at a time such as \"2026-01-31T00:00:00Z\"");
  } else {
    field->start = static_cast<int64_t>(time->ticks);
  }
  double step = 1;
  section.Seconds("step", kClockSecondsMax, &step);
  field->step = TicksIn(step);
  section.Number("rhythm", 0, 0.95, &field->rhythm);
  section.Number("late", 0, 1, &field->late_share);
  double late_by = 60;
  section.Seconds("late_by", kClockSecondsMax, &late_by);
  field->late_ticks = TicksIn(late_by);
  CheckSteps(section, *field, 0, static_cast<int64_t>(kDateTimeTicksMax));
}

void ExperimentReader::ReadFormat(const TomlSection& section, Field* field) {
  if (!section.Has("format")) return;
  std::string text;
  section.Text("format", &text);
  field->format = ParseNumberFormat(text);
  if (!field->format) section.Wrong("format", "is text with {} or {:06} in it, for the number");
}

void ExperimentReader::ReadChoices(const TomlSection& section, Field* field) {
  if (field->distribution != Distribution::kWeighted || !section.Require("values")) return;
  const toml::table* values = section.Node("values")->as_table();
  if (values == nullptr || values->empty())
    return section.Wrong("values", "is a table such as { temp = 70, door = 30 }");
  for (const auto& [key, node] : *values) {
    const double weight = node.is_number() ? *node.value<double>() : -1;
    if (!(weight > 0 && weight <= kWeightMax))
      section.Wrong(node, "the weight of " + std::string(key.str()) + " is a number above 0, at most 1e9");
    field->choices.emplace_back(std::string(key.str()), weight);
  }
}

void ExperimentReader::ReadDerived() {
  for (const auto& [section, index] : derived_) {
    Field& field = experiment_.fields[index];
    const auto named = [&](const char* key) -> std::optional<size_t> {
      if (!section.Has(key)) return std::nullopt;
      std::string name;
      section.Text(key, &name);
      return FieldNamed(section, *section.Node(key), name);
    };
    field.per = named("per");
    field.clock = named("clock");
    const bool is_drawn =
        field.distribution >= Distribution::kUniform && field.distribution <= Distribution::kText;
    if (section.Has("per") && !is_drawn)
      section.Wrong("per", "is for uniform, zipf, weighted, normal and text");
    if (section.Has("clock") && field.swing <= 0) section.Wrong("clock", "goes with swing");
    if (field.clock && !experiment_.fields[*field.clock].is_time()) section.Wrong("clock", "names no time");
    if (section.Has("text")) ReadTextTemplate(section, &field);
  }
  for (const auto& [section, index] : derived_) {
    if (!IsMadeOfItself(experiment_.fields, index)) continue;
    section.Wrong(section.table(), experiment_.fields[index].name + " is made of itself");
    // Nobody must follow it.
    experiment_.fields[index] = {.name = experiment_.fields[index].name};
  }
}

void ExperimentReader::ReadTextTemplate(const TomlSection& section, Field* field) {
  if (field->distribution != Distribution::kTemplate) return section.Wrong("text", "is for template");
  if (!ReadTemplate(section, "text", &field->text_template)) return;
  for (const KeyTemplate::Part& part : field->text_template.parts()) {
    for (const size_t used : part.fields) {
      // How long its texts are may not be known yet.
      if (experiment_.fields[used].distribution != Distribution::kTemplate) continue;
      section.Wrong("text", experiment_.fields[used].name + " is a template itself; name what it is made of");
    }
  }
}

}  // namespace partita::lab
