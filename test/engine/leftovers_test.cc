#include <gtest/gtest.h>

#include <string>

#include "engine/io/local_object_store.h"
#include "engine/io/sim_runtime.h"
#include "engine/store.h"
#include "test/engine/stalled_fixture.h"

namespace partita {
namespace {

// What a flush left that was killed.
TEST(LeftoversTest, AFileOfNoUseThatCannotBeRemovedDoesNotKeepTheStoreFromOpening) {
  SimDisk disk(11);
  const std::string left = ObjectPath(ObjectId(uint64_t{1} << 32 | 999));
  for (int life = 1; life <= 4; ++life) {
    SimRuntime runtime({.seed = 11, .shards = 1}, disk);
    if (life == 2) runtime.AddFault({.operations = SimOps(SimOp::kRemove), .path_prefix = left});
    Result<std::unique_ptr<Store>> opened = runtime.RunToEnd(Store::Open(runtime, OneShardStore()));
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    Store& store = **opened;
    const StoreOpenReport& report = store.open_report();
    EXPECT_EQ(report.leftovers_kept.find(left) != std::string::npos, life == 2) << report.leftovers_kept;
    EXPECT_EQ(report.leftover_objects_removed, life == 3 ? 1u : 0u) << life;
    EXPECT_EQ(disk.FileExists(left), life == 2) << life;
    if (life == 1) {
      EXPECT_TRUE(runtime.RunToEnd(MakeRawTable(&store, "rows")).ok());
      disk.WriteFile(left, "cut short");
    }
    EXPECT_TRUE(runtime.RunToEnd(store.Close()).ok());
  }
}

// Its tables are of an incarnation far above that of the store it was to mend.
TEST(LeftoversTest, WhatAnInterruptedRepairWroteIsRemoved) {
  SimDisk disk(12);
  const std::string left = ObjectPath(ObjectId(uint64_t{70'000} << 32 | 1));
  for (int life = 1; life <= 2; ++life) {
    SimRuntime runtime({.seed = 12, .shards = 1}, disk);
    Result<std::unique_ptr<Store>> opened = runtime.RunToEnd(Store::Open(runtime, OneShardStore()));
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    EXPECT_EQ((*opened)->open_report().leftover_objects_removed, life == 2 ? 1u : 0u);
    if (life == 1) disk.WriteFile(left, "cut short");
    EXPECT_TRUE(runtime.RunToEnd((*opened)->Close()).ok());
  }
  EXPECT_FALSE(disk.FileExists(left));
}

}  // namespace
}  // namespace partita
