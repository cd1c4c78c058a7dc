#include "api/cli/stalls_json.h"

#include "api/cli/json_fields.h"
#include "api/date_time.h"

namespace partita {

namespace {

using simdjson::dom::element;

void AppendStallCount(std::string* out, const StallCount& count) {
  AppendCount(out, "stalls", count.stalls);
  AppendCount(out, "own", count.own);
  AppendNumber(out, "lasted_ms", count.lasted_ms);
  AppendNumber(out, "ran_ms", count.ran_ms);
  AppendNumber(out, "longest_ms", count.longest_ms);
  out->push_back('}');
}

StallCount ReadStallCount(element from, JsonFields* read) {
  return {read->LongCount(from, "stalls"), read->LongCount(from, "own"), read->Number(from, "lasted_ms"),
          read->Number(from, "ran_ms"), read->Number(from, "longest_ms")};
}

uint64_t ReadTicks(element from, std::string_view name, JsonFields* read) {
  const Result<DateTime> time = ParseDateTime(read->Text(from, name));
  read->Require(time.ok());
  return time.ok() ? time->ticks : 0;
}

}  // namespace

std::string StallsJson(const StallSummary& stalls) {
  std::string out = "{\"shards\":[";
  for (const StallCount& shard : stalls.shards) {
    BeginItem(&out);
    AppendStallCount(&out, shard);
  }
  out += "],\"places\":[";
  for (const StallPlace& place : stalls.places) {
    BeginItem(&out);
    AppendText(&out, "place", place.place);
    AppendStallCount(&out, place.count);
  }
  out += "],\"last\":[";
  for (const StallEvent& stall : stalls.last) {
    BeginItem(&out);
    AppendCount(&out, "shard", stall.shard);
    AppendText(&out, "began", FormatDateTime(DateTime{stall.began_ticks}));
    AppendText(&out, "from", stall.from);
    AppendText(&out, "to", stall.to);
    AppendNumber(&out, "lasted_ms", stall.lasted_ms);
    AppendNumber(&out, "ran_ms", stall.ran_ms);
    out.push_back('}');
  }
  return out + "]}\n";
}

Result<StallSummary> ParseStallsJson(std::string_view json) {
  const Status no_stalls =
      Status::InvalidArgument("the answer is not what an admin address of partita tells of stalls");
  simdjson::dom::parser parser;
  element root;
  if (parser.parse(json.data(), json.size()).get(root) != simdjson::SUCCESS) return no_stalls;
  JsonFields read;
  StallSummary stalls;
  const simdjson::dom::array shards = read.List(root, "shards");
  const simdjson::dom::array places = read.List(root, "places");
  const simdjson::dom::array last = read.List(root, "last");
  if (!read.ok()) return no_stalls;
  for (const element shard : shards) stalls.shards.push_back(ReadStallCount(shard, &read));
  for (const element place : places) {
    stalls.places.push_back({read.Text(place, "place"), ReadStallCount(place, &read)});
  }
  for (const element stall : last) {
    stalls.last.push_back({read.Count(stall, "shard"), ReadTicks(stall, "began", &read),
                           read.Text(stall, "from"), read.Text(stall, "to"), read.Number(stall, "lasted_ms"),
                           read.Number(stall, "ran_ms")});
  }
  if (!read.ok()) return no_stalls;
  return stalls;
}

}  // namespace partita
