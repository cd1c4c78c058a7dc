#include "compaction/merge_job.h"

#include <algorithm>
#include <span>

#include "compaction/compression_policy.h"
#include "compaction/older_entries.h"
#include "compaction/run_cursor.h"
#include "compaction/slice_pacer.h"
#include "compaction/table_outputs.h"
#include "compaction/warm_entries.h"
#include "engine/base/assert.h"
#include "engine/base/merging_iterator.h"

// 1. The input files of a level are laid side by side into as few runs as hold them: one for each deeper
//    level, about one for each sublevel of level 0. The runs are merged in internal order.
// 2. At the first entry of an input block, if the whole block comes before every other run's next
//    key and nothing of it can go, its compressed bytes are copied and the cursor skips it.
// 3. Otherwise the entry is judged (retention.h) and written or counted as dropped.
// 4. Between keys, the output is ended where the cutter says.
// 5. At the end: accounts, read-back, edit. On any failure: everything written is removed.
//
// The hard case is a tombstone in a block that could pass: copying it would keep it for another
// round, so a block with tombstones passes only when none of them could go yet.

namespace partita {
namespace {

// Smaller blocks are taken apart, so that what fraying there is heals (TableOutputs::AtBlockEnd).
bool LargeEnough(const PassThroughBlock& block, size_t block_size) {
  std::string_view first = block.decoded->value(0);
  std::string_view last = block.decoded->value(block.decoded->size() - 1);
  return static_cast<size_t>(last.data() + last.size() - first.data()) >= block_size / 3;
}

// Among itself, level 0 is compressed when anything of what is merged was (compression_policy.h): written out
// in full, that could take many times the room it had.
Codec CodecOfOutputs(const CompactionPlan& plan, const std::vector<const FileRef*>& inputs) {
  if (plan.output_level > 0) return CodecForLevel(plan.output_level);
  for (const FileRef* file : inputs) {
    if (file != nullptr && file->table != nullptr && !IsOfClass(file->table->properties(), Codec::kStored))
      return CodecForLevel(kLevels - 1);
  }
  return CodecForLevel(0);
}

// Of level 0: the outputs keep their place among those that are not merged.
Version OutputsCountAs(const CompactionPlan& plan, const std::vector<const FileRef*>& inputs) {
  Version newest;
  if (plan.output_level > 0) return newest;
  for (const FileRef* file : inputs) {
    if (file != nullptr) newest = std::max(newest, file->info->version_max);
  }
  return newest;
}

std::vector<BelowFile> FilesBelow(const LevelSet& levels, const CompactionPlan& plan) {
  std::vector<BelowFile> below;
  if (plan.output_level == 0 || plan.output_level + 1 >= kLevels) return below;
  for (const FileRef& file : levels.level(plan.output_level + 1)) {
    KeySpan span = SpanOf(file);
    if (span.Overlaps(plan.span)) below.push_back({std::move(span), file.info->file_size});
  }
  return below;
}

// The files as runs, each of files that follow each other without overlap.
std::vector<std::vector<FileRef>> SideBySide(std::vector<FileRef> files) {
  std::sort(files.begin(), files.end(),
            [](const FileRef& a, const FileRef& b) { return a.first() < b.first(); });
  std::vector<std::vector<FileRef>> runs;
  for (FileRef& file : files) {
    const auto ends_before = [&file](const std::vector<FileRef>& run) {
      return run.back().end() <= file.first();
    };
    auto run = std::find_if(runs.begin(), runs.end(), ends_before);
    if (run == runs.end()) run = runs.emplace(runs.end());
    run->push_back(std::move(file));
  }
  return runs;
}

}  // namespace

struct MergeJob::State {
  State(JobContext job_context, MergeSpec merge_spec)
      : context(std::move(job_context)),
        spec(std::move(merge_spec)),
        inputs(FindInputs(*spec.levels, spec.plan)),
        output_codec(CodecOfOutputs(spec.plan, inputs)),
        older(spec.levels, spec.plan, inputs),

        warm(context.cache, context.cache_executor),
        filter(spec.retention, context.is_dead_table,
               [this](const Entry& entry) { return Droppable(entry); }),
        outputs(context, output_codec,
                OutputCutter(spec.cut_points, FilesBelow(*spec.levels, spec.plan), context.target_file_bytes),
                &result.statistics, /*shrink_min=*/0, warm, BoundsOf(spec.bounds)) {
    context.counts_as = OutputsCountAs(spec.plan, inputs);
  }

