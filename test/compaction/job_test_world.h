#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "compaction/flush_job.h"
#include "compaction/level_shape.h"
#include "compaction/merge_job.h"
#include "engine/base/executor.h"
#include "engine/base/overlapped.h"
#include "engine/base/stored_value.h"
#include "engine/base/task_group.h"
#include "engine/base/user_key.h"
#include "sstable/read_ahead_pool.h"
#include "test/support/late_executor.h"
#include "test/support/memory_object_store.h"

namespace partita {

// One entry in internal order.
struct ModelEntry {
  std::string key;
  Version version;
  EntryKind kind = EntryKind::kPut;
  std::string value;  // Stored value.

  friend bool operator==(const ModelEntry&, const ModelEntry&) = default;
};
inline void PrintTo(const ModelEntry& entry, std::ostream* out) {
  *out << entry.key.substr(4) << "@" << entry.version.value
       << (entry.kind == EntryKind::kPut ? "" : " deleted");
}

inline ModelEntry MakeEntry(std::string key, uint64_t version, EntryKind kind, std::string_view content) {
  std::string value = MakeStoredValue(key, kind, kind == EntryKind::kPut ? content : std::string_view());
  return {std::move(key), Version(version), kind, std::move(value)};
}

// A memtable's cursor: everything in memory.
class VectorSource : public EntryIterator {
 public:
  explicit VectorSource(std::vector<ModelEntry> entries) : entries_(std::move(entries)) {
    std::sort(entries_.begin(), entries_.end(), [](const ModelEntry& a, const ModelEntry& b) {
      return EntryBefore(a.key, a.version, b.key, b.version);
    });
  }
  IterState SeekToFirst() override { return MoveTo(0); }
  IterState Seek(std::string_view key) override {
    size_t at = 0;
    while (at < entries_.size() && entries_[at].key < key) ++at;
    return MoveTo(at);
  }
  IterState Next() override { return MoveTo(at_ + 1); }
  IterState state() const override { return state_; }
  Task<Status> Fetch() override { co_return Status(); }
  const Entry& entry() const override { return entry_; }

 private:
  IterState MoveTo(size_t at) {
    at_ = at;
    if (at >= entries_.size()) return state_ = IterState::kEnd;
    const ModelEntry& e = entries_[at];
    entry_ = Entry{e.key, e.version, e.kind, e.value};
    return state_ = IterState::kEntry;
  }
  std::vector<ModelEntry> entries_;
  size_t at_ = 0;
  IterState state_ = IterState::kEnd;
  Entry entry_;
};

// A level set over a store in memory, on which real flushes and merges run, blocking.
class JobWorld {
 public:
  JobWorld() : cache(1 << 20), levels(std::make_shared<const LevelSet>()) {}
  ~JobWorld() {
    helpers.RunAll();
    RunBlocking(reads.Join());
    RunBlocking(beside.Join());
  }

  JobContext Context() {
    JobContext context{.store = store, .cache = cache, .store_id = StoreId(77)};
    context.next_object_id = [this] { return ObjectId(++last_id); };
    context.is_dead_table = [this](TableId table) { return table == dead_table; };
    context.target_file_bytes = target_file_bytes;
    context.entry_bytes_min = entry_bytes_min;
    context.block_size = block_size;
    context.cancel = &cancel;
    context.read_ahead = read_ahead;
    context.start_beside = [this](std::shared_ptr<Overlapped> operation) {
      Overlapped::Start(beside, beside_executor == nullptr ? helpers : *beside_executor,
                        std::move(operation));
    };
    return context;
  }

  bool fills_cache = false, lies_on_nothing = false;  // Of flushes.
  // `is_wanted` is asked of keys.
  Result<JobResult> Flush(std::vector<ModelEntry> entries, RetentionPolicy retention,
                          std::vector<std::string> cuts = {},
                          std::function<bool(std::string_view)> is_wanted = {}) {
    FlushSpec spec;
    spec.entries_expected = entries.size();
    auto source = std::make_unique<VectorSource>(std::move(entries));
    if (is_wanted) {
      spec.is_wanted = [at = source.get(), is_wanted = std::move(is_wanted)] {
        return is_wanted(at->entry().user_key);
      };
    }
    spec.entries = std::move(source);
    spec.fills_cache = fills_cache;
    spec.lies_on_nothing = lies_on_nothing;
    spec.retention = std::move(retention);
    spec.cut_points = std::move(cuts);
    FlushJob job(Context(), std::move(spec));
    Result<JobResult> result = RunBlocking(job.Run());
    helpers.RunAll();
    if (result.ok()) Install(result->edit);
    return result;
  }

