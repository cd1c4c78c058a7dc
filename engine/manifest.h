#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/ids.h"
#include "engine/base/meta_store.h"
#include "engine/base/result.h"
#include "engine/base/task.h"
#include "engine/catalog.h"
#include "sstable/level_set.h"

namespace partita {

// The files of a range that is on its way to this shard. They are its own if, and as far as, the catalog has
// ranges here that this attempt brought; attempts are never repeated (DESIGN 8).
struct PreparedFiles {
  uint64_t attempt = 0;  // 0: none.
  std::vector<FileMeta> files;
};

// What one shard has on disk: its table files, by virtual reference, and from where its log counts.
//
// It is replaced whole and atomically with each flush or compaction, in the meta store: there is no manifest
// log with a torn end to decide about, and a failed write leaves the old value whole (F23, F34). Thousands of
// ranges refer to the files of each flush, so files and bounds are written once, with some 150 bytes and as
// they are, and a reference is 4 to 8 bytes.
//
// Encoded (little-endian, inside the sealed meta value of key "shard-<layout>-<index>"):
//   u16 format · u32 shard · u32 layout · u64 replay_from · u64 version_ceiling · u64 log_segment
//   · varint bounds { varint shared with the one before, bytes rest } · varint tables { table info }
//   · varint files { reference } · u64 attempt · varint prepared { reference }
//   reference: varint level, table, lower, upper; the last three count from 0
// Formats before 5 have neither bounds nor tables, and in place of references file metas
// (sstable/level_set.h). Format 1 had no log_segment, which is read as 0; formats 1 and 2 had nothing
// prepared. Before format 4 no log held an import (batch_record.h): who cannot read one refuses the manifest,
// before it writes (F66).
struct Manifest {
  ShardId shard;
  uint32_t layout = 1;
  // Records below it are in table files (F36); replay starts here.
  LogPosition replay_from{1};
  // No version above it was exposed before the records that the log holds (F18).
  Version version_ceiling;
  // The log had reached this segment: one that ends before it has lost its newest files (F35).
  uint64_t log_segment = 0;
  std::vector<FileMeta> files;
  PreparedFiles prepared;

  // Takes over what was prepared, if the catalog says that its move was made; else forgets it.
  void Settle(const Catalog& catalog);
  // Of the files that it names, prepared ones too: sorted, each once.
  std::vector<ObjectId> Objects() const;
  // Settles, and forgets what the catalog gives to other shards, or to none.
  void KeepOwned(const Catalog& catalog);
};

inline constexpr uint16_t kManifestFormat = 5;

std::string EncodeManifest(const Manifest& manifest);
// kCorruption, or kUnsupported for a newer format; the message says which field.
Result<Manifest> DecodeManifest(std::string_view bytes);

std::string ManifestKey(uint32_t layout, ShardId shard);
// Of which layout and shard a key of the meta store is the manifest; nothing for a key of another kind.
struct ShardOfLayout {
  uint32_t layout = 0;
  ShardId shard;
};
std::optional<ShardOfLayout> ParseManifestKey(std::string_view key);
// What is to say when a store that was formed has none.
Status ManifestMissing(uint32_t layout, ShardId shard);
// The directory of a shard's log. A layout has its own, so a store whose number of shards changed
// never reads a log of another layout.
std::string LogDirectory(uint32_t layout, ShardId shard);
std::optional<ShardOfLayout> ParseLogDirectory(std::string_view name);  // Nothing: it is another.

// Loads and replaces one shard's manifest; remembers the generation. One user at a time.
class ManifestStore {
 public:
  // With kMayExist the first Save replaces whatever an interrupted change of layout left.
  enum class Existing : uint8_t { kLoadFirst, kMayExist };
  ManifestStore(MetaStore& meta, uint32_t layout, ShardId shard, Existing existing = Existing::kLoadFirst)
      : meta_(meta), key_(ManifestKey(layout, shard)), generation_known_(existing == Existing::kLoadFirst) {}

  // kNotFound when there is none.
  Task<Result<Manifest>> Load();

  // Replaces the manifest durably. After kUnknown or any other failure the value on disk is either
  // the old or the new one: the next Save reads the generation first.
  Task<Status> Save(const Manifest& manifest);

 private:
  MetaStore& meta_;
  std::string key_;
  uint64_t generation_ = 0;
  bool generation_known_;
};

}  // namespace partita
