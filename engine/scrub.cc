#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "engine/backup.h"
#include "engine/base/executor.h"
#include "engine/damage.h"
#include "engine/io/local_meta_store.h"
#include "engine/store.h"
#include "engine/task_pacer.h"
#include "sstable/block_cache.h"
#include "sstable/table_reader.h"
#include "wal/log_inspect.h"
#include "wal/log_recoverer.h"
#include "wal/segment_pool.h"

// Scrubbing a store that is in use (F50): catalog and manifests, of a backup its record, then logs, then
// table files.
//
// Table files do not change, and whatever is listed at the beginning is read, unless it was let go since.
// A log does change: a frame may be written between the look at its place and the look behind it, and then
// seems to be missing before one that proves it. So what looks damaged is looked at again, without pauses
// between files, and counts only when it is there each time, at the same place; what proves it is newer with
// each write.
//
// Damage counts in the store's metrics as it is found, and an error that ends the scrub tells of it: who runs
// it for days learns of damage although memory did not last, or the client that would be answered.

namespace partita {

namespace {

constexpr uint64_t kScrubCacheBytes = 4u << 20;
constexpr int kLooksMax = 5;
constexpr uint64_t kPauseNanos = 20'000'000;
constexpr size_t kToldInErrorMax = 20;

struct Due {
  SharedTableInfo info;
  BackgroundMeter* meter = nullptr;  // Of a shard that has it.
};

uint64_t RateOf(const ScrubOptions& options, uint64_t bytes) {
  const uint64_t most = options.pace.bytes_per_second;
  if (options.period_seconds == 0) return most;
  const uint64_t spread = std::max<uint64_t>(bytes / options.period_seconds, 1);
  return most == 0 ? spread : std::min(most, spread);
}

// So that what is read next are the medium's own bytes.
Task<void> DropCacheOf(FileSystem& files, std::string path) {
  auto file = co_await files.Open(path, OpenMode::kRead, FileIo::kBuffered);
  if (file.ok()) (void)co_await (*file)->DropCache();  // Else the read below says why.
}

// What Scrubber::Log reads, of all shards: whole files, those that are prepared or free included.
Task<Result<uint64_t>> LogFileBytes(FileSystem& files, const Catalog& catalog) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < catalog.shard_count; ++i) {
    const std::string directory = LogDirectory(catalog.layout, ShardId(i));
    PARTITA_CO_ASSIGN(const bool exists, co_await files.Exists(directory));
    if (!exists) continue;
    PARTITA_CO_ASSIGN(const std::vector<DirectoryEntry> entries, co_await files.List(directory));
    for (const DirectoryEntry& entry : entries) {
      if (SegmentPool::NumberOf(entry.name)) bytes += entry.size;
    }
  }
  co_return bytes;
}

class Scrubber {
 public:
  // `meters`: by shard; null of those that are not open. `faults` and `damages`: the store's.
  Scrubber(FileSystem& files, ObjectStore& objects, ReadFaults& faults, std::atomic<uint64_t>& damages,
           const Catalog& catalog, TaskPacer& pacer, std::vector<BackgroundMeter*> meters)
      : files_(files),
        faults_(faults),
        damages_(damages),
        catalog_(catalog),
        pacer_(pacer),
        meters_(std::move(meters)),
        paced_(objects, pacer),
        cache_(kScrubCacheBytes) {}

  // `references`: of the store.
  Task<Result<ScrubReport>> Run(std::map<ObjectId, Due> tables, const ObjectReferences& references) {
    Status ended, unread;
    const auto note = [&](const Status& checked) {
      HandOver();
      // There may be enough memory for the others.
      (checked.code() == Code::kResourceExhausted ? unread : ended) = checked;
    };
    note(co_await Meta());
    for (uint32_t i = 0; ended.ok() && i < catalog_.shard_count; ++i) note(co_await Log(ShardId(i)));
    for (auto due = tables.begin(); ended.ok() && due != tables.end(); ++due)
      note(co_await Table(due->second, references));
    if (ended.ok()) ended = unread;
    if (!ended.ok()) co_return WithDamages(ended);
    co_return std::move(report_);
  }

 private:
  struct Segment {
    std::string path;
    InspectedSegment found;
  };

