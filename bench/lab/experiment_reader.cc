#include "bench/lab/experiment_reader.h"

#include <algorithm>
#include <cmath>

#include "api/cli/nearest_name.h"
#include "api/date_time.h"
#include "api/limits.h"
#include "api/names.h"
#include "api/value_text.h"
#include "bench/lab/experiment_checks.h"
#include "bench/lab/key_expression.h"
#include "bench/lab/query_planner.h"

// The whole, and operations. Fields, files of records, layouts and the run are read in files of their own.
namespace partita::lab {
namespace {

constexpr uint64_t kRecordsMax = 1'000'000'000;
// Operations a second: no experiment asks for more, and no closed loop does more, since they are drawn one
// after another.
constexpr double kRateBound = 10'000'000, kClosedRateBound = 1'000'000;

template <typename Named>
std::vector<std::string> NamesOf(const std::vector<Named>& things) {
  std::vector<std::string> names;
  for (const Named& thing : things) names.push_back(thing.name);
  return names;
}

bool IsFileName(std::string_view name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  return !name.empty() && name.size() <= 100 && name[0] != '.' && std::all_of(name.begin(), name.end(), fits);
}

// What the dice bring so many times on average they bring no more often than this, but for one seed of 10^13.
double MostOf(double mean) { return mean + 8 * std::sqrt(mean) + 40; }

double HighestIn(const toml::node& numbers) {
  double highest = 0;
  const auto add = [&](const toml::node& node) {
    if (node.is_number()) highest = std::max(highest, std::min(*node.value<double>(), kRateBound));
  };
  if (const toml::array* array = numbers.as_array()) {
    for (const toml::node& number : *array) add(number);
  } else {
    add(numbers);
  }
  return highest;
}

// The highest rate of the layouts that have an arrival of their own. They are read, and what is wrong with
// them is told, only when it is known how many records there will be.
double OwnRateOf(const toml::node* layouts) {
  double highest = 0;
  if (layouts == nullptr || !layouts->is_array()) return highest;
  for (const toml::node& layout : *layouts->as_array()) {
    const toml::node* arrival = layout.is_table() ? layout.as_table()->get("arrival") : nullptr;
    if (arrival == nullptr || !arrival->is_table()) continue;
    for (const char* key : {"rate", "to"}) {
      const toml::node* numbers = arrival->as_table()->get(key);
      if (numbers != nullptr) highest = std::max(highest, HighestIn(*numbers));
    }
  }
  return highest;
}

}  // namespace

void ExperimentReader::Read() {
  Experiment& experiment = experiment_;
  uint64_t repeats = experiment.repeats;
  if (top_.Require("name")) top_.Text("name", &experiment.name);
  if (top_.Has("name") && !IsFileName(experiment.name)) {
    top_.Wrong("name",
               "is of 1 to 100 letters, digits, - _ and ., and does not begin with a dot: it names files");
  }
  top_.Text("description", &experiment.description);
  top_.Whole("seed", 0, INT64_MAX, &experiment.seed);
  top_.Whole("repeats", 1, 100, &repeats);
  experiment.repeats = static_cast<uint32_t>(repeats);
  if (top_.Require("data")) top_.Section("data", "data", [&](const TomlSection& s) { ReadData(s); });
  if (top_.Require("op")) top_.Sections("op", "op", [&](const TomlSection& s) { ReadOp(s); });
  if (top_.Require("arrival"))
    top_.Section("arrival", "arrival", [&](const TomlSection& s) { ReadArrival(s); });
  SetRecordsMax();
  if (top_.sound()) ReadDerived();
  makes_samples_ = top_.sound();
  if (top_.Require("layout")) top_.Sections("layout", "layout", [&](const TomlSection& s) { ReadLayout(s); });
  top_.Section("limits", "limits", [&](const TomlSection& s) { ReadLimits(s); });
  top_.Section("target", "target", [&](const TomlSection& s) { ReadTarget(s); });
  top_.Section("goal", "goal", [&](const TomlSection& s) { ReadGoal(s); });
  top_.Sections("expect", "expect", [&](const TomlSection& s) { ReadExpectation(s); });
}

void ExperimentReader::SetRecordsMax() {
  const double operations = OperationsMax(), weights = experiment_.weight_sum();
  double written = 0;
  for (const Op& op : experiment_.ops) {
    if (op.writes_new()) written += op.batch * std::min(operations, MostOf(operations * op.weight / weights));
  }
  for (Field& field : experiment_.fields) {
    field.records_max = experiment_.records + static_cast<uint64_t>(std::ceil(written));
  }
}

double ExperimentReader::OperationsMax() const {
  const Arrival& arrival = experiment_.arrival;
  const double seconds = arrival.warmup_s + arrival.duration_s;
  if (arrival.model == ArrivalModel::kReplay) return static_cast<double>(arrival.times.size());
  if (arrival.model == ArrivalModel::kClosed) {
    const double bound = kClosedRateBound * seconds;
    if (arrival.think_s <= 0) return bound;
    return std::min(bound, arrival.clients * (seconds / arrival.think_s + 1));
  }
  const double rate = std::max(arrival.HighestRate().value_or(0), OwnRateOf(top_.Node("layout")));
  return MostOf(2 * rate * seconds);  // A sine rises to twice the rate.
}

void ExperimentReader::ReadData(const TomlSection& data) {
  data.Whole("records", 0, kRecordsMax, &experiment_.records);
  if (!data.Has("import")) {
    for (const char* key : {"format", "separator", "columns", "rows"}) {
      if (data.Has(key)) data.Wrong(key, "goes with import");
    }
  }
  if (data.Has("import") && !data.Has("fields")) return ReadImport(data);
  if (!data.Require("fields")) return;
  const toml::table* fields = data.Node("fields")->as_table();
  if (fields == nullptr || fields->empty()) return data.Wrong("fields", "is a table of fields");
  for (const auto& [key, node] : *fields) {
    const std::string name(key.str());
    if (const toml::table* table = node.as_table()) {
      ReadField(name, data.Inner(*table, "field"));
    } else {
      data.Wrong(node, name + " is a table such as { dist = \"uniform\", n = 100 }");
    }
  }
  if (data.Has("import") && data.sound()) ReadImport(data);
}

std::optional<size_t> ExperimentReader::FieldNamed(const TomlSection& section, const toml::node& node,
                                                   const std::string& name) {
  for (size_t i = 0; i < experiment_.fields.size(); ++i) {
    if (experiment_.fields[i].name == name) return i;
  }
  section.Wrong(node, "no field '" + name + "'" + DidYouMean(name, NamesOf(experiment_.fields)));
  return std::nullopt;
}

std::vector<size_t> ExperimentReader::ReadFields(const TomlSection& section, std::string_view key, bool all) {
  std::vector<size_t> fields;
  std::vector<std::pair<std::string, const toml::node*>> names;
  section.Texts(key, &names);
  for (const auto& [name, node] : names) {
    if (const auto field = FieldNamed(section, *node, name)) fields.push_back(*field);
  }
  if (all && !section.Has(key)) {
    for (size_t i = 0; i < experiment_.fields.size(); ++i) fields.push_back(i);
  }
  return fields;
}

std::string ExperimentReader::ReadName(const TomlSection& section) {
  std::string name;
  if (!section.Require("name")) return name;
  section.Text("name", &name);
  if (name.empty() && section.Node("name")->is_string()) section.Wrong("name", "is empty");
  return name;
}

void ExperimentReader::ReadOp(const TomlSection& section) {
  Op op{.name = ReadName(section)};
  size_t kind = 0;
  if (section.Require("kind")) {
    section.Choice("kind", {"insert", "upsert", "merge", "replace", "delete", "get", "query", "modify"},
                   &kind);
  }
  op.kind = static_cast<OpKind>(kind);
  section.OnlyWith(op.kind == OpKind::kQuery, "kind query", {"order", "limit", "limit_pareto"});
  section.OnlyWith(op.reads(), "kind query and get", {"select"});
  section.Number("weight", 1e-9, 1e9, &op.weight);
  uint64_t batch = 1;
  section.Whole("batch", 1, kTransactionOperationsMax, &batch);
  op.batch = static_cast<uint32_t>(batch);
  if (batch > 1 && !op.writes_new()) section.Wrong("batch", "is for insert and upsert");
  ReadPick(section, &op);
  section.Whole("limit", 1, kRecordsMax, &op.limit);
  op.limit_pareto = ReadPareto(section, "limit_pareto");
  if (op.limit_pareto && !section.Has("limit"))
    section.Wrong("limit_pareto", "needs limit, the most there may be");
  op.select = ReadFields(section, "select", false);
  op.set = ReadFields(section, "set", false);
  if (op.sets() && op.set.empty()) {
    section.Wrong("set", std::string(OpKindName(op.kind)) + " needs the fields that it sets");
  }
  if (!op.sets() && !op.set.empty()) section.Wrong("set", "is for merge and modify");
  ReadOrder(section, &op);
  ReadConditions(section, &op);
  for (const Op& other : experiment_.ops) {
    if (other.name == op.name) section.Wrong("name", "there are two operations '" + op.name + "'");
  }
  experiment_.ops.push_back(std::move(op));
}

void ExperimentReader::ReadPick(const TomlSection& section, Op* op) {
  size_t pick = 0;
  section.Choice("pick", {"uniform", "zipf", "latest", "ranges"}, &pick);
  op->pick = static_cast<Pick>(pick);
  section.OnlyWith(!op->writes_new(), "kinds about a record that exists", {"pick"});
  section.OnlyWith(op->pick == Pick::kRanges, "pick ranges", {"ranges", "range_dist", "key_dist"});
  section.Number("theta", 0.01, 10, &op->theta);
  if (section.Has("theta") && op->pick != Pick::kZipf && op->pick != Pick::kLatest) {
    section.Wrong("theta", "is for pick zipf and latest");
  }
  HotRanges& hot = op->hot_ranges;
  uint64_t ranges = hot.ranges;
  section.Whole("ranges", 1, 10'000, &ranges);
  hot.ranges = static_cast<uint32_t>(ranges);
  std::vector<double> range_dist = {hot.a, hot.b, hot.c, hot.d}, key_dist = {hot.key_a, hot.key_b};
  if (section.Has("range_dist")) range_dist.clear();
  if (section.Has("key_dist")) key_dist.clear();
  section.Numbers("range_dist", -100, 100, &range_dist);
  section.Numbers("key_dist", 0.000'001, 100, &key_dist);
  if (range_dist.size() != 4)
    return section.Wrong("range_dist", "is four numbers: a, b, c, d of a e^(b k) + c e^(d k)");
  if (key_dist.size() != 2) return section.Wrong("key_dist", "is two numbers: a, b of (u / a)^(1 / b)");
  hot.a = range_dist[0];
  hot.b = range_dist[1];
  hot.c = range_dist[2];
  hot.d = range_dist[3];
  hot.key_a = key_dist[0];
  hot.key_b = key_dist[1];
  if (hot.a < 0 || hot.c < 0 || hot.a + hot.c == 0 || hot.b * hot.ranges > 500 || hot.d * hot.ranges > 500) {
    section.Wrong("range_dist", "gives no weights above 0");
  }
}

std::optional<Pareto> ExperimentReader::ReadPareto(const TomlSection& section, std::string_view key) {
  if (!section.Has(key)) return std::nullopt;
  std::vector<double> numbers;
  section.Numbers(key, 0.001, 1e9, &numbers);
  if (numbers.size() != 2) {
    section.Wrong(key, "is two numbers above 0: shape and scale of a generalised Pareto distribution");
    return std::nullopt;
  }
  return Pareto{.shape = numbers[0], .scale = numbers[1]};
}

void ExperimentReader::ReadOrder(const TomlSection& section, Op* op) {
  if (!section.Has("order")) return;
  std::string order;
  section.Text("order", &order);
  op->order_descending = order.ends_with(" desc");
  if (op->order_descending) order.resize(order.size() - 5);
  op->order_field = FieldNamed(section, *section.Node("order"), order);
}

void ExperimentReader::ReadConditions(const TomlSection& section, Op* op) {
  const toml::node* node = section.Node("where");
  if (node == nullptr) return;
  const toml::table* table = node->as_table();
  if (table == nullptr) return section.Wrong("where", "is a table such as { device = \"@record\" }");
  if (op->kind != OpKind::kQuery) section.Wrong("where", "is for query");
  for (const auto& [key, value] : *table) ReadCondition(section, key, value, op);
}

void ExperimentReader::ReadCondition(const TomlSection& section, const toml::key& key, const toml::node& node,
                                     Op* op) {
  const auto field = FieldNamed(section, node, std::string(key.str()));
  if (!field) return;
  const bool clock = experiment_.fields[*field].is_time();
  Condition condition{.field = *field};
  const std::string text = node.value_exact<std::string>().value_or("");
  if (const toml::table* table = node.as_table()) {
    if (!ReadConditionTable(section, *table, &condition)) return;
  } else if (text == "@record") {
    condition.kind = Condition::Kind::kEqualsRecord;
  } else if (clock && text.starts_with("last ")) {
    condition.kind = Condition::Kind::kLast;
    if (!ReadTicks(section, node, std::string_view(text).substr(5), &condition.ticks)) return;
  } else if (!ReadValue(section, node, experiment_.fields[*field], &condition.value)) {
    return;
  }
  op->where.push_back(std::move(condition));
}

bool ExperimentReader::ReadConditionTable(const TomlSection& section, const toml::table& table,
                                          Condition* condition) {
  const Field& field = experiment_.fields[condition->field];
  const toml::node* from = table.get("from");
  const toml::node* to = table.get("to");
  const toml::node* one_of = table.get("one_of");
  const toml::node* from_record = table.get("from_record");
  const bool is_ordered = field.type() != PropertyType::kGuid && field.type() != PropertyType::kBinary;
  if (table.size() == 2 && from != nullptr && to != nullptr && is_ordered) {
    condition->kind = Condition::Kind::kBetween;
    if (!ReadValue(section, *from, field, &condition->value) ||
        !ReadValue(section, *to, field, &condition->value_end)) {
      return false;
    }
    if (CompareValues(condition->value, condition->value_end) < 0) return true;
    section.Wrong(*to, "'to' must lie above 'from'");
    return false;
  }
  if (table.size() == 1 && one_of != nullptr && one_of->as_array() != nullptr &&
      !one_of->as_array()->empty()) {
    condition->kind = Condition::Kind::kOneOf;
    for (const toml::node& node : *one_of->as_array()) {
      if (!ReadValue(section, node, field, &condition->values.emplace_back())) return false;
    }
    return true;
  }
  const bool clock = field.is_time();
  if (table.size() == 1 && from_record != nullptr && clock) {
    condition->kind = Condition::Kind::kFromRecord;
    const std::string text = from_record->value_exact<std::string>().value_or("");
    return ReadTicks(section, *from_record, text, &condition->ticks);
  }
  section.Wrong(table,
                "takes { from = A, to = B }, { one_of = [A, B] }, or of a time { from_record = \"1h\" }");
  return false;
}

bool ExperimentReader::ReadTicks(const TomlSection& section, const toml::node& node, std::string_view text,
                                 int64_t* ticks) {
  const auto seconds = ParseSeconds(text);
  if (seconds && *seconds <= kClockSecondsMax && TicksIn(*seconds) >= 1) {
    *ticks = TicksIn(*seconds);
    return true;
  }
  section.Wrong(node, "takes a time above 0 of at most 36500d, such as \"1h\" or \"last 1h\"");
  return false;
}

bool ExperimentReader::ReadValue(const TomlSection& section, const toml::node& node, const Field& field,
                                 PropertyValue* value) {
  const PropertyType type = field.type();
  const auto text = node.value_exact<std::string>();
  const auto whole = node.value_exact<int64_t>();
  std::string form = text.value_or("");
  if (type == PropertyType::kDouble && node.is_number()) {
    const double number = *node.value<double>();
    *value = number;
    if (std::isfinite(number)) return true;
    section.Wrong(node, "is no finite number: a range that is to be open ends at one beyond all values");
    return false;
  }
  if ((type == PropertyType::kInt64 || type == PropertyType::kInt32) && whole) {
    form = std::to_string(*whole);
  } else if (type == PropertyType::kBoolean && node.is_boolean()) {
    form = *node.value<bool>() ? "true" : "false";
  } else if (!text || type == PropertyType::kInt64 || type == PropertyType::kInt32 ||
             type == PropertyType::kDouble || type == PropertyType::kBoolean) {
    form = "no value";
  }
  Result<PropertyValue> parsed = ParseValueText(type, form);
  if (parsed.ok() && (type != PropertyType::kString || text)) {
    *value = std::move(*parsed);
    return true;
  }
  section.Wrong(node, "is no value of " + field.name + ", which holds " + std::string(EdmTypeName(type)));
  return false;
}

}  // namespace partita::lab