  bool Droppable(const Entry& tombstone) const;
  void OpenRuns();
  Task<Status> MergeAll();
  bool MayPass(RunCursor& run);
  // An entry that is not what was written (F51) is its input's fault, as what cannot be read.
  Status Blaming(const RunCursor& run, Status status) {
    if (status.code() != Code::kCorruption) return status;
    bad_input = &run.file();
    return status.WithContext(bad_input->table->name());
  }
  Task<Status> PassBlock(RunCursor& run, const PassThroughBlock& block);
  void Move();
  void DescribeEdit();

  JobContext context;
  MergeSpec spec;
  std::vector<const FileRef*> inputs;  // Of the plan, in its order; spec.levels keeps them.
  Codec output_codec;
  JobResult result;
  OlderEntries older;
  WarmEntries warm;
  RetentionFilter filter;
  TableOutputs outputs;
  std::vector<RunCursor*> runs;   // Owned by `merged`.
  std::vector<bool> run_is_warm;  // Of each: the block that it stands in.
  std::unique_ptr<MergingIterator> merged;
  std::string key_out;  // The last key that the outputs were asked about.
  bool any_out = false;
  bool started = false;
  const FileRef* bad_input = nullptr;  // What it gave was wrong.
};

MergeJob::MergeJob(JobContext context, MergeSpec spec)
    : state_(std::make_unique<State>(std::move(context), std::move(spec))) {}
MergeJob::~MergeJob() = default;

const std::vector<ObjectId>& MergeJob::left_behind() const { return state_->outputs.left_behind(); }

std::optional<PlanInput> MergeJob::failed_input() const {
  const FileRef* failed = state_->bad_input;
  for (const RunCursor* run : state_->runs) {
    if (failed == nullptr) failed = run->failed_file();
  }
  if (failed == nullptr) return std::nullopt;
  for (const PlanInput& input : state_->spec.plan.inputs) {
    if (input.id == failed->info->id && input.reference_lower == failed->lower) return input;
  }
  return std::nullopt;
}

Task<Result<JobResult>> MergeJob::Run() {
  State& s = *state_;
  PARTITA_ASSERT(!s.started);
  s.started = true;
  if (s.spec.plan.trivial_move) {
    s.Move();
    co_return std::move(s.result);
  }
  s.OpenRuns();
  Status merged = co_await s.MergeAll();
  if (merged.ok()) merged = co_await s.outputs.Finish();
  if (!merged.ok()) {
    co_await s.outputs.Discard();  // F22: the inputs stay, the next try writes new files.
    co_await s.warm.TakeBack();
    co_return merged.WithContext("compaction to level " + std::to_string(s.spec.plan.output_level));
  }
  s.DescribeEdit();
  s.result.replaced = s.warm.blocks();
  co_return std::move(s.result);
}

void MergeJob::State::OpenRuns() {
  std::vector<std::unique_ptr<EntryIterator>> sources;
  for (uint32_t level = 0; level < kLevels; ++level) {
    std::vector<FileRef> files;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (spec.plan.inputs[i].level != level) continue;
      const FileRef* file = inputs[i];
      PARTITA_ASSERT(file != nullptr);
      PARTITA_ASSERT(file->table != nullptr);  // Damaged files are never inputs (F46).
      files.push_back(*file);
      result.statistics.bytes_in += BytesWithin(*file);
    }
    for (std::vector<FileRef>& run_files : SideBySide(std::move(files))) {
      auto run = std::make_unique<RunCursor>(std::move(run_files), context.read_ahead);
      runs.push_back(run.get());
      sources.push_back(std::move(run));
    }
  }
  run_is_warm.resize(runs.size());
  merged = std::make_unique<MergingIterator>(std::move(sources), Direction::kForward);
}

