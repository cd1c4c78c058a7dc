#include <benchmark/benchmark.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "compaction/flush_job.h"
#include "compaction/level_shape.h"
#include "compaction/merge_job.h"
#include "engine/base/executor.h"
#include "engine/base/merging_iterator.h"
#include "engine/base/stored_value.h"
#include "engine/base/user_key.h"
#include "test/support/memory_object_store.h"

// What merging costs, on objects in memory: 1 KiB entities, about half compressible.

namespace partita {
namespace {

std::string HalfCompressible(std::mt19937_64& random, size_t size) {
  std::string value;
  while (value.size() < size) {
    uint64_t word = random();
    value.append(reinterpret_cast<const char*>(&word), 8);
    value.append("property");
  }
  value.resize(size);
  return value;
}

struct Row {
  std::string key;
  Version version;
  std::string value;
};

std::vector<Row> MakeRows(uint64_t count, uint64_t step, Version version, size_t value_size,
                          std::string_view partition = "device-10") {
  std::mt19937_64 random(count + version.value);
  std::vector<Row> rows;
  for (uint64_t i = 0; i < count; ++i) {
    char row[24];
    std::snprintf(row, sizeof row, "%012llu", static_cast<unsigned long long>(i * step));
    std::string key = EncodeUserKey(TableId(1), partition, row);
    std::string value = MakeStoredValue(key, EntryKind::kPut, HalfCompressible(random, value_size));
    rows.push_back({std::move(key), version, std::move(value)});
  }
  return rows;
}

class RowSource : public EntryIterator {
 public:
  explicit RowSource(const std::vector<Row>* rows) : rows_(rows) {}
  IterState SeekToFirst() override { return MoveTo(0); }
  IterState Seek(std::string_view) override { return MoveTo(0); }
  IterState Next() override { return MoveTo(at_ + 1); }
  IterState state() const override { return at_ < rows_->size() ? IterState::kEntry : IterState::kEnd; }
  Task<Status> Fetch() override { co_return Status(); }
  const Entry& entry() const override { return entry_; }

 private:
  IterState MoveTo(size_t at) {
    at_ = at;
    if (at_ < rows_->size()) {
      const Row& row = (*rows_)[at_];
      entry_ = Entry{row.key, row.version, EntryKind::kPut, row.value};
    }
    return state();
  }
  const std::vector<Row>* rows_;
  size_t at_ = 0;
  Entry entry_;
};

struct World {
  MemoryObjectStore store;
  BlockCache cache{1 << 20};
  std::shared_ptr<const LevelSet> levels = std::make_shared<const LevelSet>();
  uint64_t last_id = 0;

  JobContext Context() {
    JobContext context{.store = store, .cache = cache, .store_id = StoreId(1)};
    context.next_object_id = [this] { return ObjectId(++last_id); };
    return context;
  }
  JobStatistics Flush(const std::vector<Row>& rows, bool install) {
    FlushSpec spec;
    spec.entries = std::make_unique<RowSource>(&rows);
    spec.retention.visible = kVersionMax;
    FlushJob job(Context(), std::move(spec));
    return Done(RunBlocking(job.Run()), install);
  }
  JobStatistics Merge(uint32_t input, uint32_t output, bool pass_through, bool install) {
    MergeSpec spec;
    spec.plan.input_level = input;
    spec.plan.output_level = output;
    for (uint32_t level : {input, output}) {
      for (const FileRef& file : levels->level(level)) {
        spec.plan.inputs.push_back({level, file.info->id, file.lower});
        if (spec.plan.inputs.size() == 1) spec.plan.span = SpanOf(file);
        spec.plan.span.Extend(SpanOf(file));
      }
    }
    spec.levels = levels;
    spec.retention.visible = kVersionMax;
    spec.pass_through = pass_through;
    MergeJob job(Context(), std::move(spec));
    return Done(RunBlocking(job.Run()), install);
  }

 private:
  JobStatistics Done(Result<JobResult> result, bool install) {
    if (!result.ok()) std::abort();
    if (install) {
      levels = levels->Apply(result->edit).value();
    } else {
      for (const auto& added : result->edit.added) (void)RunBlocking(store.Remove(added.file.info->id));
    }
    return result->statistics;
  }
};

// Entries through a merging iterator of N sources: lead changes at every entry (interleaved). Of a
// PartitionKey of so many bytes.
void BM_MergingIterator(benchmark::State& state) {
  const size_t sources = static_cast<size_t>(state.range(0));
  std::vector<std::vector<Row>> rows(sources);
  const std::string partition(static_cast<size_t>(state.range(1)), 'p');
  std::vector<Row> all = MakeRows(40'000, 1, Version(1), 16, partition);
  std::mt19937_64 random(1);
  for (Row& row : all) rows[random() % sources].push_back(std::move(row));
  uint64_t entries = 0;
  for (auto _ : state) {
    std::vector<std::unique_ptr<EntryIterator>> cursors;
    for (const auto& source : rows) cursors.push_back(std::make_unique<RowSource>(&source));
    auto merged = MakeMergingIterator(std::move(cursors), Direction::kForward);
    for (IterState at = merged->SeekToFirst(); at == IterState::kEntry; at = merged->Next()) {
      benchmark::DoNotOptimize(merged->entry().version);
      ++entries;
    }
  }
  state.SetItemsProcessed(static_cast<int64_t>(entries));
}
BENCHMARK(BM_MergingIterator)->ArgsProduct({{1, 2, 8, 48}, {1, 24}});

// A memtable of 1 KiB entities to level 0, read back included.
void BM_Flush(benchmark::State& state) {
  World world;
  std::vector<Row> rows = MakeRows(16 << 10, 1, Version(1), 1024);
  uint64_t bytes = 0;
  for (auto _ : state) bytes += world.Flush(rows, false).raw_bytes_in;
  state.SetBytesProcessed(static_cast<int64_t>(bytes));
}
BENCHMARK(BM_Flush)->Unit(benchmark::kMillisecond);

// Level 0 into the last level: 32 MiB below; every `step`-th key of it was overwritten, in the first
// `part` percent of the keys. Bytes are those of the input files.
void BM_MergeDown(benchmark::State& state) {
  const bool pass_through = state.range(0) != 0;
  const uint64_t step = static_cast<uint64_t>(state.range(1));
  const uint64_t part = static_cast<uint64_t>(state.range(2));
  constexpr uint64_t kRows = 32 << 10;
  World world;
  world.Flush(MakeRows(kRows, 1, Version(1), 1024), true);
  world.Merge(0, 6, false, true);
  world.Flush(MakeRows(kRows * part / 100 / step, step, Version(2), 1024), true);
  uint64_t entries = 0;
  JobStatistics last;
  for (auto _ : state) {
    last = world.Merge(0, 6, pass_through, false);
    entries += last.entries_in;
  }
  state.SetBytesProcessed(static_cast<int64_t>(entries * 1050));
  state.counters["passed"] = static_cast<double>(last.blocks_passed);
  state.counters["merged"] = static_cast<double>(last.blocks_merged);
}
BENCHMARK(BM_MergeDown)
    ->ArgNames({"pass", "step", "part"})
    ->Args({0, 10, 100})
    ->Args({1, 10, 100})
    ->Args({0, 50, 100})
    ->Args({1, 50, 100})
    ->Args({0, 1, 10})
    ->Args({1, 1, 10})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace partita
