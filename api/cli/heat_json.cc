#include "api/cli/heat_json.h"

#include <simdjson.h>

#include <cstdio>

#include "api/date_time.h"
#include "api/http/json_text.h"
#include "engine/inspect_text.h"

namespace partita {

namespace {

void AppendNumber(std::string* out, double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.6g", value);
  out->append(text);
}

void AppendLabel(std::string* out, std::string_view name) {
  if (out->back() != '{' && out->back() != '[') out->push_back(',');
  out->append("\"").append(name).append("\":");
}

void AppendText(std::string* out, std::string_view name, std::string_view text) {
  AppendLabel(out, name);
  http::AppendJsonString(out, SafeText(text));
}

void AppendHot(std::string* out, const HotPartition& hot) {
  out->append(out->back() == '[' ? "{" : ",{");
  AppendText(out, "table", hot.table);
  AppendText(out, "partition", hot.partition_key);
  out->append(hot.key_is_cut ? ",\"cut\":true" : ",\"cut\":false");
  AppendLabel(out, "per_second");
  AppendNumber(out, hot.per_second);
  AppendLabel(out, "above");
  AppendNumber(out, hot.above);
  out->push_back('}');
}

}  // namespace

Result<HeatReport> CollectHeat(const Database& database, const HeatWindow& window, uint32_t top) {
  HeatReport report;
  PARTITA_ASSIGN(report.picture, database.Heat(window));
  report.total = database.LoadPerSecond();
  for (size_t i = 0; i < kHeatMetrics; ++i) {
    report.top[i] = database.HotPartitions(static_cast<HeatMetric>(i), top);
  }
  return report;
}

std::string HeatJson(const HeatReport& report) {
  const HeatPicture& picture = report.picture;
  std::string out = "{\"begin\":\"" + FormatDateTime(DateTime{picture.begin_ticks}) + "\"";
  out += ",\"column_seconds\":" + std::to_string(picture.column_seconds);
  out += ",\"columns\":" + std::to_string(picture.columns) + ",\"buckets\":[";
  for (const HeatBucket& bucket : picture.buckets) {
    out.append(out.back() == '[' ? "{" : ",{");
    AppendText(&out, "table", bucket.table);
    AppendText(&out, "from", bucket.partition_key);
    out.push_back('}');
  }
  out += "],\"cells\":{";
  for (size_t i = 0; i < kHeatMetrics; ++i) {
    AppendLabel(&out, kHeatMetricNames[i]);
    out.push_back('[');
    for (const HeatValues& cell : picture.cells) {
      if (out.back() != '[') out.push_back(',');
      AppendNumber(&out, cell[i]);
    }
    out.push_back(']');
  }
  out += "},\"total\":{";
  for (size_t i = 0; i < kHeatMetrics; ++i) {
    AppendLabel(&out, kHeatMetricNames[i]);
    AppendNumber(&out, report.total[i]);
  }
  out += "},\"top\":{";
  for (size_t i = 0; i < kHeatMetrics; ++i) {
    AppendLabel(&out, kHeatMetricNames[i]);
    out.push_back('[');
    for (const HotPartition& hot : report.top[i]) AppendHot(&out, hot);
    out.push_back(']');
  }
  return out + "}}\n";
}

std::string RangesJson(const std::vector<RangeDescription>& ranges) {
  std::string out = "[";
  for (const RangeDescription& range : ranges) {
    out.append(out.back() == '[' ? "{" : ",{");
    AppendText(&out, "table", range.table);
    AppendText(&out, "from", range.first_partition_key);
    AppendText(&out, "to", range.end_partition_key);
    AppendLabel(&out, "shard");
    out += std::to_string(range.shard) + "}";
  }
  return out + "]\n";
}

// ---- Back. simdjson's errors leave no trace: what is missing or of another type is one error.

namespace {

using simdjson::dom::element;

// simdjson without exceptions, and one place that notes that anything was wrong.
class Reader {
 public:
  bool ok() const { return ok_; }
  element Member(element from, std::string_view name) { return Take(from[name], element()); }
  std::string Text(element from, std::string_view name) {
    return std::string(Take(from[name].get_string(), std::string_view()));
  }
  double Number(element from, std::string_view name) { return Take(from[name].get_double(), 0.0); }
  uint32_t Count(element from, std::string_view name) {
    const uint64_t count = Take(from[name].get_uint64(), uint64_t{0});
    ok_ = ok_ && count <= UINT32_MAX;
    return static_cast<uint32_t>(count);
  }
  bool Flag(element from, std::string_view name) { return Take(from[name].get_bool(), false); }
  simdjson::dom::array List(element from, std::string_view name) {
    return Take(from[name].get_array(), simdjson::dom::array());
  }
  void Require(bool holds) { ok_ = ok_ && holds; }

