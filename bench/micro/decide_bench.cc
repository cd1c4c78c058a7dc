#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "engine/base/user_key.h"
#include "engine/io/real_runtime.h"
#include "engine/store.h"

// The stages of a write that no disk takes part in: resolve, decide, publish, at level `memory`.
// What remains beside the memtable insert is the cost of the road itself.

namespace partita {
namespace {

struct World {
  World() {
    std::string pattern = std::filesystem::current_path().string() + "/partita-bench-XXXXXX";
    directory = mkdtemp(pattern.data());
    RealRuntimeOptions options;
    options.directory = directory;
    options.shards = 1;
    options.backend = IoBackend::kThreads;
    runtime = std::move(RealRuntime::Open(options)).value();
    StoreOptions store_options;
    store_options.create_if_missing = true;
    store_options.memory_bytes = 512u << 20;
    store = std::move(runtime->RunToEnd(Store::Open(*runtime, store_options))).value();
    Store::TableSpec spec;
    spec.account = "default";
    spec.name = "bench";
    spec.raw = true;
    table = runtime->RunToEnd(store->CreateTable(spec))->id;
  }
  ~World() {
    Status closed = runtime->RunToEnd(store->Close());
    if (!closed.ok()) std::abort();
    store.reset();
    runtime.reset();
    std::filesystem::remove_all(directory);
  }

  std::string directory;
  std::unique_ptr<RealRuntime> runtime;
  std::unique_ptr<Store> store;
  TableId table;
};

void WriteMany(benchmark::State& state, Precondition precondition) {
  World world;
  std::string value(static_cast<size_t>(state.range(0)), 'v');
  uint64_t n = 0;
  for (auto _ : state) {
    // 4,096 keys: inserts of new rows and new versions of old ones, the tree in the cache.
    std::string row = std::to_string(precondition == Precondition::kAbsent ? n : n % 4096);
    ++n;
    std::string key = EncodeUserKey(world.table, "partition", row);
    WriteOp op;
    op.user_key = key;
    op.content = value;
    op.precondition = precondition;
    WriteRequest request;
    request.table = world.table;
    request.ops = std::span<const WriteOp>(&op, 1);
    request.durability = DurabilityLevel::kMemory;
    WriteOutcome outcome = world.runtime->RunToEnd(world.store->Write(request));
    if (!outcome.status.ok()) state.SkipWithError(outcome.status.ToString().c_str());
  }
  state.SetItemsProcessed(state.iterations());
}

void BM_DecideUnconditional(benchmark::State& state) { WriteMany(state, Precondition::kNone); }
void BM_DecideInsert(benchmark::State& state) { WriteMany(state, Precondition::kAbsent); }

BENCHMARK(BM_DecideUnconditional)->Arg(100)->Arg(1024);
BENCHMARK(BM_DecideInsert)->Arg(100)->Arg(1024);

}  // namespace
}  // namespace partita