  Task<Status> Meta() {
    std::vector<std::string> keys = {kCatalogKey};
    for (uint32_t i = 0; i < catalog_.shard_count; ++i) {
      keys.push_back(ManifestKey(catalog_.layout, ShardId(i)));
    }
    // A store of its own, which has nothing in memory: what it answers is on the disk.
    PARTITA_CO_ASSIGN(auto meta, co_await LocalMetaStore::Open(files_, catalog_.store, IfMissing::kFail,
                                                               &cache_.faults().transient));
    Status unread;  // There may be enough memory for the others.
    for (const std::string& key : keys) {
      co_await DropCacheOf(files_, std::string(kMetaDirectory) + "/" + key);
      Result<std::optional<MetaValue>> value = co_await meta->Get(key);
      Status checked = value.status();
      if (checked.ok()) {
        checked = CheckValue(key, *value);
        if (value->has_value()) report_.bytes += (*value)->bytes.size();
      }
      if (checked.code() == Code::kResourceExhausted) {
        unread = checked;
        continue;
      }
      ++report_.meta_values;
      if (!checked.ok() && !IsDamage(checked)) co_return checked;
      if (!checked.ok()) report_.damages.push_back(checked.ToString());
    }
    if (unread.ok() && report_.damages.empty()) PARTITA_CO_TRY(co_await BackupKind());
    PARTITA_CO_TRY(co_await pacer_.Spend(0));
    co_return unread;
  }

  // Of a backup a restore asks more of its meta values than that each is sound.
  Task<Status> BackupKind() {
    PARTITA_CO_ASSIGN(const bool is_backup, co_await files_.Exists(MetaPath(kBackupKey)));
    if (!is_backup) co_return Status();
    co_await DropCacheOf(files_, MetaPath(kBackupKey));
    ++report_.meta_values;
    const Status checked = co_await CheckIsBackup(files_);
    if (!checked.ok() && !IsDamage(checked)) co_return checked;
    if (!checked.ok()) report_.damages.push_back(checked.ToString());
    co_return Status();
  }

  Task<Status> Log(ShardId shard) {
    pacer_.MeterBy(meters_[shard.value], BackgroundWork::kScrub);
    const std::string directory = LogDirectory(catalog_.layout, shard);
    PARTITA_CO_ASSIGN(const bool exists, co_await files_.Exists(directory));
    if (!exists) co_return Status();  // A backup has none; a store's shard does not open without.
    // Looked at again when it seems damaged: it may just be being written. What is damaged stays so. The
    // first look takes as long as the pace demands, and what has passed since may be all that it tells:
    // what counts begins with the second.
    LogDamages found;
    for (int look = 0; look < kLooksMax; ++look) {
      PARTITA_CO_ASSIGN(LogDamages seen, co_await DamagesOfLog(directory, shard, look == 0));
      if (look > 1) std::erase_if(seen, [&](const auto& damage) { return !found.contains(damage.first); });
      found = std::move(seen);
      if (found.empty()) break;
      co_await SleepFor(kPauseNanos);
    }
    for (auto& [place, text] : found) report_.damages.push_back(std::move(text));
    co_return Status();
  }

  // By `references` nothing may refer to the file any more.
  Task<Status> Table(Due due, const ObjectReferences& references) {
    if (!references.Contains(due.info->id)) {
      pacer_.NotDue(due.info->file_size);
      co_return Status();
    }
    pacer_.MeterBy(due.meter, BackgroundWork::kScrub);
    TableVerifyReport found;
    Status verified;
    Result<std::shared_ptr<TableReader>> table =
        co_await TableReader::Open(paced_, cache_, catalog_.store, due.info->id);
    if (table.ok()) {
      verified = co_await (*table)->Verify(&found);
      if (verified.ok()) verified = (*table)->CheckIs(*due.info);
    } else {
      verified = table.status();
    }
    PARTITA_CO_TRY(pacer_.CheckCancelled());
    if (!verified.ok() && verified.code() == Code::kNotFound && !references.Contains(due.info->id))
      co_return Status();
    if (!verified.ok() && !IsDamage(verified)) co_return verified;
    ++report_.tables;
    report_.entries += found.entries;
    report_.bytes += due.info->file_size;
    if (!verified.ok()) report_.damages.push_back(verified.ToString());
    co_return Status();
  }

