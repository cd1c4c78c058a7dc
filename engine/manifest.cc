#include "engine/manifest.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "engine/base/coding.h"

namespace partita {

namespace {

constexpr std::string_view kManifestPrefix = "shard-";

}  // namespace

std::string EncodeManifest(const Manifest& manifest) {
  std::string out;
  AppendLe16(&out, kManifestFormat);
  AppendLe32(&out, manifest.shard.value);
  AppendLe32(&out, manifest.layout);
  AppendLe64(&out, manifest.replay_from.value);
  AppendLe64(&out, manifest.version_ceiling.value);
  AppendLe64(&out, manifest.log_segment);
  AppendVarint(&out, manifest.files.size());
  for (const FileMeta& file : manifest.files) AppendFileMeta(&out, file);
  AppendLe64(&out, manifest.prepared.attempt);
  AppendVarint(&out, manifest.prepared.files.size());
  for (const FileMeta& file : manifest.prepared.files) AppendFileMeta(&out, file);
  return out;
}

namespace {

Status ReadFiles(ByteReader* in, std::vector<FileMeta>* files) {
  const uint64_t count = in->ReadVarint();
  if (!in->ok()) return Status::Corruption("manifest: header is cut short");
  if (count > in->remaining()) return Status::Corruption("manifest: file count is beyond its size");
  for (uint64_t i = 0; i < count; ++i) {
    files->push_back(ReadFileMeta(in));
    if (!in->ok()) return Status::Corruption("manifest: file " + std::to_string(i) + " is cut short");
    if (files->back().level >= static_cast<uint32_t>(LevelSet::kLevels)) {
      return Status::Corruption("manifest: file " + std::to_string(i) + " is on an unknown level");
    }
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
  if (format >= 2) manifest.log_segment = in.ReadLe64();
  PARTITA_TRY(ReadFiles(&in, &manifest.files));
  if (format >= 3) {
    manifest.prepared.attempt = in.ReadLe64();
    PARTITA_TRY(ReadFiles(&in, &manifest.prepared.files));
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
  for (const FileMeta& file : files) objects.push_back(file.info.id);
  for (const FileMeta& file : prepared.files) objects.push_back(file.info.id);
  std::sort(objects.begin(), objects.end());
  objects.erase(std::unique(objects.begin(), objects.end()), objects.end());
  return objects;
}

std::string ManifestKey(uint32_t layout, ShardId shard) {
  return std::string(kManifestPrefix) + std::to_string(layout) + "-" + std::to_string(shard.value);
}

std::optional<ShardOfLayout> ParseManifestKey(std::string_view key) {
  if (!key.starts_with(kManifestPrefix)) return std::nullopt;
  ShardOfLayout out;
  const char* end = key.data() + key.size();
  auto layout = std::from_chars(key.data() + kManifestPrefix.size(), end, out.layout);
  if (layout.ec != std::errc() || layout.ptr == end || *layout.ptr != '-') return std::nullopt;
  if (out.layout == 0 || out.layout > kLayoutMax) return std::nullopt;
  auto shard = std::from_chars(layout.ptr + 1, end, out.shard.value);
  if (shard.ec != std::errc() || shard.ptr != end || out.shard.value >= kShardCountMax) return std::nullopt;
  return out;
}

Status ManifestMissing(uint32_t layout, ShardId shard) {
  return Status::Corruption("meta/" + ManifestKey(layout, shard) +
                            " is missing although the catalog names the shard (F35)");
}

std::string LogDirectory(uint32_t layout, ShardId shard) {
  return "log-" + std::to_string(layout) + "-" + std::to_string(shard.value);
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
