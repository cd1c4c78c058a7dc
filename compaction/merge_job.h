#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compaction/job.h"
#include "compaction/picker.h"
#include "compaction/retention.h"
#include "engine/base/result.h"
#include "engine/base/task.h"
#include "sstable/level_set.h"

namespace partita {

struct MergeSpec {
  CompactionPlan plan;
  // Of the references to the outputs, disjoint and by key, with every input in one of them: each output gets
  // one for each in which it has rows. Empty: one without bounds.
  std::vector<KeySpan> bounds;
  std::shared_ptr<const LevelSet> levels;  // That the plan was made for, or one with the same inputs.
  RetentionPolicy retention;
  // A tombstone goes only if its version is below this: the caller says up to where memtables and the
  // replayable log hold nothing older (M47). The job looks at deeper levels, and older files of level 0.
  Version droppable_before;
  std::vector<std::string> cut_points;  // Sorted; no output has keys on both sides of one.
  bool pass_through = true;             // Off: for measuring what it is worth.
};

// Runs a compaction plan: merges its inputs, within their virtual bounds, into new tables.
//
// - An entry goes only for a counted reason (retention.h); versions of a key stay in one file (M18).
// - A block that no other input overlaps and of which nothing can be dropped is verified and copied
//   compressed, under a new seal (DESIGN 7).
// - Outputs end near the target size where a partition ends, earlier where they would overlap too
//   much of the level below their own.
// - A read error ends the job with that error and no output; what could not be read is never left
//   out (M12, F46). `failed_input()` names the file, to be set aside.
// - Any failure discards the outputs, the inputs stay as they are (F22).
// - What the cache held of the inputs it holds of the outputs then (warm_entries.h).
// - Success means: outputs durable (F25), counted against the inputs, and read back (F47).
//
// Used once, by one thread at a time: an executor's, in slices, or a helper's in blocking mode.
class MergeJob {
 public:
  // REQUIRES: every input of the plan is in `levels`, and none is damaged.
  MergeJob(JobContext context, MergeSpec spec);
  ~MergeJob();

  Task<Result<JobResult>> Run();

  // After a failed Run: the input whose bytes could not be read, or were not what was written, if that was
  // it.
  std::optional<PlanInput> failed_input() const;
  // Outputs that a failed job could not remove from the store; leftovers for F37.
  const std::vector<ObjectId>& left_behind() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace partita
