#include "bench/lab/experiment_keys.h"

#include "bench/lab/json_text.h"

namespace partita::lab {
namespace {

struct ExperimentKey {
  std::string_view section;
  std::string_view name;
  // "text", "texts", "whole", "number", "numbers", "flag", "time" ("250ms", "1h"), "any"; "section X",
  // "sections X" for a table or an array of tables of section X; "map X" for a table of them under names of
  // one's own.
  std::string_view type;
  std::string_view manual;
};

constexpr ExperimentKey kKeys[] = {
    {"", "name", "text", "What the experiment is called"},
    {"", "description", "text", "What it shows"},
    {"", "seed", "whole", "The same seed gives the same records and operations; default 1"},
    {"", "repeats", "whole", "How often each layout is run, in turns with the others; default 3"},
    {"", "data", "section data", "What the application knows: its records"},
    {"", "op", "sections op", "What it does: its operations"},
    {"", "layout", "sections layout", "The ways to make keys and entities of records that are compared"},
    {"", "arrival", "section arrival", "When operations come"},
    {"", "limits", "section limits", "Throughput targets"},
    {"", "target", "section target", "What is measured"},
    {"", "goal", "section goal", "What is good enough"},
    {"", "expect", "sections expect", "Figures that must come out; else the run ends with exit code 1"},
    {"data", "records", "whole",
     "How many are there before the operations begin; with import, default all of the file's rows"},
    {"data", "fields", "map field", "The fields of each, by name; with import, default all of its columns"},
    {"data", "import", "text",
     "A file of one's own that the records come from, named from the experiment's directory on"},
    {"data", "format", "text", "import: csv or jsonl; default by the file's name"},
    {"data", "separator", "text", "import, csv: the character between fields; default a comma"},
    {"data", "columns", "texts", "import, csv: the names of the columns, where the file has no header line"},
    {"data", "rows", "whole", "import: so many rows are read at most; default all, up to 100 million"},
    {"field", "dist", "text", "constant, sequence, clock, uniform, zipf, weighted, normal, text or template"},
    {"field", "column", "text", "Instead of dist, with import: the column of the file that it is"},
    {"field", "type", "text",
     "column: String, Int32, Int64, Double, Boolean, DateTime, Guid or Binary; default what all values fit: "
     "numbers only where each comes back digit for digit, so not of 007, 1e3, or twenty digits"},
    {"field", "epoch", "text", "column: its numbers are times, in s, ms or us since 1970"},
    {"field", "missing", "any", "column: what stands for a missing value; default: none may be missing"},
    {"field", "value", "text", "constant: which"},
    {"field", "n", "whole", "uniform, zipf: how many values there are, from 0"},
    {"field", "theta", "number", "zipf: the skew, 0.01 to 10; default 0.99"},
    {"field", "values", "map weight", "weighted: each value with its weight"},
    {"field", "mean", "number", "normal"},
    {"field", "sd", "number", "normal: the standard deviation"},
    {"field", "swing", "number",
     "normal: the mean goes up and down by it over a day, highest at noon of clock"},
    {"field", "clock", "text", "normal, swing: the field with the time"},
    {"field", "per", "text",
     "uniform, zipf, weighted, normal, text: drawn once for each value of this field, such as a city per "
     "customer"},
    {"field", "text", "text", "template: text made of other fields as keys are, such as {n / 20:04}"},
    {"field", "rhythm", "number",
     "clock: how much denser records are at noon and rarer at midnight, 0 to 0.95; default 0"},
    {"field", "late", "number",
     "clock: the share of records whose time lies before that of their neighbours"},
    {"field", "late_by", "time", "clock: how long they are late on average; default 60s"},
    {"field", "start", "any",
     "sequence: the first number, default 0; clock: the first time, default 2026-01-01"},
    {"field", "step", "any", "sequence: to the next record, default 1; clock: a time, default 1s"},
    {"field", "bytes", "whole", "text: characters"},
    {"field", "pareto", "numbers",
     "text: of a length by a generalised Pareto distribution, its shape and scale, up to bytes"},
    {"field", "sigma", "number", "text: of a log-normal length around bytes; default 0, all alike"},
    {"field", "format", "text", "sequence, uniform, zipf: makes text of the number, such as dev-{:06}"},
    {"op", "name", "text", "What it is called in reports"},
    {"op", "kind", "text",
     "insert, upsert, merge, replace, delete, get, query, or modify: get, and merge if nobody changed it"},
    {"op", "weight", "number", "How often it comes, against the others; default 1"},
    {"op", "batch", "whole", "insert, upsert: records of one operation, 1 to 100; default 1"},
    {"op", "pick", "text",
     "Which record it is about: uniform, zipf (the oldest most), latest, or ranges (as in MixGraph); default "
     "uniform"},
    {"op", "theta", "number", "zipf, latest: the skew, 0.01 to 10; default 0.99"},
    {"op", "ranges", "whole", "ranges: how many ranges of records there are; default 30"},
    {"op", "range_dist", "numbers",
     "ranges: a, b, c, d; the k-th hottest has a weight of a e^(b k) + c e^(d k); default MixGraph's"},
    {"op", "key_dist", "numbers",
     "ranges: a, b; within a range a record is a hash of (u / a)^(1 / b); default MixGraph's"},
    {"op", "where", "map condition",
     "query: a field's value, '@record' for the picked record's, 'last 1h', or a table of from and to, "
     "one_of, "
     "or from_record"},
    {"op", "order", "text", "query: a field, and desc behind it for the highest first"},
    {"op", "limit", "whole", "query: how many records at most"},
    {"op", "limit_pareto", "numbers",
     "query: so many, drawn for each of a generalised Pareto distribution of this shape and scale, up to "
     "limit"},
    {"op", "select", "texts", "query, get: the fields that are wanted; default all"},
    {"op", "set", "texts", "merge, modify: the fields that get new values"},
    {"layout", "name", "text", "What it is called in reports"},
    {"layout", "pk", "text", "Template of the PartitionKey"},
    {"layout", "rk", "text", "Template of the RowKey"},
    {"layout", "table", "text", "Default Lab"},
    {"layout", "props", "texts", "The fields stored as properties; default all"},
    {"layout", "copy", "sections copy", "Further entities for each record: an index, a denormalised copy"},
    {"layout", "fold", "section fold",
     "Several records in one entity; conditions on what is folded the client asks of what comes"},
    {"layout", "type", "sections type",
     "Several types of entity, each for some records; each may have its own pk, rk, table and props"},
    {"layout", "arrival", "section own arrival",
     "Operations come in another way than [arrival] says, for as long"},
    {"own arrival", "model", "text", "constant, poisson, ramp, burst or diurnal"},
    {"own arrival", "rate", "numbers", "As in [arrival], and as many"},
    {"own arrival", "to", "number", "ramp: the rate at the end"},
    {"own arrival", "on", "time", "burst: how long at the rate"},
    {"own arrival", "off", "time", "burst: how long nothing"},
    {"own arrival", "amplitude", "number", "diurnal: of the sine, 0 to 1"},
    {"own arrival", "period", "time", "diurnal: how long a day is"},
    {"layout", "one_of", "text",
     "How a query for one_of several RowKeys is asked: points, a request for each (default), or filter, one "
     "with or"},
    {"type", "name", "text", "What it is called"},
    {"type", "when", "map condition",
     "The field that tells types apart, with this type's value or a list of them"},
    {"type", "pk", "text", "Template of the PartitionKey; default that of the layout"},
    {"type", "rk", "text", "Template of the RowKey; default that of the layout"},
    {"type", "table", "text", "Default that of the layout"},
    {"type", "props", "texts", "The fields stored as properties; default all"},
    {"copy", "name", "text", "What it is called in reports"},
    {"copy", "pk", "text", "Template of the PartitionKey"},
    {"copy", "rk", "text", "Template of the RowKey"},
    {"copy", "table", "text", "Default: that of the layout"},
    {"copy", "props", "texts", "The fields stored as properties; default all"},
    {"copy", "list", "text",
     "Instead of props: an index entity that lists this field's values, of all records with its keys"},
    {"copy", "atomic", "flag",
     "Written with the record in one transaction: needs the same pk; default false"},
    {"fold", "property", "text", "Template of the name of the property"},
    {"fold", "from", "text", "The field that gives its value"},
    {"fold", "pack", "flag",
     "All values in this one property, a line each: an insert's batch then holds whole entities; default "
     "false"},
    {"arrival", "model", "text",
     "constant, poisson, ramp, steps, burst, diurnal or replay; closed: clients that wait for each answer"},
    {"arrival", "rate", "numbers", "Operations a second; each is run on its own, but for steps"},
    {"arrival", "to", "number", "ramp: the rate at the end"},
    {"arrival", "on", "time", "burst: how long at the rate"},
    {"arrival", "off", "time", "burst: how long nothing"},
    {"arrival", "amplitude", "number", "diurnal: of the sine, 0 to 1"},
    {"arrival", "period", "time", "diurnal: how long a day is"},
    {"arrival", "times", "numbers", "replay: seconds from the start, in order"},
    {"arrival", "file", "text",
     "replay: a file of such seconds, a line each; or with column, CSV or JSON lines, named from the "
     "experiment's "
     "directory on"},
    {"arrival", "column", "text",
     "replay: the column of the file that has the times; they count from the first"},
    {"arrival", "format", "text", "replay, column: csv or jsonl; default by the file's name"},
    {"arrival", "separator", "text", "replay, column: the character between fields; default a comma"},
    {"arrival", "columns", "texts", "replay: the names of the file's columns, where it has no header line"},
    {"arrival", "unit", "text",
     "replay, column: what its numbers count: s, ms or us; default: they are times"},
    {"arrival", "scale", "number", "replay: 2 is twice as fast"},
    {"arrival", "clients", "whole",
     "Calls in flight at most, 1 to 512; closed: how many clients; default 64"},
    {"arrival", "think", "time", "closed: how long a client waits after an answer"},
    {"arrival", "warmup", "time", "Not measured, at the beginning; default 1s"},
    {"arrival", "duration", "time", "Measured; default 5s; replay: what is due later is left out"},
    {"limits", "profile", "text", "off (default), storage, or partition=N,account=N in entities a second"},
    {"limits", "throttled", "text", "What a client does that is told to slow down: drop (default) or retry"},
    {"target", "kind", "text",
     "embedded (default) or rocksdb: new stores on this machine; http: a table service, whose limits are its "
     "own"},
    {"target", "connection", "text",
     "http: env:NAME of a variable that holds a connection string, or UseDevelopmentStorage=true"},
    {"target", "url", "text", "http: where it is instead, such as http://127.0.0.1:10002/devstoreaccount1"},
    {"target", "credential", "text",
     "http: to url, env:NAME of a variable that holds the account's key, or a shared access signature"},
    {"target", "durability", "text", "power, process (default) or memory"},
    {"target", "shards", "whole", "Default: one a core that the lab may use"},
    {"target", "memory", "text", "Default 256M"},
    {"goal", "p99", "time", "No operation's p99 is above this"},
    {"goal", "throttled", "number", "No operation's throttled share is above this"},
    {"expect", "metric", "text",
     "A column of summary.csv, such as p99_ms, throttled, scanned, transactions; hot_share, the share of "
     "what was asked for in a tenth of the run that lay in the hottest row of the heat map; or plan. Where "
     "an "
     "operation was never completed, nothing was measured, and nothing came out"},
    {"expect", "layout", "text", "Whose"},
    {"expect", "op", "text", "Of this operation; default: of all"},
    {"expect", "times_of", "text", "The figure counted in that of this layout"},
    {"expect", "above", "number", ""},
    {"expect", "below", "number", ""},
    {"expect", "equals", "number", "Within 1 %"},
    {"expect", "is", "text",
     "For the metric plan: point, row-range, partition, partition-range or table-scan"},
};

void WriteKeys(std::string_view section, JsonText* json);

void WriteType(std::string_view type, JsonText* json) {
  const auto simple = [&](std::string_view name) { json->Member("type", name); };
  if (type == "text" || type == "time") return simple("string");
  if (type == "whole") return simple("integer");
  if (type == "number") return simple("number");
  if (type == "flag") return simple("boolean");
  if (type == "any") return;
  if (type == "texts" || type == "numbers") {
    json->Key("items").BeginObject().Member("type", type == "texts" ? "string" : "number").EndObject();
    return json->Key("type")
               .BeginArray()
               .Value("array")
               .Value(type == "texts" ? "string" : "number")
               .EndArray(),
           void();
  }
  const std::string_view of = type.substr(type.find(' ') + 1);
  if (type.starts_with("sections ")) {
    simple("array");
    json->Key("items").BeginObject();
    WriteKeys(of, json);
    json->EndObject();
  } else if (type.starts_with("map ")) {
    simple("object");
    if (of != "field") return;
    json->Key("additionalProperties").BeginObject();
    WriteKeys(of, json);
    json->EndObject();
  } else {
    WriteKeys(of, json);
  }
}

void WriteKeys(std::string_view section, JsonText* json) {
  json->Member("type", "object").Member("additionalProperties", false);
  json->Key("properties").BeginObject();
  for (const ExperimentKey& key : kKeys) {
    if (key.section != section) continue;
    json->Key(key.name).BeginObject();
    if (!key.manual.empty()) json->Member("description", key.manual);
    WriteType(key.type, json);
    json->EndObject();
  }
  json->EndObject();
}

}  // namespace

std::vector<std::string> KeysOfSection(std::string_view section) {
  std::vector<std::string> names;
  for (const ExperimentKey& key : kKeys) {
    if (key.section == section) names.emplace_back(key.name);
  }
  return names;
}

std::string ExperimentSchema() {
  JsonText json;
  json.BeginObject().Member("$schema", "https://json-schema.org/draft/2020-12/schema");
  json.Member("title", "Experiment of partita lab, version 1");
  WriteKeys("", &json);
  json.EndObject();
  return json.text() + "\n";
}

}  // namespace partita::lab