  // What reading met is counted like what other readers meet (F50).
  void HandOver() {
    const auto move = [](std::atomic<uint64_t>& from, std::atomic<uint64_t>& to) {
      const uint64_t seen = from.exchange(0, std::memory_order_relaxed);
      to.fetch_add(seen, std::memory_order_relaxed);
      return seen;
    };
    ReadFaults& met = cache_.faults();
    report_.transient += move(met.transient, faults_.transient);
    move(met.damaged_parts, faults_.damaged_parts);
    move(met.damaged_filters, faults_.damaged_filters);
    const size_t found = report_.damages.size();
    damages_.fetch_add(found - std::exchange(handed_over_, found), std::memory_order_relaxed);
  }

  // It is told now or by a scrub to come (F80).
  Status WithDamages(const Status& ended) const {
    if (report_.damages.empty()) return ended;
    std::string text = "the scrub ended early, and had found damage";
    const size_t told = std::min(report_.damages.size(), kToldInErrorMax);
    for (size_t i = 0; i < told; ++i) text += (i == 0 ? ": " : "; ") + report_.damages[i];
    const size_t others = report_.damages.size() - told;
    if (others > 0) text += "; and " + std::to_string(others) + " more";
    return ended.WithContext(text);
  }

  Status CheckValue(const std::string& key, const std::optional<MetaValue>& value) {
    const std::string name = std::string(kMetaDirectory) + "/" + key;
    if (!value.has_value()) return Status::Corruption(name + " is missing (F35)");
    const Status decoded =
        key == kCatalogKey ? DecodeCatalog(value->bytes).status() : DecodeManifest(value->bytes).status();
    return decoded.WithContext(name);
  }

  using Segments = std::map<SegmentId, Segment>;
  // What is said of each, by what of it stays while the log is written to.
  using LogDamages = std::map<std::string, std::string>;

  // Every segment file of a log, those in use by their number; what cannot be read goes to `damages`.
  Task<Result<Segments>> SegmentsOf(std::string directory, bool count, LogDamages* damages) {
    Segments segments;
    PARTITA_CO_ASSIGN(std::vector<DirectoryEntry> entries, co_await files_.List(directory));
    for (const DirectoryEntry& entry : entries) {
      if (!SegmentPool::NumberOf(entry.name)) continue;
      const std::string path = directory + "/" + entry.name;
      co_await DropCacheOf(files_, path);
      Result<InspectedSegment> segment = co_await InspectSegment(files_, path, nullptr);
      if (segment.code() == Code::kNotFound) continue;  // Removed meanwhile.
      if (segment.code() == Code::kIoError) {
        damages->emplace(path, path + ": " + segment.status().message());
        continue;
      }
      PARTITA_CO_TRY(segment.status());
      if (count) PARTITA_CO_TRY(co_await pacer_.Spend(entry.size));
      // One without a valid header is being made, or was; whether one is missing shows in those that are
      // there.
      if (!segment->header_valid || segment->segment.value == 0) continue;
      if (count) ++report_.log_segments;
      if (count) report_.bytes += segment->end_offset;
      if (!segment->size_problem.empty()) damages->emplace(path, path + ": " + segment->size_problem);
      segments[segment->segment] = {path, std::move(segment).value()};
    }
    co_return segments;
  }

  using Chain = std::vector<const Segment*>;

  // As recovery finds it: the newest segment in effect, and those in front of it by the name that each has of
  // its predecessor; oldest first. All others are spares, whatever their headers say, or what is still being
  // copied to.
  static Chain ChainOf(const Segments& segments) {
    Chain chain;
    auto at = segments.end();
    for (auto i = segments.begin(); i != segments.end(); ++i) {
      if (i->second.found.in_effect) at = i;
    }
    while (at != segments.end()) {
      chain.push_back(&at->second);
      const SegmentId previous = at->second.found.previous_segment;
      at = previous < at->first ? segments.find(previous) : segments.end();
    }
    std::reverse(chain.begin(), chain.end());
    return chain;
  }

