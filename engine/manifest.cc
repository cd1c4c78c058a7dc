#include "engine/manifest.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "engine/base/coding.h"
#include "engine/base/given_version.h"
#include "engine/base/key_head.h"
#include "engine/base/user_key.h"

namespace partita {

namespace {

constexpr std::string_view kManifestPrefix = "shard-";
constexpr std::string_view kLogPrefix = "log-";

// What references name by number: their bounds and tables, each once.
class Named {
 public:
  explicit Named(const Manifest& manifest) {
    Collect(manifest.files);
    Collect(manifest.prepared.files);
    std::sort(bounds_.begin(), bounds_.end());
    bounds_.erase(std::unique(bounds_.begin(), bounds_.end()), bounds_.end());
  }

  void AppendTo(std::string* out) const {
    AppendVarint(out, bounds_.size());
    std::string_view before;
    for (const std::string_view bound : bounds_) {
      const size_t shared = CommonPrefix(before, bound);
      AppendVarint(out, shared);
      AppendBytes(out, bound.substr(shared));
      before = bound;
    }
    AppendVarint(out, tables_.size());
    for (const TableInfo* table : tables_) AppendTableInfo(out, *table);
  }
  void AppendReferences(const std::vector<FileMeta>& files, std::string* out) const {
    AppendVarint(out, files.size());
    for (const FileMeta& file : files) {
      AppendVarint(out, file.level);
      AppendVarint(out, numbers_.at(file.info->id));
      AppendVarint(out, NumberOf(file.lower));
      AppendVarint(out, NumberOf(file.upper));
    }
  }

 private:
  void Collect(const std::vector<FileMeta>& files) {
    const FileMeta* before = nullptr;
    for (const FileMeta& file : files) {
      if (numbers_.try_emplace(file.info->id, tables_.size()).second) tables_.push_back(&*file.info);
      const bool is_next_of_range =
          before != nullptr && before->lower == file.lower && before->upper == file.upper;
      before = &file;
      if (is_next_of_range) continue;
      bounds_.push_back(file.lower);
      bounds_.push_back(file.upper);
    }
  }
  uint64_t NumberOf(std::string_view bound) const {
    return static_cast<uint64_t>(std::lower_bound(bounds_.begin(), bounds_.end(), bound) - bounds_.begin());
  }