  MergeSpec SpecFor(CompactionPlan plan, RetentionPolicy retention) const {
    MergeSpec spec;
    spec.plan = std::move(plan);
    spec.levels = levels;
    spec.retention = std::move(retention);
    spec.droppable_before = droppable_before;
    return spec;
  }

  Result<JobResult> Merge(MergeSpec spec) {
    MergeJob job(Context(), std::move(spec));
    Result<JobResult> result = RunBlocking(job.Run());
    helpers.RunAll();
    failed_input = job.failed_input();
    if (result.ok()) Install(result->edit);
    return result;
  }

  // A plan of whole levels: every file of `input` and `output` level.
  CompactionPlan PlanOfLevels(uint32_t input, uint32_t output) const {
    CompactionPlan plan;
    plan.input_level = input;
    plan.output_level = output;
    bool first = true;
    for (uint32_t level : {input, output}) {
      if (level == output && input == output && !first) break;
      for (const FileRef& file : levels->level(level)) {
        plan.inputs.push_back({level, file.info->id, file.lower});
        KeySpan span = SpanOf(file);
        first ? plan.span = span : (plan.span.Extend(span), plan.span);
        first = false;
      }
    }
    return plan;
  }

  void Install(const LevelEdit& edit) {
    Result<std::shared_ptr<const LevelSet>> next = levels->Apply(edit);
    ASSERT_TRUE(next.ok()) << next.status().ToString();
    levels = *next;
    Status sane = levels->CheckInvariants();
    ASSERT_TRUE(sane.ok()) << sane.ToString();
    for (const auto& removed : edit.removed) {
      bool still_used = false;
      for (size_t level = 0; level < kLevels; ++level) {
        for (const FileRef& file : levels->level(level)) still_used |= file.info->id == removed.id;
      }
      if (!still_used) ASSERT_TRUE(RunBlocking(store.Remove(removed.id)).ok());
    }
  }

  // Every entry within the virtual bounds of a level's files, or of all levels, in internal order.
  std::vector<ModelEntry> EntriesOf(std::optional<uint32_t> only_level = {}) {
    std::vector<ModelEntry> entries;
    for (uint32_t level = 0; level < kLevels; ++level) {
      if (only_level && *only_level != level) continue;
      for (const FileRef& file : levels->level(level)) Append(file, &entries);
    }
    std::sort(entries.begin(), entries.end(), [](const ModelEntry& a, const ModelEntry& b) {
      return EntryBefore(a.key, a.version, b.key, b.version);
    });
    return entries;
  }

  size_t ObjectCount() { return RunBlocking(store.List())->size(); }
  size_t FileCount() const { return levels->file_count(); }

  MemoryObjectStore store;
  LateExecutor helpers;  // They come when a job has ended: it performs its reads itself, and all else.
  TaskGroup beside;
  Executor* beside_executor = nullptr;  // Of what goes on beside jobs; null: `helpers`.
  ReadAheadPool reads{helpers, 8 << 20};
  ReadAheadPool* read_ahead = &reads;
  BlockCache cache;
  std::shared_ptr<const LevelSet> levels;
  uint64_t last_id = 0;
  TableId dead_table{999};
  uint64_t target_file_bytes = 16 * 1024;
  uint64_t entry_bytes_min = 0;
  size_t block_size = 1024;
  std::atomic<bool> cancel{false};
  Version droppable_before;
  std::optional<PlanInput> failed_input;

 private:
  static Task<Status> Collect(EntryIterator* it, std::vector<ModelEntry>* out) {
    IterState state = it->SeekToFirst();
    while (state != IterState::kEnd) {
      if (state == IterState::kNeedsIo) {
        PARTITA_CO_TRY(co_await it->Fetch());
        state = it->state();
        continue;
      }
      const Entry& e = it->entry();
      out->push_back({std::string(e.user_key), e.version, e.kind, std::string(e.value)});
      state = it->Next();
    }
    co_return Status();
  }
  void Append(const FileRef& file, std::vector<ModelEntry>* entries) {
    auto it = NewFileIterator(file, Direction::kForward, IterOptions{});
    Status read = RunBlocking(Collect(it.get(), entries));
    EXPECT_TRUE(read.ok()) << read.ToString();
  }
};

// What a reader at `at` sees: the newest put of each key at or below it.
inline std::map<std::string, std::string> VisibleAt(const std::vector<ModelEntry>& sorted, Version at) {
  std::map<std::string, std::string> seen;
  const std::string* decided = nullptr;
  for (const ModelEntry& entry : sorted) {
    if (entry.version > at || (decided != nullptr && *decided == entry.key)) continue;
    decided = &entry.key;
    if (entry.kind == EntryKind::kPut) seen[entry.key] = entry.value;
  }
  return seen;
}

}  // namespace partita