Task<Status> MergeJob::State::MergeAll() {
  SlicePacer slices(context);
  IterState state = merged->SeekToFirst();
  while (state != IterState::kEnd) {
    if (slices.Due()) PARTITA_CO_TRY(co_await slices.Turn());
    if (state == IterState::kNeedsIo) {
      PARTITA_CO_TRY(co_await merged->Fetch());
      state = merged->state();
      continue;
    }
    const size_t source = merged->leading_source();
    RunCursor& run = *runs[source];
    if (run.table().AtBlockStart()) {
      run_is_warm[source] = warm.Note(run.table());
      std::optional<PassThroughBlock> block;
      if (MayPass(run)) {
        if (outputs.AtBlockEnd()) {
          block = run.table().CurrentPassThrough();
        } else {
          outputs.EvenOut(run.table().block_content().size());
        }
      }
      if (block && LargeEnough(*block, context.block_size)) {
        PARTITA_CO_TRY(co_await PassBlock(run, *block));
        warm.OutBlock(run.table(), run_is_warm[source], *block->decoded);
        run.SkipBlock();
        state = merged->LeadingSourceMoved();
        continue;
      }
      ++result.statistics.blocks_merged;
    }
    const Entry& entry = merged->entry();
    ++result.statistics.entries_in;
    result.statistics.raw_bytes_in += entry.user_key.size() + entry.value.size();
    const Result<Fate> judged = filter.Judge(entry);
    PARTITA_CO_TRY(Blaming(run, judged.status()));
    const Fate fate = *judged;
    CountFate(fate, &result.statistics);
    if (fate == Fate::kKeep) {
      if (!any_out || entry.user_key != key_out) {
        if (outputs.MustTurn(entry.user_key)) PARTITA_CO_TRY(co_await outputs.Turn());
        key_out.assign(entry.user_key);
        any_out = true;
      }
      PARTITA_CO_TRY(Blaming(run, outputs.Add(entry)));
      warm.OutEntry(run.table(), run_is_warm[source], entry.user_key);
      if (outputs.NeedsDrain()) PARTITA_CO_TRY(co_await outputs.Drain());
    }
    state = merged->Next();
  }
  co_return Status();
}

bool MergeJob::State::Droppable(const Entry& tombstone) const {
  if (tombstone.version >= spec.droppable_before) return false;
  return !older.MayExist(tombstone.user_key, tombstone.version);
}

// Whether the block that `run` stands at the start of may go out as it is, where blocks end there.
bool MergeJob::State::MayPass(RunCursor& run) {
  if (!spec.pass_through) return false;
  if (!IsOfClass(run.file().table->properties(), output_codec)) return false;
  const BlockSummary& block = run.table().CurrentBlock();
  if (block.older_versions > 0) return false;
  if (block.tombstone_count > 0 && block.version_min < spec.droppable_before) return false;
  std::optional<std::string_view> next = merged->NextKeyOfOthers();
  if (next && *next <= block.last_key) return false;
  if (outputs.CutPointWithin(block.first_key, block.last_key)) return false;
  return filter.KeepsAll(block.first_key, block.last_key);
}

Task<Status> MergeJob::State::PassBlock(RunCursor& run, const PassThroughBlock& block) {
  // Stays as it is across the waits: the run does not move before SkipBlock.
  const BlockSummary& summary = run.table().CurrentBlock();
  if (outputs.MustTurn(summary.first_key)) PARTITA_CO_TRY(co_await outputs.Turn());
  key_out.assign(summary.last_key);
  any_out = true;
  PARTITA_CO_TRY(Blaming(run, outputs.AddBlock(block, summary.entry_count)));
  filter.Passed(key_out);
  result.statistics.entries_in += summary.entry_count;
  result.statistics.blocks_passed += 1;
  if (outputs.NeedsDrain()) PARTITA_CO_TRY(co_await outputs.Drain());
  co_return Status();
}

void MergeJob::State::DescribeEdit() {
  for (const PlanInput& input : spec.plan.inputs) {
    result.edit.removed.push_back({input.level, input.id, input.reference_lower});
  }
  const KeySpan everywhere;
  for (const std::shared_ptr<TableReader>& table : outputs.tables()) {
    for (const KeySpan& within : spec.bounds.empty() ? std::span(&everywhere, 1) : std::span(spec.bounds)) {
      FileRef file{.table = table, .info = table->info(), .lower = within.lower, .upper = within.upper};
      if (!file.OverlapsBounds(within.lower, within.upper)) continue;
      if (table->BytesWithin(within.lower, within.upper) == 0) continue;  // It spans them without a row.
      result.edit.added.push_back({spec.plan.output_level, std::move(file)});
    }
  }
}

// The same references, one level deeper: no byte is read or written.
void MergeJob::State::Move() {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const PlanInput& input = spec.plan.inputs[i];
    const FileRef* file = inputs[i];
    PARTITA_ASSERT(file != nullptr);
    result.edit.removed.push_back({input.level, input.id, input.reference_lower});
    result.edit.added.push_back({spec.plan.output_level, *file});
    ++result.statistics.files_moved;
  }
}

}  // namespace partita
