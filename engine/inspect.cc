#include "engine/inspect.h"

#include <filesystem>
#include <memory>
#include <utility>

#include "engine/backup.h"
#include "engine/base/coding.h"
#include "engine/base/executor.h"
#include "engine/base/hex.h"
#include "engine/base/text.h"
#include "engine/base/user_key.h"
#include "engine/catalog.h"
#include "engine/inspect_text.h"
#include "engine/io/local_meta_store.h"
#include "engine/io/meta_format.h"
#include "engine/io/posix_file_system.h"
#include "engine/manifest.h"
#include "wal/log_inspect.h"

namespace partita {

namespace {

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::vector<ReportValue> FrameRow(const InspectedFrame& frame) {
  return {frame.offset,
          frame.size,
          frame.payload_size,
          uint64_t{frame.pieces},
          frame.first_position.value,
          frame.durable_position.value,
          Joined(frame.flags),
          std::string(frame.in_chain ? "chain" : "beyond")};
}

Report DescribeSegment(const std::string& path, const InspectedSegment& segment) {
  Report report;
  report.title = "log segment " + path;
  if (!segment.header_valid) {
    report.damages.push_back(path + ", offset 0: " + segment.header_problem);
    return report;
  }
  report.Add("store", HexText(segment.store.value));
  report.Add("shard", uint64_t{segment.shard.value});
  report.Add("segment", segment.segment.value, segment.segment.value == 0 ? "prepared, not in use" : "");
  report.Add("incarnation", uint64_t{segment.incarnation.value});
  report.Add("segment_bytes", segment.segment_size);
  report.Add("first_position", segment.begin.first_position.value);
  report.Add("last_position", segment.last_position.value);
  report.Add("durable_position", segment.durable_position.value, "the highest watermark of any valid frame");
  report.Add("version_ceiling", segment.version_ceiling.value);
  report.Add("previous_segment", segment.previous_segment.value);
  report.Add("flags", Joined(segment.flags));
  report.Add("frame_count", segment.frames);
  report.Add("frames_beyond_end", segment.frames_beyond);
  report.Add("records_ended", segment.records_ended);
  report.Add("end_offset", segment.end_offset, segment.end_reason);
  if (!segment.size_problem.empty()) report.damages.push_back(path + ": " + segment.size_problem);
  if (segment.damaged) {
    report.damages.push_back(path + ", offset " + std::to_string(segment.end_offset) + ": " +
                             segment.end_reason + " (F31)");
  }
  return report;
}

// The value in a file of the meta store, or the report that says why there is none.
struct MetaFile {
  MetaRecord record;
  Report report;
  bool readable = false;
};

enum class Look : uint8_t { kFirst, kPastTheCache };

Task<Result<std::string>> ReadWhole(FileSystem* files, std::string name, Look look) {
  PARTITA_CO_ASSIGN(std::unique_ptr<File> file,
                    co_await files->Open(name, OpenMode::kRead, FileIo::kBuffered));
  if (look == Look::kPastTheCache) (void)co_await file->DropCache();
  Result<std::string> bytes = co_await ReadMetaBytes(*file);
  // Who names a file as large as no value has named a wrong one.
  if (bytes.code() == Code::kCorruption) co_return Status::InvalidArgument(bytes.status().message());
  co_return std::move(bytes);
}

// A sound value is of the kind that its name says, which is in its seal.
Status CheckKind(const FilePlace& place, const std::string& kind) {
  const std::string path = place.directory + "/" + place.name;
  const std::string named = place.name == kCatalogKey      ? "catalog"
                            : ParseManifestKey(place.name) ? "manifest"
                                                           : "mark of a backup or restore";
  if (named == kind) return Status();
  return Status::InvalidArgument("'" + path + "' is sound, but a " + named + ", no " + kind);
}

Result<MetaFile> ReadMetaFile(const std::string& path, const std::string& kind) {
  PARTITA_ASSIGN(FilePlace place, PlaceOf(path));
  if (!IsMetaKey(place.name)) {
    return Status::InvalidArgument("'" + path + "' has no name of a " + kind +
                                   "; its seal covers the name, so inspect it where it lies, in STORE/meta/");
  }
  PARTITA_ASSIGN(std::unique_ptr<PosixFileSystem> files,
                 PosixFileSystem::Open(place.directory, BatchReads::kCallByCall));
  Result<std::string> read = RunBlocking(ReadWhole(files.get(), place.name, Look::kFirst));
  const bool sound = read.ok() && DecodeMeta(place.name, path, *read).ok();
  // As an opening does it: a bad page of the kernel's cache is no damage, and tells no other number of
  // shards.
  if (!sound) read = RunBlocking(ReadWhole(files.get(), place.name, Look::kPastTheCache));
  PARTITA_ASSIGN(const std::string bytes, std::move(read));
  MetaFile out;
  out.report.title = kind + " " + path;
  out.report.Add("file_bytes", uint64_t{bytes.size()});
  Result<MetaRecord> record = DecodeMeta(place.name, path, bytes);
  if (!record.ok()) {
    if (record.code() != Code::kCorruption) return record.status();
    out.report.damages.push_back(record.status().message());
    return out;
  }
  PARTITA_TRY(CheckKind(place, kind));
  out.record = std::move(record).value();
  out.readable = true;
  out.report.Add("store", HexText(out.record.store.value));
  out.report.Add("generation", out.record.value.generation);
  return out;
}

std::string DurabilityText(DurabilityLevel level) {
  switch (level) {
    case DurabilityLevel::kPower:
      return "power";
    case DurabilityLevel::kProcess:
      return "process";
    case DurabilityLevel::kMemory:
      return "memory";
  }
  return "unknown";
}

uint64_t AttributeBytes(const Attributes& attributes) {
  return attributes == nullptr ? 0 : attributes->size();
}

void DescribeCatalog(const Catalog& catalog, Report* report) {
  report->Add("incarnation", uint64_t{catalog.incarnation}, "rises with every opening");
  report->Add("layout", uint64_t{catalog.layout}, "rises when the number of shards changes");
  report->Add("shards", uint64_t{catalog.shard_count});
  report->Add("next_table_id", uint64_t{catalog.next_table_id});
  report->Add("epoch", catalog.epoch);
  ReportTable tables{
      "tables", {"id", "account", "name", "kind", "durability", "created_ticks", "attribute_bytes"}, {}};
  for (const TablePtr& table : catalog.tables) {
    tables.rows.push_back({uint64_t{table->id.value}, SafeText(table->account), SafeText(table->name),
                           std::string(table->raw ? "raw" : "entities"), DurabilityText(table->durability),
                           table->created_ticks, AttributeBytes(table->attributes)});
  }
  report->tables.push_back(std::move(tables));
  ReportTable accounts{"accounts", {"name", "attribute_bytes"}, {}};
  for (const AccountDescriptor& account : catalog.accounts) {
    accounts.rows.push_back({SafeText(account.name), AttributeBytes(account.attributes)});
  }
  report->tables.push_back(std::move(accounts));
  ReportTable ranges{"ranges", {"lower", "upper", "owner", "epoch"}, {}};
  for (const RangeDescriptor& range : catalog.ranges) {
    ranges.rows.push_back(
        {UserKeyText(range.lower), UserKeyText(range.upper), uint64_t{range.owner.value}, range.epoch.value});
  }
  report->tables.push_back(std::move(ranges));
}

void DescribeManifest(const Manifest& manifest, Report* report) {
  report->Add("shard", uint64_t{manifest.shard.value});
  report->Add("layout", uint64_t{manifest.layout});
  report->Add("replay_from", manifest.replay_from.value, "records below it are in table files");
  report->Add("version_ceiling", manifest.version_ceiling.value);
  report->Add("log_segment", manifest.log_segment, "the log had reached this segment");
  uint64_t bytes = 0, entries = 0;
  ReportTable files{
      "files", {"level", "file", "file_bytes", "entries", "tombstones", "smallest", "largest"}, {}};
  for (const FileMeta& file : manifest.files) {
    bytes += file.info->file_size;
    entries += file.info->entry_count;
    files.rows.push_back({uint64_t{file.level}, ObjectPath(file.info->id), file.info->file_size,
                          file.info->entry_count, file.info->tombstone_count,
                          UserKeyText(file.info->smallest), UserKeyText(file.info->largest)});
  }
  report->Add("table_files", uint64_t{manifest.files.size()});
  report->Add("table_bytes", bytes);
  report->Add("entries", entries);
  report->tables.push_back(std::move(files));
}

}  // namespace

Result<FilePlace> PlaceOf(const std::string& path) {
  const std::filesystem::path whole(path);
  FilePlace place{whole.parent_path().string(), whole.filename().string()};
  if (place.directory.empty()) place.directory = ".";
  if (place.name.empty() || place.name == "." || place.name == "..") {
    return Status::InvalidArgument("'" + path + "' names no file");
  }
  std::error_code error;
  if (std::filesystem::is_directory(whole, error)) {
    return Status::InvalidArgument("'" + path + "' is a directory; name a file in it");
  }
  if (!std::filesystem::exists(whole, error)) return Status::NotFound("there is no file '" + path + "'");
  return place;
}

std::string SafeText(std::string_view bytes) {
  const bool valid = IsValidUtf8(bytes);
  std::string text;
  size_t size = 0;
  for (size_t at = 0; at < bytes.size(); at += size) {
    DecodedCharacter decoded{static_cast<unsigned char>(bytes[at]), 1};
    if (valid) decoded = *DecodeUtf8(bytes, at);
    size = decoded.size;
    const char32_t character = decoded.character;
    if (character < 0x20 || (character >= 0x7F && character <= 0x9F) || (character >= 0x80 && !valid)) {
      for (const char& c : bytes.substr(at, size)) {
        text += "\\x";
        AppendHex(&text, {&c, 1});
      }
    } else {
      text += bytes.substr(at, size);
    }
  }
  return text;
}

std::string UserKeyText(std::string_view user_key) {
  if (user_key.empty()) return "(end)";
  if (user_key.size() < kTableIdSize) return "bytes " + SafeText(user_key);
  std::string text = "table " + std::to_string(LoadBe32(user_key.data()));
  if (user_key.size() == kTableIdSize) return text;
  // Bounds of ranges, and fences, may end within the PartitionKey.
  const std::string_view keys = user_key.substr(kTableIdSize);
  const size_t separator = keys.find('\0');
  text += " '" + SafeText(Utf8FromOrdered(keys.substr(0, separator))) + "'";
  if (separator == std::string_view::npos) return text;
  return text + " '" + SafeText(Utf8FromOrdered(keys.substr(separator + 1))) + "'";
}

Result<Report> InspectLogFile(const std::string& path, const InspectOptions& options) {
  PARTITA_ASSIGN(FilePlace place, PlaceOf(path));
  PARTITA_ASSIGN(std::unique_ptr<PosixFileSystem> files,
                 PosixFileSystem::Open(place.directory, BatchReads::kCallByCall));
  ReportTable frames{
      "frames",
      {"offset", "bytes", "payload_bytes", "pieces", "first_position", "durable_position", "flags", "place"},
      {}};
  auto each = [&frames, &options](const InspectedFrame& frame) {
    if (frames.rows.size() < options.rows_max) frames.rows.push_back(FrameRow(frame));
  };
  PARTITA_ASSIGN(InspectedSegment segment, RunBlocking(InspectSegment(*files, place.name, each)));
  Report report = DescribeSegment(path, segment);
  if (!frames.rows.empty()) report.tables.push_back(std::move(frames));
  return report;
}

Result<Report> InspectManifestFile(const std::string& path) {
  PARTITA_ASSIGN(MetaFile file, ReadMetaFile(path, "manifest"));
  if (!file.readable) return std::move(file.report);
  Result<Manifest> manifest = DecodeManifest(file.record.value.bytes);
  if (!manifest.ok()) {
    if (manifest.code() != Code::kCorruption) return manifest.status().WithContext(path);
    file.report.damages.push_back(path + ", offset " + std::to_string(kMetaHeaderSize) + ": " +
                                  manifest.status().message());
    return std::move(file.report);
  }
  DescribeManifest(*manifest, &file.report);
  return std::move(file.report);
}

Result<Report> InspectCatalogFile(const std::string& path) {
  PARTITA_ASSIGN(MetaFile file, ReadMetaFile(path, "catalog"));
  if (!file.readable) return std::move(file.report);
  Result<Catalog> catalog = DecodeCatalog(file.record.value.bytes);
  if (!catalog.ok()) {
    if (catalog.code() != Code::kCorruption) return catalog.status().WithContext(path);
    file.report.damages.push_back(path + ", offset " + std::to_string(kMetaHeaderSize) + ": " +
                                  catalog.status().message());
    return std::move(file.report);
  }
  DescribeCatalog(*catalog, &file.report);
  return std::move(file.report);
}

std::optional<uint32_t> ShardCountOfStore(const std::string& directory) {
  const std::string path = directory + "/" + kMetaDirectory + "/" + kCatalogKey;
  Result<MetaFile> file = ReadMetaFile(path, "catalog");
  if (!file.ok() || !file->readable) return std::nullopt;
  Result<Catalog> catalog = DecodeCatalog(file->record.value.bytes);
  if (!catalog.ok()) return std::nullopt;
  return catalog->shard_count;
}

std::string DamageOfRoot(const std::string& directory) {
  namespace fs = std::filesystem;
  const fs::path root(directory);
  std::error_code error;
  const fs::path path = root / kMetaDirectory / kCatalogKey;
  if (fs::exists(path, error)) {
    const Result<MetaFile> file = ReadMetaFile(path.string(), "catalog");
    if (!file.ok()) return file.status().ToString();
    if (!file->readable) return file->report.damages.front();
    const Result<Catalog> catalog = DecodeCatalog(file->record.value.bytes);
    return catalog.ok() ? "" : path.string() + ": " + catalog.status().message();
  }
  if (fs::exists(root / kMetaDirectory / kUnfinishedKey, error)) {
    return directory + " holds a backup or restore that did not end (meta/unfinished); make it again";
  }
  for (fs::directory_iterator entry(root, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name != kMetaDirectory && name != kObjectDirectory && !ParseLogDirectory(name)) continue;
    std::error_code unread;
    const fs::directory_iterator files(entry->path(), unread);
    if (!unread && files != fs::directory_iterator()) {
      return path.string() + " is missing beside other files of a store (F69); see 'partita repair'";
    }
  }
  return "";
}

Result<TableOrigin> OriginOfTable(const std::string& directory, const std::string& account,
                                  const std::string& table) {
  const std::string path = directory + "/" + kMetaDirectory + "/" + kCatalogKey;
  PARTITA_ASSIGN(MetaFile file, ReadMetaFile(path, "catalog"));
  if (!file.readable) return Status::Corruption(file.report.damages.front());
  PARTITA_ASSIGN(Catalog catalog, DecodeCatalog(file.record.value.bytes));
  const TableDescriptor* found = catalog.FindTable(account, table);
  return TableOrigin{HexText(catalog.store.value), catalog.incarnation,
                     found == nullptr ? 0 : found->created_ticks};
}

bool GoesOnFrom(const TableOrigin& earlier, const TableOrigin& later) {
  // A restored backup may be older than `earlier`, by openings that its jump does not make up for.
  constexpr uint64_t kOpeningsMax = kLifeJumpMin / 2;
  return earlier.store == later.store && earlier.created_ticks == later.created_ticks &&
         later.incarnation >= earlier.incarnation && later.incarnation - earlier.incarnation < kOpeningsMax;
}

}  // namespace partita