 private:
  template <typename T>
  T Take(simdjson::simdjson_result<T> result, T otherwise) {
    T value = otherwise;
    if (ok_ && std::move(result).get(value) != simdjson::SUCCESS) ok_ = false;
    return ok_ ? value : otherwise;
  }
  bool ok_ = true;
};

Status NoHeat() {
  return Status::InvalidArgument("the answer is not what an admin address of partita gives");
}

void ReadPicture(element root, Reader* read, HeatPicture* picture) {
  const Result<DateTime> begin = ParseDateTime(read->Text(root, "begin"));
  read->Require(begin.ok());
  if (begin.ok()) picture->begin_ticks = begin->ticks;
  picture->column_seconds = read->Count(root, "column_seconds");
  picture->columns = read->Count(root, "columns");
  if (!read->ok()) return;
  for (const element bucket : read->List(root, "buckets")) {
    picture->buckets.push_back({read->Text(bucket, "table"), read->Text(bucket, "from")});
  }
  const element cells = read->Member(root, "cells");
  read->Require(picture->columns <= 1u << 20 && !picture->buckets.empty());
  if (!read->ok()) return;
  picture->cells.resize(size_t{picture->columns} * picture->buckets.size());
  for (size_t i = 0; i < kHeatMetrics && read->ok(); ++i) {
    const simdjson::dom::array values = read->List(cells, kHeatMetricNames[i]);
    if (!read->ok()) return;
    read->Require(values.size() == picture->cells.size());
    size_t at = 0;
    for (const element value : values) {
      double number = 0;
      read->Require(at < picture->cells.size() && value.get_double().get(number) == simdjson::SUCCESS);
      if (!read->ok()) return;
      picture->cells[at++][i] = number;
    }
  }
}

}  // namespace

Result<HeatReport> ParseHeatJson(std::string_view json) {
  simdjson::dom::parser parser;
  element root;
  if (parser.parse(json.data(), json.size()).get(root) != simdjson::SUCCESS) return NoHeat();
  Reader read;
  HeatReport report;
  ReadPicture(root, &read, &report.picture);
  if (!read.ok()) return NoHeat();
  const element total = read.Member(root, "total"), top = read.Member(root, "top");
  for (size_t i = 0; i < kHeatMetrics && read.ok(); ++i) {
    report.total[i] = read.Number(total, kHeatMetricNames[i]);
    const simdjson::dom::array list = read.List(top, kHeatMetricNames[i]);
    if (!read.ok()) break;
    for (const element hot : list) {
      report.top[i].push_back({read.Text(hot, "table"), read.Text(hot, "partition"), read.Flag(hot, "cut"),
                               read.Number(hot, "per_second"), read.Number(hot, "above")});
    }
  }
  if (!read.ok()) return NoHeat();
  return report;
}

Result<std::vector<RangeDescription>> ParseRangesJson(std::string_view json) {
  simdjson::dom::parser parser;
  simdjson::dom::array list;
  if (parser.parse(json.data(), json.size()).get_array().get(list) != simdjson::SUCCESS) return NoHeat();
  Reader read;
  std::vector<RangeDescription> ranges;
  for (const element range : list) {
    ranges.push_back({read.Text(range, "table"), read.Text(range, "from"), read.Text(range, "to"),
                      read.Count(range, "shard")});
  }
  if (!read.ok()) return NoHeat();
  return ranges;
}

}  // namespace partita
