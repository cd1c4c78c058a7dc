#include "api/cli/heat_json.h"

#include "api/cli/json_fields.h"
#include "api/date_time.h"

namespace partita {

namespace {

void AppendHot(std::string* out, const HotPartition& hot) {
  BeginItem(out);
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
    BeginItem(&out);
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
    BeginItem(&out);
    AppendText(&out, "table", range.table);
    AppendText(&out, "from", range.first_partition_key);
    AppendText(&out, "to", range.end_partition_key);
    AppendLabel(&out, "shard");
    out += std::to_string(range.shard) + "}";
  }
  return out + "]\n";
}

// ---- Back.

namespace {

using simdjson::dom::element;

Status NoHeat() {
  return Status::InvalidArgument("the answer is not what an admin address of partita gives");
}

void ReadHeatPicture(element root, JsonFields* read, HeatPicture* picture) {
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
  JsonFields read;
  HeatReport report;
  ReadHeatPicture(root, &read, &report.picture);
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
  JsonFields read;
  std::vector<RangeDescription> ranges;
  for (const element range : list) {
    ranges.push_back({read.Text(range, "table"), read.Text(range, "from"), read.Text(range, "to"),
                      read.Count(range, "shard")});
  }
  if (!read.ok()) return NoHeat();
  return ranges;
}

}  // namespace partita