  std::vector<std::string_view> bounds_;  // Sorted.
  std::vector<const TableInfo*> tables_;  // As references come to them.
  std::map<ObjectId, uint64_t> numbers_;  // In tables_.
};

// "PREFIX" "LAYOUT-SHARD".
std::optional<ShardOfLayout> ParseShardOfLayout(std::string_view prefix, std::string_view name) {
  if (!name.starts_with(prefix)) return std::nullopt;
  ShardOfLayout out;
  const char* end = name.data() + name.size();
  auto layout = std::from_chars(name.data() + prefix.size(), end, out.layout);
  if (layout.ec != std::errc() || layout.ptr == end || *layout.ptr != '-') return std::nullopt;
  if (out.layout == 0 || out.layout > kLayoutMax) return std::nullopt;
  auto shard = std::from_chars(layout.ptr + 1, end, out.shard.value);
  if (shard.ec != std::errc() || shard.ptr != end || out.shard.value >= kShardCountMax) return std::nullopt;
  return out;
}

}  // namespace

std::string EncodeManifest(const Manifest& manifest) {
  std::string out;
  AppendLe16(&out, kManifestFormat);
  AppendLe32(&out, manifest.shard.value);
  AppendLe32(&out, manifest.layout);
  AppendLe64(&out, manifest.replay_from.value);
  AppendLe64(&out, manifest.version_ceiling.value);
  AppendLe64(&out, manifest.log_segment);
  const Named named(manifest);
  named.AppendTo(&out);
  named.AppendReferences(manifest.files, &out);
  AppendLe64(&out, manifest.prepared.attempt);
  named.AppendReferences(manifest.prepared.files, &out);
  return out;
}

namespace {

// What references name by number; none before format 5.
struct NamedParts {
  std::vector<std::string> bounds;
  std::vector<SharedTableInfo> tables;
};

Status Unreadable(const std::string& kind, uint64_t index, std::string_view why) {
  return Status::Corruption("manifest: " + kind + " " + std::to_string(index) + " " + std::string(why));
}

// How many follow. kCorruption when these bytes cannot hold so many.
Result<uint64_t> ReadCount(ByteReader* in, const char* kind) {
  const uint64_t count = in->ReadVarint();
  if (!in->ok()) return Status::Corruption("manifest: header is cut short");
  if (count > in->remaining())
    return Status::Corruption(std::string("manifest: ") + kind + " count is beyond its size");
  return count;
}

Status ReadNamed(ByteReader* in, NamedParts* named) {
  PARTITA_ASSIGN(const uint64_t bounds, ReadCount(in, "bound"));
  std::string bound;
  for (uint64_t i = 0; i < bounds; ++i) {
    const uint64_t shared = in->ReadVarint();
    const std::string rest(in->ReadBytes());
    if (!in->ok()) return Unreadable("bound", i, "is cut short");
    if (shared > bound.size()) return Unreadable("bound", i, "shares more than there is");
    bound = bound.substr(0, shared) + rest;
    // One may be just behind the longest key.
    if (i > 0 && bound <= named->bounds.back()) return Unreadable("bound", i, "does not rise");
    if (bound.size() > kUserKeySizeMax + 1) return Unreadable("bound", i, "is longer than a key");
    named->bounds.push_back(bound);
  }
  PARTITA_ASSIGN(const uint64_t tables, ReadCount(in, "table"));
  for (uint64_t i = 0; i < tables; ++i) {
    named->tables.push_back(ReadTableInfo(in));
    if (!in->ok()) return Unreadable("table", i, "is cut short");
    const TableInfo& info = *named->tables.back();
    if (std::max(info.smallest.size(), info.largest.size()) > kUserKeySizeMax)
      return Unreadable("table", i, "has a key that is too long");
  }
  return Status();
}

// Errors of these say what is wrong, not where.
Status CheckReference(const FileMeta& file) {
  if (file.info->smallest > file.info->largest)
    return Status::Corruption("is of a table that ends before it begins");
  if (!file.upper.empty() && file.upper <= file.lower) return Status::Corruption("has bounds without a key");
  return Status();
}

Result<FileMeta> ReadReference(ByteReader* in, const NamedParts& named) {
  const uint64_t level = in->ReadVarint(), table = in->ReadVarint();
  const uint64_t lower = in->ReadVarint(), upper = in->ReadVarint();
  if (!in->ok()) return Status::Corruption("is cut short");
  if (level >= kLevels) return Status::Corruption("is on an unknown level");
  if (table >= named.tables.size() || lower >= named.bounds.size() || upper >= named.bounds.size())
    return Status::Corruption("names a table or a bound that is not there");
  return FileMeta{static_cast<uint32_t>(level), named.bounds[lower], named.bounds[upper],
                  named.tables[table]};
}

Result<FileMeta> ReadWholeReference(ByteReader* in) {
  FileMeta file = ReadFileMeta(in);
  if (!in->ok()) return Status::Corruption("is cut short");
  return file;
}

Status ReadFiles(ByteReader* in, uint16_t format, const NamedParts& named, std::vector<FileMeta>* files) {
  PARTITA_ASSIGN(const uint64_t count, ReadCount(in, "file"));
  for (uint64_t i = 0; i < count; ++i) {
    Result<FileMeta> file = format < 5 ? ReadWholeReference(in) : ReadReference(in, named);
    const Status checked = file.ok() ? CheckReference(*file) : file.status();
    if (!checked.ok()) return Unreadable("file", i, checked.message());
    files->push_back(std::move(file).value());
  }
  return Status();
}

}  // namespace

Result<Manifest> DecodeManifest(std::string_view bytes) {
  ByteReader in(bytes);
  uint16_t format = in.ReadLe16();
  if (!in.ok()) return Status::Corruption("manifest: empty");
  if (format > kManifestFormat) {
    return Status::Unsupported("manifest: format " + std::to_string(format) + " is newer than " +
                               std::to_string(kManifestFormat) + ", which this version reads (F66)");
  }
  Manifest manifest;
  manifest.shard = ShardId(in.ReadLe32());
  manifest.layout = in.ReadLe32();
  manifest.replay_from = LogPosition(in.ReadLe64());
  manifest.version_ceiling = Version(in.ReadLe64());
  if (manifest.version_ceiling > kVersionGivenMax)
    return Status::Corruption("manifest: a version ceiling that no clock gives");
  if (format >= 2) manifest.log_segment = in.ReadLe64();
  NamedParts named;
  if (format >= 5) PARTITA_TRY(ReadNamed(&in, &named));
  PARTITA_TRY(ReadFiles(&in, format, named, &manifest.files));
  if (format >= 3) {
    manifest.prepared.attempt = in.ReadLe64();
    PARTITA_TRY(ReadFiles(&in, format, named, &manifest.prepared.files));
  }
  if (!in.AtCleanEnd()) return Status::Corruption("manifest: bytes left over at the end");
  return manifest;
}

void Manifest::Settle(const Catalog& catalog) {
  const PreparedFiles taken = std::exchange(prepared, PreparedFiles());
  if (taken.attempt == 0) return;
  for (const RangeDescriptor& range : catalog.ranges) {
    if (range.owner != shard || range.move_attempt != taken.attempt) continue;
    for (FileMeta file : taken.files) {
      if (CutTo(range.lower, range.upper, &file)) files.push_back(std::move(file));
    }
  }
}

void Manifest::KeepOwned(const Catalog& catalog) {
  Settle(catalog);
  std::vector<FileMeta> owned;
  for (const RangeDescriptor& range : catalog.ranges) {
    if (range.owner != shard) continue;
    for (FileMeta file : files) {
      if (CutTo(range.lower, range.upper, &file)) owned.push_back(std::move(file));
    }
  }
  files = std::move(owned);
}

std::vector<ObjectId> Manifest::Objects() const {
  std::vector<ObjectId> objects;
  for (const FileMeta& file : files) objects.push_back(file.info->id);
  for (const FileMeta& file : prepared.files) objects.push_back(file.info->id);
  std::sort(objects.begin(), objects.end());
  objects.erase(std::unique(objects.begin(), objects.end()), objects.end());
  return objects;
}

std::string ManifestKey(uint32_t layout, ShardId shard) {
  return std::string(kManifestPrefix) + std::to_string(layout) + "-" + std::to_string(shard.value);
}

std::optional<ShardOfLayout> ParseManifestKey(std::string_view key) {
  return ParseShardOfLayout(kManifestPrefix, key);
}

Status ManifestMissing(uint32_t layout, ShardId shard) {
  return Status::Corruption("meta/" + ManifestKey(layout, shard) +
                            " is missing although the catalog names the shard (F35)");
}

std::string LogDirectory(uint32_t layout, ShardId shard) {
  return std::string(kLogPrefix) + std::to_string(layout) + "-" + std::to_string(shard.value);
}

std::optional<ShardOfLayout> ParseLogDirectory(std::string_view name) {
  return ParseShardOfLayout(kLogPrefix, name);
}

Task<Result<Manifest>> ManifestStore::Load() {
  PARTITA_CO_ASSIGN(std::optional<MetaValue> value, co_await meta_.Get(key_));
  if (!value.has_value()) co_return Status::NotFound("there is no manifest " + key_);
  generation_ = value->generation;
  generation_known_ = true;
  Result<Manifest> manifest = DecodeManifest(value->bytes);
  if (!manifest.ok()) co_return manifest.status().WithContext("meta/" + key_);
  co_return manifest;
}

Task<Status> ManifestStore::Save(const Manifest& manifest) {
  if (!generation_known_) {
    PARTITA_CO_ASSIGN(std::optional<MetaValue> value, co_await meta_.Get(key_));
    generation_ = value.has_value() ? value->generation : 0;
    generation_known_ = true;
  }
  std::string bytes = EncodeManifest(manifest);
  Result<uint64_t> swapped = co_await meta_.CompareAndSwap(key_, generation_, bytes);
  if (!swapped.ok()) {
    generation_known_ = false;
    co_return swapped.status();
  }
  generation_ = *swapped;
  co_return Status();
}

}  // namespace partita
