#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/user_key.h"
#include "engine/io/real_runtime.h"
#include "engine/store.h"
#include "test/support/scratch_directory.h"
#include "test/support/small_store.h"

namespace partita {
namespace {

// With one idle thread, on which a compaction that a flush asked for may wait behind CompactAll's helper.
TEST(CompactionThreadsTest, CompactsAllShardsBesideAWriterWithOneIdleThread) {
  ScratchDirectory directory;
  RealRuntimeOptions real;
  real.directory = directory.path();
  real.shards = 2;
  real.idle_helpers = 1;
  auto runtime = RealRuntime::Open(real);
  ASSERT_TRUE(runtime.ok()) << runtime.status().ToString();
  auto opened = (*runtime)->RunToEnd(Store::Open(**runtime, SmallStoreOptions(2)));
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  Store& store = **opened;
  std::vector<TableId> tables;
  for (std::string name : {"one", "two", "three"}) {
    Store::TableSpec spec;
    spec.account = "default";
    spec.name = std::move(name);
    spec.raw = true;
    auto made = (*runtime)->RunToEnd(store.CreateTable(std::move(spec)));
    ASSERT_TRUE(made.ok());
    tables.push_back(made->id);
  }
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    const std::string value(1000, 'v');
    for (int i = 0; !stop.load(); ++i) {
      const std::string key =
          EncodeUserKey(tables[static_cast<size_t>(i) % tables.size()], "p", std::to_string(i % 3000));
      WriteOp op;
      op.user_key = key;
      op.content = value;
      WriteRequest request;
      request.table = tables[static_cast<size_t>(i) % tables.size()];
      request.ops = std::span<const WriteOp>(&op, 1);
      request.durability = DurabilityLevel::kMemory;
      (void)(*runtime)->RunToEnd(store.Write(request));
      // CompactAll ends when nothing is due, so not beside one who writes as fast as that.
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  const auto fewest = [&] {
    uint64_t compactions = UINT64_MAX;
    for (const ShardStatistics& shard : store.Statistics())
      compactions = std::min(compactions, shard.compactions);
    return compactions;
  };
  const auto compact = [&] {
    while (fewest() < 5 && !HasFailure()) EXPECT_TRUE((*runtime)->RunToEnd(store.CompactAll()).ok());
  };
  std::thread other(compact);
  compact();
  other.join();
  stop.store(true);
  writer.join();
  EXPECT_TRUE((*runtime)->RunToEnd(store.Close()).ok());
  opened->reset();
  EXPECT_TRUE((*runtime)->Close().ok());
}

}  // namespace
}  // namespace partita