  // What is missing in front of those that are there, or behind: two of the things for which recovery refuses
  // a log (wal/log_recoverer.cc). Each by the segment next to it: what is expected of the log moves on
  // meanwhile.
  static void CheckEnds(const std::string& directory, const Chain& chain, const Manifest& manifest,
                        LogDamages* damages) {
    const uint64_t newest = chain.empty() ? 0 : chain.back()->found.segment.value;
    if (newest < manifest.log_segment) {
      const Status lost = NewestSegmentLost(directory, SegmentId(manifest.log_segment), SegmentId(newest));
      damages->emplace(directory + ": newest " + std::to_string(newest), lost.message());
    }
    const LogPosition from = manifest.replay_from;
    if (chain.empty() || from.value == 0) return;
    const InspectedSegment& oldest = chain.front()->found;
    if (oldest.begin.HoldsBeginOf(from)) return;
    const std::string text = directory + ": the log begins at position " +
                             std::to_string(oldest.begin.first_position.value) + ", in " +
                             chain.front()->path + ", but records from " + std::to_string(from.value) +
                             " on are expected (F34)";
    damages->emplace(chain.front()->path + ": front", text);
  }

  // What of a log counts: from the last segment on that holds the beginning of the manifest's replay_from.
  // Each must have all frames up to the one that its successor names; what stands behind that one is void. In
  // the last one no later frame may prove that there was more (F31).
  Task<Result<LogDamages>> DamagesOfLog(std::string directory, ShardId shard, bool count) {
    LogDamages damages;
    PARTITA_CO_ASSIGN(const Segments segments, co_await SegmentsOf(directory, count, &damages));
    // Read after the segments: what was trimmed and used again meanwhile lies below it.
    PARTITA_CO_ASSIGN(auto meta, co_await LocalMetaStore::Open(files_, catalog_.store, IfMissing::kFail,
                                                               &cache_.faults().transient));
    ManifestStore manifests(*meta, catalog_.layout, shard);
    const Result<Manifest> manifest = co_await manifests.Load();
    // Of what cannot be read it is not known where it belongs.
    if (!damages.empty()) co_return damages;
    if (!manifest.ok() && !IsDamage(manifest.status())) co_return manifest.status();
    // If it is bad, Meta has said so.
    const LogPosition from = manifest.ok() ? manifest->replay_from : LogPosition(UINT64_MAX);
    const Chain chain = ChainOf(segments);
    if (manifest.ok()) CheckEnds(directory, chain, *manifest, &damages);
    size_t first = 0;
    for (size_t i = 1; i < chain.size(); ++i) {
      if (chain[i]->found.begin.HoldsBeginOf(from)) first = i;
    }
    for (size_t i = first; i < chain.size(); ++i) {
      const InspectedSegment& segment = chain[i]->found;
      std::string problem;
      if (i + 1 == chain.size()) {
        if (segment.damaged) problem = segment.end_reason + " (F31)";
      } else {
        const InspectedSegment& next = chain[i + 1]->found;
        if (std::count(segment.seals.begin(), segment.seals.end(), next.previous_seal) == 0) {
          problem = "the frame is bad, though segment " + std::to_string(next.segment.value) +
                    " goes on after it at position " + std::to_string(next.begin.first_position.value) +
                    " (F31)";
        }
      }
      if (problem.empty()) continue;
      const std::string place = chain[i]->path + ", offset " + std::to_string(segment.end_offset);
      damages.emplace(place, place + ": " + problem);
    }
    co_return damages;
  }

  FileSystem& files_;
  ReadFaults& faults_;
  std::atomic<uint64_t>& damages_;
  const Catalog& catalog_;
  TaskPacer& pacer_;
  const std::vector<BackgroundMeter*> meters_;
  PacedObjectStore paced_;
  BlockCache cache_;
  ScrubReport report_;
  size_t handed_over_ = 0;  // Of report_.damages.
};

}  // namespace

Task<Result<ScrubReport>> Store::Scrub(ScrubOptions options) {
  std::map<ObjectId, Due> tables;
  for (Shard* shard : sound_shards_) {
    for (const FileMeta& file : shard->Files()) {
      tables.emplace(file.info->id, Due{file.info, &shard->background()});
    }
  }
  const Catalog catalog = CatalogCopy();
  PARTITA_CO_ASSIGN(uint64_t bytes, co_await LogFileBytes(runtime_.files(), catalog));
  for (const auto& [id, due] : tables) bytes += due.info->file_size;
  options.pace.bytes_per_second = RateOf(options, bytes);

  TaskPacer pacer(runtime_.clock(), options.pace, bytes);
  Scrubber scrubber(runtime_.files(), *objects_, cache_->faults(), scrub_damages_, catalog, pacer,
                    BackgroundMeters());
  co_return co_await scrubber.Run(std::move(tables), references_);
}

}  // namespace partita
