#pragma once
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "compaction/ended_table.h"
#include "compaction/job.h"
#include "compaction/output_cutter.h"
#include "compaction/retention.h"
#include "compaction/warm_entries.h"
#include "engine/base/result.h"
#include "engine/base/task.h"
#include "sstable/table_reader.h"
#include "sstable/table_writer.h"

namespace partita {

// The tables that a job writes, one after the other.
//
// Use: for each key that goes out, `if (MustTurn(key)) co_await Turn();`, then Add or AddBlock (plain,
// no coroutine an entry), then `if (NeedsDrain()) co_await Drain();`. At the end Finish, or
// after any failure Discard; one of the two before destruction.
class TableOutputs {
 public:
  // All arguments outlive it. `shrink_min`: see TableWriterOptions. `warm` is told of each entry by the job.
  // `marks`: keys that the tables shall know the sizes between (TableReader::SetMarks); sorted.
  TableOutputs(JobContext& context, Codec codec, OutputCutter cutter, JobStatistics* statistics,
               uint32_t shrink_min, WarmEntries& warm, std::vector<std::string> marks);
  ~TableOutputs();

  // True when the file at hand ends before `key`, or none is open: Turn() must be awaited.
  // REQUIRES: asked once for each key, in rising order, before its first entry.
  bool MustTurn(std::string_view key);
  // Ends the file at hand, if any, and opens the next.
  Task<Status> Turn();

  // kCorruption names table and key when the stored value is not what its writer gave (F51).
  Status Add(const Entry& entry);
  Status AddBlock(const PassThroughBlock& block, uint64_t entry_count);
  // True when a cut point lies in (first, last].
  bool CutPointWithin(std::string_view first, std::string_view last) const {
    return cutter_.CutPointWithin(first, last);
  }

  // False when copying a block now would close the block at hand half empty: passing would fray the
  // tables into ever smaller blocks.
  bool AtBlockEnd() const { return block_fill() == 0 || block_fill() >= context_.block_size / 2; }
  // Instead: an input block with so many bytes of content, which could be copied but for that, is about to be
  // added entry by entry. With the block at hand it becomes blocks of one size, so that they end where it
  // does, and what follows it may be copied.
  void EvenOut(size_t content_size);

  bool NeedsDrain() const { return writer_ != nullptr && writer_->NeedsDrain(); }
  Task<Status> Drain();

  // Ends the last file. Every file is then durable (F25) and was read back in full (F47).
  Task<Status> Finish();
  // Removes everything written (F22).
  Task<void> Discard();

  const std::vector<std::shared_ptr<TableReader>>& tables() const { return tables_; }
  // What Discard could not remove.
  const std::vector<ObjectId>& left_behind() const { return left_behind_; }

 private:
  struct Sizes {
    std::vector<TableReader::SizeMark> marks;
    uint64_t entries = 0;
  };
  // So many go to the table at hand, the first of them at `key`.
  void Count(std::string_view key, uint64_t entries);
  // How much of a target size the file at hand is. REQUIRES: there is one.
  uint64_t CountedBytes() const;
  // Bytes in the writer's unfinished block.
  size_t block_fill() const { return writer_ == nullptr ? 0 : writer_->block_fill(); }
  // The file at hand is complete. REQUIRES: there is one.
  Task<Status> EndTable();
  // Awaits the file before, durable and read back, if there is one.
  Task<Status> SettleEnded();

  JobContext& context_;
  Codec codec_;
  uint32_t shrink_min_;
  OutputCutter cutter_;
  JobStatistics* statistics_;
  WarmEntries& warm_;
  std::unique_ptr<TableWriter> writer_;
  std::shared_ptr<EndedTable> ended_;  // The file before, on its way.
  std::vector<std::shared_ptr<EndedTable>> settled_;
  std::vector<std::string> marks_;
  size_t next_mark_ = 0;      // The first that is above the last key.
  std::vector<Sizes> sizes_;  // Of each table begun.
  std::vector<std::shared_ptr<TableReader>> tables_;
  std::vector<ObjectId> left_behind_;
};

// "table 7, key 00000007..." for messages about one entry.
std::string DescribeKey(std::string_view user_key);

// The bounds of ranges, as marks or cut points. REQUIRES: the ranges are disjoint and sorted.
template <typename Ranges>
std::vector<std::string> BoundsOf(const Ranges& ranges) {
  std::vector<std::string> bounds;
  for (const auto& range : ranges) {
    if (bounds.empty() || bounds.back() != range.lower) bounds.push_back(range.lower);
    if (!range.upper.empty()) bounds.push_back(range.upper);
  }
  return bounds;
}

// Counts what became of an entry (F47).
void CountFate(Fate fate, JobStatistics* statistics);

// kCorruption when entries do not add up (F47).
Status CheckAccounts(const JobStatistics& statistics);

}  // namespace partita
