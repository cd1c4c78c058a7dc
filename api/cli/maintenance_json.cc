#include "api/cli/maintenance_json.h"

#include <vector>

#include "api/cli/json_fields.h"

namespace partita {

namespace {

using simdjson::dom::element;

void AppendTexts(std::string* out, std::string_view name, const std::vector<std::string>& texts) {
  AppendLabel(out, name);
  out->push_back('[');
  for (const std::string& text : texts) {
    if (out->back() != '[') out->push_back(',');
    http::AppendJsonString(out, SafeText(text));
  }
  out->push_back(']');
}

std::vector<std::string> ReadTexts(element from, std::string_view name, JsonFields* read) {
  std::vector<std::string> texts;
  const simdjson::dom::array list = read->List(from, name);
  if (!read->ok()) return texts;
  for (const element item : list) {
    std::string_view text;
    read->Require(item.get_string().get(text) == simdjson::SUCCESS);
    texts.emplace_back(text);
  }
  return texts;
}

// `take` reads a report from the members of `json`.
template <typename Done>
Result<Done> ParseReport(std::string_view json, Done (*take)(element root, JsonFields* read)) {
  const Status none =
      Status::IoError("the answer is not what an admin address of partita tells of what it did");
  simdjson::dom::parser parser;
  element root;
  if (parser.parse(json.data(), json.size()).get(root) != simdjson::SUCCESS) return none;
  JsonFields read;
  Done done = take(root, &read);
  if (!read.ok()) return none;
  return done;
}

BackupReport TakeBackup(element root, JsonFields* read) {
  return {.files = read->LongCount(root, "table_files"),
          .bytes = read->LongCount(root, "bytes"),
          .bytes_shared = read->LongCount(root, "shared_bytes"),
          .entries = read->LongCount(root, "entries"),
          .base_damages = ReadTexts(root, "base_damages", read)};
}

ScrubReport TakeScrub(element root, JsonFields* read) {
  return {.tables = read->LongCount(root, "table_files"),
          .entries = read->LongCount(root, "entries"),
          .log_segments = read->LongCount(root, "log_segments"),
          .meta_values = read->LongCount(root, "meta_values"),
          .bytes = read->LongCount(root, "read_bytes"),
          .transient = read->LongCount(root, "transient_reads"),
          .damages = ReadTexts(root, "damages", read)};
}

}  // namespace

std::string BackupJson(const BackupReport& done) {
  std::string out = "{";
  AppendCount(&out, "table_files", done.files);
  AppendCount(&out, "bytes", done.bytes);
  AppendCount(&out, "shared_bytes", done.bytes_shared);
  AppendCount(&out, "entries", done.entries);
  AppendTexts(&out, "base_damages", done.base_damages);
  return out + "}\n";
}

std::string ScrubJson(const ScrubReport& done) {
  std::string out = "{";
  AppendCount(&out, "table_files", done.tables);
  AppendCount(&out, "entries", done.entries);
  AppendCount(&out, "log_segments", done.log_segments);
  AppendCount(&out, "meta_values", done.meta_values);
  AppendCount(&out, "read_bytes", done.bytes);
  AppendCount(&out, "transient_reads", done.transient);
  AppendTexts(&out, "damages", done.damages);
  return out + "}\n";
}

Result<BackupReport> ParseBackupJson(std::string_view json) { return ParseReport(json, TakeBackup); }

Result<ScrubReport> ParseScrubJson(std::string_view json) { return ParseReport(json, TakeScrub); }

}  // namespace partita
