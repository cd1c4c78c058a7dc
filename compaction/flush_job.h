#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compaction/job.h"
#include "compaction/retention.h"
#include "engine/base/entry_iterator.h"
#include "engine/base/result.h"
#include "engine/base/task.h"

namespace partita {

class TableOutputs;
class WarmEntries;

struct FlushSpec {
  // All entries of the frozen memtables that are flushed, forward. They stay until the job ended.
  std::unique_ptr<EntryIterator> entries;
  // Whether readers want the entry at which `entries` stands: then the cache gets it. Empty: none.
  std::function<bool()> is_wanted;
  // The cache gets the others as well, where it has memory to spare.
  bool fills_cache = false;
  // No level holds a key between the first and the last of them, as where rows come in order: what is written
  // is moved down as it is, so it is compressed as the last level wants it, unless it is mostly tombstones.
  // Of a load in order that is all that is ever done with a row, instead of a merge that finds nothing to
  // merge.
  bool lies_on_nothing = false;
  // What the memtables counted; a flush that meets another number fails (F47). Nothing: unknown.
  std::optional<uint64_t> entries_expected;
  RetentionPolicy retention;
  // Sorted keys at which files are cut (FlushCuts): no file has keys on both sides of one.
  std::vector<std::string> cut_points;
  std::vector<std::string> marks;  // As TableOutputs'.
};

// Writes frozen memtables as tables of level 0: a merge with one input.
//
// Each stored value is verified before it is written down as valid (F51): a mismatch ends the job
// with kCorruption naming table and key. Tombstones are kept, as older levels may hold their keys.
// Any failure discards every output and leaves the input as it was; the caller retries with a new
// job, new ids and backoff (F22). Codes: kCorruption, kIoError, kNoSpace, kCancelled.
//
// Used once, by one thread at a time: an executor's, in slices, or a helper's in blocking mode.
class FlushJob {
 public:
  FlushJob(JobContext context, FlushSpec spec);
  ~FlushJob();

  // The edit adds to level 0, and adds nothing when every entry was dropped.
  Task<Result<JobResult>> Run();

  // Outputs that a failed job could not remove from the store; leftovers for F37.
  const std::vector<ObjectId>& left_behind() const;

 private:
  Task<Status> WriteAll(JobStatistics* statistics);

  JobContext context_;
  FlushSpec spec_;
  std::unique_ptr<WarmEntries> warm_;
  std::unique_ptr<TableOutputs> outputs_;
};

}  // namespace partita
