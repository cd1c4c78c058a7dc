#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "engine/catalog.h"
#include "engine/io/local_object_store.h"
#include "engine/io/meta_format.h"
#include "engine/manifest.h"
#include "engine/repair.h"
#include "engine/repair_reach.h"
#include "engine/task_pacer.h"
#include "sstable/block_cache.h"
#include "sstable/table_reader.h"
#include "sstable/table_scan.h"
#include "wal/log_salvage.h"

namespace partita {

// What a damaged store still holds, and what is damaged; nothing is changed.
//
// Steps: 1. The catalog; a lost one is guessed from the names of manifests and logs, and so is one of another
// store than they are. 2. The manifests. 3. The
// logs, as far as they go; with a lost catalog manifests count as lost where they and the logs contradict
// each other (repair_reach.h), and where a manifest is lost, what shows that the log is not whole is looked
// for (repair_doubts.cc). A manifest that is older than its log, as one of an older copy of the store, counts
// as lost. 4. Every table file that a manifest names, whole; when a manifest is lost, all that lie there.
// 5. A lost catalog's tables, from the keys that 3 and 4 have met.
struct RepairFindings {
  struct Shard {
    ShardId id;
    // It cannot be read, or without the catalog it does not say what counts: `manifest` then has no files,
    // and as far as it can be read keeps the position in the log.
    bool manifest_lost = false;
    Manifest manifest;
    std::vector<FileMeta> named;  // What it named, also when it does not count.
    SalvagedLog log;
    // Of a log that begins midway: a table has a record of it, so tables have all that came before.
    bool begin_flushed = false;
    // In what is kept of the log: values that rotted before their frames were sealed.
    std::vector<SkippedSpan> rotted;
    std::string end_doubt;  // Why its log may have gone on; empty: it did not.
  };
  struct Table {
    ObjectId id;
    std::shared_ptr<TableReader> reader;  // Null: it does not open.
    Status damage;                        // Ok: sound.
    std::vector<SkippedSpan> lost;
    uint64_t entries = 0;   // That can be read.
    bool named = false;     // By a manifest that can be read,
    SharedTableInfo info;   // which says this of it.
    bool replaced = false;  // Another file is in its place.
  };

  StoreId store;
  bool catalog_lost = false;
  uint64_t catalog_generation = 0;
  Catalog catalog;  // Lost: made anew, in the present layout.
  std::vector<Shard> shards;
  std::vector<ObjectInfo> objects;  // Table files there are, but for those of an interrupted repair.
  std::map<ObjectId, Table> tables;
  uint32_t layout_max = 0;       // That any name in the directory tells of.
  uint32_t incarnation_max = 0;  // Of logs, objects and catalog.
  ObjectId object_max;           // Of any name in the directory of tables.
  Version version_max;           // Of anything seen.
  RepairReport report;

  bool any_manifest_lost() const;
};

// Whether there is anything by whose name a store could be found: meta files, logs, tables.
Task<Result<bool>> HoldsFilesOfAStore(FileSystem& files);

// The world a repair reads in: files through which nothing can be changed, or those of the repair.
class RepairSurvey {
 public:
  RepairSurvey(const RepairWorld& world, FileSystem& files, const RepairOptions& options);

  Task<Status> Run();
  RepairFindings& findings() { return found_; }
  BlockCache& cache() { return cache_; }
  TaskPacer& pacer() { return pacer_; }
  ObjectStore& objects() { return *objects_; }
  FileSystem& files() { return files_; }
  // What meta/ holds: the catalog, and manifests of every layout.
  const std::set<std::string>& meta_keys() const { return meta_keys_; }
  LocalLogOptions LogOptionsOf(const RepairFindings::Shard& shard) const;

