#include "api/cli/commands.h"
#include "api/cli/figures.h"
#include "api/cli/heat_json.h"
#include "api/cli/json_fields.h"
#include "api/cli/open_store.h"
#include "api/cli/report_printer.h"
#include "api/http/admin_client.h"
#include "engine/inspect_text.h"

// partita ranges list|split|merge|move.

namespace partita {

namespace {

void PrintRanges(const StoreFlags& store, const std::string& whose,
                 const std::vector<RangeDescription>& found, Console& console) {
  Report report;
  report.title = "ranges of " + whose;
  ReportTable ranges{"ranges", {"table", "from", "to", "shard"}, {}};
  for (const RangeDescription& range : found) {
    ranges.rows.push_back({range.table, SafeText(range.first_partition_key),
                           SafeText(range.end_partition_key), uint64_t{range.shard}});
  }
  report.tables.push_back(std::move(ranges));
  PrintAsAsked(store, report, console);
}

Result<std::vector<RangeDescription>> RangesOfServer(const StoreFlags& store, const RangesFlags& flags) {
  const std::string parameter =
      flags.table.empty() ? "" : "?table=" + http::EncodeParameter(TableOnServer(store, flags.table));
  PARTITA_ASSIGN(const std::string answer, http::AskAdmin(flags.admin, "/ranges" + parameter));
  return ParseRangesJson(answer);
}

void PrintMove(const StoreFlags& store, const RangesFlags& flags, const Database::RangeMove& moved,
               Console& console) {
  Report report;
  report.title = "move of a range of " + flags.table;
  report.Add("from_shard", uint64_t{moved.from});
  report.Add("to_shard", uint64_t{moved.to});
  report.Add("pause_us", static_cast<uint64_t>(moved.pause_ms * 1000), "how long writes of it waited");
  report.Add("written_bytes", moved.bytes_written, "of what only memory held");
  PrintAsAsked(store, report, console);
}

Result<Database::RangeMove> ParseMove(std::string_view json) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  const bool is_json = parser.parse(json.data(), json.size()).get(root) == simdjson::SUCCESS;
  JsonFields read;
  read.Require(is_json);
  const Database::RangeMove moved{read.Count(root, "from_shard"), read.Count(root, "to_shard"),
                                  read.Number(root, "pause_ms"), read.LongCount(root, "bytes_written")};
  if (!read.ok()) return Status::InvalidArgument("the answer is not what an admin address of partita gives");
  return moved;
}

// Has a running server do it.
ExitCode ChangeOnServer(const StoreFlags& store, const RangesFlags& flags, const std::string& change,
                        Console& console) {
  std::string asked = "{";
  AppendText(&asked, "table", TableOnServer(store, flags.table));
  AppendLabel(&asked, "partition");
  http::AppendJsonString(&asked, flags.partition_key);
  if (change == "move") AppendCount(&asked, "shard", flags.shard);
  const Result<std::string> answer = http::TellAdmin(flags.admin, "/ranges/" + change, asked + "}");
  if (!answer.ok()) return Fail(console, answer.status());
  if (change != "move") return ExitCode::kOk;
  const Result<Database::RangeMove> moved = ParseMove(*answer);
  if (!moved.ok()) return Fail(console, moved.status());
  PrintMove(store, flags, *moved, console);
  return ExitCode::kOk;
}

}  // namespace

ExitCode RunListRanges(const StoreFlags& store, const RangesFlags& flags, Console& console) {
  if (!flags.admin.empty()) {
    const Result<std::vector<RangeDescription>> found = RangesOfServer(store, flags);
    if (!found.ok()) return Fail(console, found.status());
    PrintRanges(store, flags.admin, *found, console);
    return ExitCode::kOk;
  }
  const auto list = [&](Database& database) -> Status {
    PARTITA_ASSIGN(const std::vector<RangeDescription> found, database.ListRanges(flags.table));
    PrintRanges(store, store.directory, found, console);
    return Status();
  };
  return WithStore(store, IfNoStore::kFail, console, list, "partita ranges list");
}

ExitCode RunSplitRange(const StoreFlags& store, const RangesFlags& flags, Console& console) {
  if (store.read_only) return RefuseReadOnly(console, "ranges split");
  if (!flags.admin.empty()) return ChangeOnServer(store, flags, "split", console);
  const auto split = [&](Database& database) {
    return database.SplitRange(flags.table, flags.partition_key);
  };
  return WithStore(store, IfNoStore::kFail, console, split, "partita ranges split");
}

ExitCode RunMergeRanges(const StoreFlags& store, const RangesFlags& flags, Console& console) {
  if (store.read_only) return RefuseReadOnly(console, "ranges merge");
  if (!flags.admin.empty()) return ChangeOnServer(store, flags, "merge", console);
  const auto merge = [&](Database& database) {
    return database.MergeRanges(flags.table, flags.partition_key);
  };
  return WithStore(store, IfNoStore::kFail, console, merge, "partita ranges merge");
}

ExitCode RunMoveRange(const StoreFlags& store, const RangesFlags& flags, Console& console) {
  if (store.read_only) return RefuseReadOnly(console, "ranges move");
  if (!flags.admin.empty()) return ChangeOnServer(store, flags, "move", console);
  const auto move = [&](Database& database) -> Status {
    PARTITA_ASSIGN(const Database::RangeMove moved,
                   database.MoveRange(flags.table, flags.partition_key, flags.shard));
    PrintMove(store, flags, moved, console);
    return Status();
  };
  return WithStore(store, IfNoStore::kFail, console, move, "partita ranges move");
}

}  // namespace partita
