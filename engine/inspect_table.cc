#include <filesystem>
#include <memory>
#include <utility>

#include "engine/base/executor.h"
#include "engine/base/hex.h"
#include "engine/inspect.h"
#include "engine/inspect_text.h"
#include "engine/io/local_meta_store.h"
#include "engine/io/local_object_store.h"
#include "engine/io/posix_file_system.h"
#include "sstable/block_cache.h"
#include "sstable/table_reader.h"

// One table file as `partita inspect table` shows it.

namespace partita {

namespace {

constexpr uint64_t kInspectCacheBytes = 16u << 20;

struct TablePlace {
  std::unique_ptr<PosixFileSystem> files;  // The store's directory.
  StoreId store;
  ObjectId id;
};

Result<TablePlace> FindTableFile(const std::string& path) {
  PARTITA_ASSIGN(FilePlace file, PlaceOf(path));
  std::error_code error;
  const std::filesystem::path directory = std::filesystem::canonical(file.directory, error);
  const std::optional<ObjectId> id = ParseObjectName(file.name);
  if (error || !id.has_value() || directory.filename() != kObjectDirectory) {
    return Status::InvalidArgument("'" + path +
                                   "' is no table file of a store; its seals name store and file, so inspect "
                                   "it where it lies: STORE/tables/N.sst");
  }
  TablePlace place;
  place.id = *id;
  PARTITA_ASSIGN(place.files,
                 PosixFileSystem::Open(directory.parent_path().string(), BatchReads::kCallByCall));
  PARTITA_ASSIGN(std::optional<StoreId> store, RunBlocking(ReadStoreId(*place.files)));
  if (!store.has_value()) {
    return Status::NotFound("'" + directory.parent_path().string() +
                            "/meta/catalog' is missing, which says whose table file this is");
  }
  place.store = *store;
  return place;
}

std::string_view CodecName(uint8_t codec) {
  switch (static_cast<Codec>(codec)) {
    case Codec::kStored:
      return "none";
    case Codec::kZstd:
      return "zstd";
    case Codec::kLz4:
      return "lz4";
  }
  return "unknown";
}

void DescribeTable(const TableReader& table, Report* report) {
  const TableProperties& properties = table.properties();
  const TableInfo& info = table.info();
  report->Add("file", table.name());
  report->Add("object", info.id.value);
  report->Add("file_bytes", info.file_size);
  report->Add("entry_count", info.entry_count);
  report->Add("tombstones", info.tombstone_count);
  report->Add("keys", properties.key_count);
  report->Add("partitions", properties.partition_count);
  report->Add("raw_bytes", info.raw_bytes, "keys and values before any encoding");
  report->Add("smallest", UserKeyText(info.smallest));
  report->Add("largest", UserKeyText(info.largest));
  report->Add("version_min", info.version_min.value);
  report->Add("version_max", info.version_max.value);
  report->Add("data_blocks", properties.data_blocks);
  report->Add("index_blocks", properties.index_blocks);
  report->Add("data_bytes", properties.data_bytes);
  report->Add("padding_bytes", properties.padding_bytes);
  report->Add("compression", std::string(CodecName(properties.codec)));
  report->Add("key_filter_bytes", uint64_t{table.footer().key_filter.stored_size});
  report->Add("partition_filter_bytes", uint64_t{table.footer().partition_filter.stored_size});
  std::string zones;
  for (const std::string& name : properties.zone_properties) {
    zones += (zones.empty() ? "" : " ") + SafeText(name);
  }
  report->Add("zone_map_properties", zones);
  report->Add("resident_bytes", table.resident_bytes(), "memory an open table holds beside the cache");
}

Task<Status> ListEntries(std::shared_ptr<TableReader> table, uint32_t rows_max, ReportTable* entries) {
  IterOptions options;
  options.caching = IterCaching::kLookOnly;
  std::unique_ptr<TableIterator> it = table->NewIterator(Direction::kForward, options);
  IterState state = it->SeekToFirst();
  while (entries->rows.size() < rows_max) {
    if (state == IterState::kNeedsIo) {
      PARTITA_CO_TRY(co_await it->Fetch());
      state = it->state();
      continue;
    }
    if (state == IterState::kEnd) break;
    const Entry& entry = it->entry();
    entries->rows.push_back({UserKeyText(entry.user_key), entry.version.value,
                             std::string(entry.kind == EntryKind::kTombstone ? "tombstone" : "put"),
                             uint64_t{entry.value.size()}});
    state = it->Next();
  }
  co_return Status();
}

}  // namespace

Result<Report> InspectTableFile(const std::string& path, const InspectOptions& options) {
  PARTITA_ASSIGN(TablePlace place, FindTableFile(path));
  Report report;
  report.title = "table " + path;
  report.Add("store", HexText(place.store.value));
  BlockCache cache(kInspectCacheBytes);
  PARTITA_ASSIGN(std::unique_ptr<LocalObjectStore> objects,
                 RunBlocking(LocalObjectStore::Open(*place.files, IfMissing::kFail)));
  Result<std::shared_ptr<TableReader>> table =
      RunBlocking(TableReader::Open(*objects, cache, place.store, place.id));
  if (!table.ok()) {
    if (table.code() != Code::kCorruption) return table.status();
    report.damages.push_back(table.status().message());
    return report;
  }
  DescribeTable(**table, &report);
  TableVerifyReport verified;
  const Status sound = RunBlocking((*table)->Verify(&verified));
  report.Add("verified_entries", verified.entries);
  report.Add("verified_bytes", verified.bytes_read);
  if (!sound.ok()) report.damages.push_back(sound.message());
  if (options.rows_max > 0) {
    ReportTable entries{"entries", {"key", "version", "kind", "value_bytes"}, {}};
    const Status listed = RunBlocking(ListEntries(*table, options.rows_max, &entries));
    if (!listed.ok() && listed.message() != sound.message()) report.damages.push_back(listed.message());
    report.tables.push_back(std::move(entries));
  }
  return report;
}

}  // namespace partita
