#include "compaction/plan_batch.h"

#include <algorithm>
#include <map>

#include "compaction/older_entries.h"
#include "engine/base/assert.h"

namespace partita {
namespace {

uint64_t LikelyBytes(const FileRef& slice) {
  const uint64_t most = BytesWithin(slice);
  const bool is_known = slice.table != nullptr && slice.table->IsMarked(slice.lower, slice.upper);
  return is_known ? most : std::min(most, GuessWithin(slice, 0));
}

// What a batch reads of each file. Of neighbours' slices the file tells more exactly what they are together
// than of each: alone, each counts all of a block that it has only a part of (BytesWithin).
class BatchBytes {
 public:
  // At most.
  uint64_t bytes() const { return bytes_; }

  // Whether it is added: not when all would come to more than `likely_max`, as if keys were spread evenly
  // where nothing is known, or could to more than `bytes_max`.
  bool Add(const RangePlan& part, uint64_t likely_max, uint64_t bytes_max) {
    if (part.plan.trivial_move) return true;
    std::map<ObjectId, Read> with;
    uint64_t bytes = bytes_, likely = likely_;
    for (const FileRef* input : FindInputs(*part.levels, part.plan)) {
      PARTITA_ASSERT(input != nullptr);
      const auto known = files_.find(input->info->id);
      const auto read =
          with.try_emplace(input->info->id, known == files_.end() ? Read() : known->second).first;
      read->second.Add(*input);
      likely += LikelyBytes(*input);
    }
    for (const auto& [id, read] : with) {
      const auto known = files_.find(id);
      bytes += read.bytes() - (known == files_.end() ? 0 : known->second.bytes());
    }
    if (likely > likely_max || bytes > bytes_max) return false;
    bytes_ = bytes;
    likely_ = likely;
    for (auto& [id, read] : with) files_.insert_or_assign(id, std::move(read));
    return true;
  }

 private:
  struct Read {
    FileRef all;          // From the first slice's lower bound to the last one's upper.
    uint64_t slices = 0;  // Sum of what each alone is taken for.

    uint64_t bytes() const { return slices == 0 ? 0 : std::min(slices, BytesWithin(all)); }
    void Add(const FileRef& slice) {
      if (slices == 0) {
        all = slice;
      } else {
        all.lower = std::min(all.lower, slice.lower);
        if (!all.upper.empty() && (slice.upper.empty() || all.upper < slice.upper)) all.upper = slice.upper;
      }
      slices += BytesWithin(slice);
    }
  };
  std::map<ObjectId, Read> files_;
  uint64_t bytes_ = 0, likely_ = 0;
};

// Among itself, level 0 keeps its order by the newest file merged, which must be one file then.
bool MayJoin(const CompactionPlan& a, const CompactionPlan& b) {
  return a.reason == b.reason && a.input_level == b.input_level && a.output_level == b.output_level &&
         a.trivial_move == b.trivial_move &&
         (a.output_level > 0 || a.inputs.front().id == b.inputs.front().id);
}

}  // namespace

std::vector<RangePlan> BatchAround(const std::vector<RangePlan>& due, size_t best, uint64_t likely_max,
                                   uint64_t bytes_max) {
  std::vector<size_t> taken = {best};
  BatchBytes bytes;
  bytes.Add(due[best], UINT64_MAX, UINT64_MAX);
  // False: there is no room for it, nor for what lies behind it.
  const auto take = [&](size_t at) {
    if (due[best].alone || due[at].alone || !MayJoin(due[best].plan, due[at].plan)) return true;
    if (taken.size() == kBatchRangesMax || !bytes.Add(due[at], likely_max, bytes_max)) return false;
    taken.push_back(at);
    return true;
  };
  for (size_t at = best + 1; at < due.size() && take(at); ++at) continue;
  for (size_t at = best; at > 0 && take(at - 1); --at) continue;
  std::sort(taken.begin(), taken.end());
  std::vector<RangePlan> batch;
  for (size_t at : taken) batch.push_back(due[at]);
  return batch;
}

JoinedPlan JoinPlans(const std::vector<RangePlan>& batch) {
  PARTITA_ASSERT(!batch.empty());
  JoinedPlan joined{batch.front().plan, batch.front().levels, {batch.front().range}};
  if (batch.size() == 1) return joined;
  // A file of several ranges ends in none of them, as far as it can tell. So each refers to it for what its
  // plan spans, beside which the level has other files.
  joined.bounds.clear();
  CompactionPlan& plan = joined.plan;
  plan.inputs.clear();
  plan.overlap_bytes = 0;
  LevelEdit all;
  BatchBytes bytes;
  for (const RangePlan& part : batch) {
    bytes.Add(part, UINT64_MAX, UINT64_MAX);
    joined.bounds.push_back(part.plan.span);
    plan.inputs.insert(plan.inputs.end(), part.plan.inputs.begin(), part.plan.inputs.end());
    plan.span.Extend(part.plan.span);
    plan.overlap_bytes += part.plan.overlap_bytes;
    for (uint32_t level = 0; level < kLevels; ++level) {
      for (const FileRef& file : part.levels->level(level)) all.added.push_back({level, file});
    }
  }
  plan.input_bytes = bytes.bytes();
  Result<std::shared_ptr<const LevelSet>> levels = LevelSet().Apply(all);
  PARTITA_ASSERT(levels.ok());  // Disjoint ranges overlap nowhere.
  joined.levels = std::move(levels).value();
  return joined;
}

}  // namespace partita