 private:
  Task<Status> FindCatalog();
  Task<Status> PassLayoutsOfLogs();
  Task<std::vector<StoreId>> StoresOfMeta();
  Task<std::vector<StoreId>> StoresOfLogs(uint32_t layout);
  Task<Result<bool>> IsAnothers(StoreId store);
  Task<Status> FindStoreId();
  Task<Status> OpenObjects();
  Task<Status> ListObjects();
  Task<Status> GuessLayout();
  Task<Status> FindManifests();
  void LoseManifests();
  Task<Status> FindLogs();
  Task<Status> ReadLog(RepairFindings::Shard* shard, RepairReach* reach);
  bool IsOlderThanItsLog(const RepairFindings::Shard& shard) const;
  void LoseManifest(RepairFindings::Shard* shard, Status why);
  void DoubtEnds();
  bool LogAlone(const RepairFindings::Shard& shard) const {
    return manifest_damages_.contains(shard.id.value);
  }
  void NoteLogged(const RepairFindings::Shard& shard, const Entry& entry);
  Task<Status> NoteFlushed(const TableReader& table);
  Task<Status> FindTables();
  Task<Status> ReadTable(RepairFindings::Table* table);
  void NoteTableOf(const Entry& entry);
  Task<Status> NoteTablesIn(const TableReader& table);
  void RebuildCatalog();
  void ListDamages();
  Task<Status> ListBackup();
  void ListLog(const RepairFindings::Shard& shard);
  void ListRotted(const RepairFindings::Shard& shard);
  void ListTable(const RepairFindings::Table& table);
  void ListManifest(const RepairFindings::Shard& shard, const Status& why);
  void ListDoubts(const RepairFindings::Shard& shard, RepairDamage* damage) const;
  // Cuts [lower, upper) at tables, and puts it in words.
  void AddLost(std::string_view lower, std::string_view upper, Version after, RepairDamage* damage) const;
  static void AddLostOf(TableId id, const std::string& name, std::string_view lower, std::string_view upper,
                        Version after, RepairDamage* damage);
  void AddLostNameless(const std::string& lower, const std::string& upper, RepairDamage* damage) const;
  Version KeptTo(const RepairFindings::Shard& shard) const;
  Version FlushedTo(const RepairFindings::Shard& shard) const;
  bool IsItsOwn(const RepairFindings::Shard& shard, const TableInfo& table) const;
  // What it wrote after `kept_to`.
  void AddLostShard(const RepairFindings::Shard& shard, Version kept_to, RepairDamage* damage) const;
  Task<Result<MetaRecord>> ReadMeta(std::string key);
  Task<Result<bool>> ExpectsLog(std::string manifest_key);

  const RepairWorld& world_;
  FileSystem& files_;
  const RepairOptions& options_;
  TaskPacer pacer_;
  BlockCache cache_;
  std::unique_ptr<ObjectStore> objects_;
  bool objects_missing_ = false;  // Their directory.
  std::set<std::string> meta_keys_;
  std::map<uint32_t, Status> manifest_damages_;  // By shard.
  Status catalog_damage_;
  // Records of logs that may begin midway, as hashes of a key and its version; by shard.
  std::map<uint32_t, std::unordered_set<uint64_t>> logged_;
  // When the catalog is lost: table ids, and whether all that was put are entities.
  std::map<uint32_t, bool> met_;
  RepairFindings found_;
};

// Keeps them. `out` outlives it.
class SpanList final : public SkippedSpanSink {
 public:
  explicit SpanList(std::vector<SkippedSpan>* out) : out_(out) {}
  void Skipped(SkippedSpan span) override { out_->push_back(std::move(span)); }

 private:
  std::vector<SkippedSpan>* out_;
};

// Every entry of the table that can be read, in order: `take` with each, then `between` (may be null), which
// may wait; what cannot be read is told to `skipped`. All outlive the task.
Task<Status> ReadWhatThereIs(const TableReader& table, SkippedSpanSink* skipped,
                             std::function<Status(const Entry&)> take,
                             std::function<Task<Status>()> between = nullptr);

}  // namespace partita
