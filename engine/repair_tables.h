#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compaction/job.h"
#include "engine/base/chunk_pool.h"
#include "engine/base/entry_iterator.h"
#include "engine/batch_record.h"
#include "engine/repair_survey.h"
#include "memtable/memtable.h"
#include "sstable/table_writer.h"

namespace partita {

// Writes the new table files of a repair: what logs hold, what of damaged tables can be read, and what the
// table files of a lost manifest hold together. Each file is read back before it is named (F47).
//
// Used by one thread at a time; everything outlives it.
class RepairTables {
 public:
  // `catalog`: of the repaired store. New objects get ids of `incarnation`, which no object has yet.
  RepairTables(RepairSurvey& survey, const Catalog& catalog, uint32_t incarnation, const RepairWorld& world,
               const RepairOptions& options);

  // The log of a shard as tables of level 0, each within one range.
  Task<Result<std::vector<FileMeta>>> OfLog(const RepairFindings::Shard& shard);

  // A damaged table as far as it can be read, for `level`; nothing when no entry is left.
  Task<Result<std::optional<TableInfo>>> OfDamaged(const RepairFindings::Table& table, uint32_t level);

  // All that `tables` hold of a range, as tables of level 1. Among them may be inputs of a compaction beside
  // its outputs: an entry that several hold is written once.
  Task<Result<std::vector<FileMeta>>> OfRange(const RangeDescriptor& range,
                                              std::vector<std::shared_ptr<TableReader>> tables);

  Task<Result<std::shared_ptr<TableReader>>> Open(ObjectId id);

 private:
  // The file that is being written, if any.
  Task<Status> Begin(uint32_t level, Version counts_as);
  Task<Status> Add(const Entry& entry);
  Task<Status> DrainIfDue();
  Task<Result<TableInfo>> End();
  Task<Status> EndBadly(Status why);

  Task<Status> WriteMemtable(Memtable& memtable, std::vector<FileMeta>* out);
  Task<Status> Merge(const RangeDescriptor& range, std::vector<std::unique_ptr<TableIterator>> sources,
                     std::vector<FileMeta>* out);
  Task<Status> CopyDamaged(const TableReader& table);
  ObjectId NextId() { return ObjectId(uint64_t{incarnation_} << 32 | ++ids_); }
  bool Counts(const RepairFindings::Shard& shard, const BatchRecordHeader& record,
              std::string_view user_key) const;

  RepairSurvey& survey_;
  const Catalog& catalog_;
  const uint32_t incarnation_;
  const RepairWorld& world_;
  ChunkPool pool_;
  uint32_t ids_ = 0;
  std::unique_ptr<TableWriter> writer_;
  ObjectId writer_id_;
};

}  // namespace partita
