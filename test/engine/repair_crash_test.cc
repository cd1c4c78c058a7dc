#include <cstdlib>
#include <optional>

#include "test/engine/repair_fixture.h"
#include "test/support/slowdown.h"

// covers: F53 F28. A repair that is killed.

namespace partita {
namespace {

// Crashes are tried at every so many operations; PARTITA_STRIDE=1: at each, which takes a minute.
constexpr uint64_t kRepairStride = kSlowdown == 1 ? 7 : 47;

uint64_t Stride() {
  const char* text = std::getenv("PARTITA_STRIDE");
  return text == nullptr ? kRepairStride : std::max<uint64_t>(std::strtoull(text, nullptr, 10), 1);
}

// F28: whatever a crash leaves is the old store, to be repaired again, or the new one.
class RepairCrashTest : public RepairTest, public testing::WithParamInterface<const char*> {
 protected:
  void Damage() {
    const std::string what = GetParam();
    if (what == "Log") disk_->FlipBit(Segments(0).back(), 20 * kPageSize + 100, 3);
    if (what == "Manifest") disk_->FlipBit("meta/shard-1-1", 60, 2);
    if (what == "Catalog") disk_->FlipBit("meta/catalog", 60, 2);
    if (what == "Tables") {
      const std::vector<std::string> tables = TablesBySize();
      disk_->FlipBit(tables[0], 1000, 2);
      disk_->FlipBit(tables[1], disk_->ReadFile(tables[1])->size() - 20, 2);
    }
  }

  // The repair, killed at an operation; false when it had ended by then.
  bool RepairAndCrash(SimDisk& disk, uint64_t operation) {
    SimRuntime runtime(NextLife(), disk);
    runtime.CrashAtOperation(operation,
                             operation % 2 == 0 ? SimCrashMoment::kBefore : SimCrashMoment::kAfter);
    (void)Run(runtime, /*apply=*/true);
    repaired_at_ = runtime.clock().WallTicks();
    return runtime.crashed();
  }

  RepairReport Apply(std::optional<SimFault> fault) {
    SimRuntime runtime(NextLife(), *disk_);
    if (fault) runtime.AddFault(*fault);
    auto report = Run(runtime, /*apply=*/true);
    EXPECT_TRUE(report.ok()) << report.status().ToString();
    repaired_at_ = runtime.clock().WallTicks();
    return report.ok() ? *std::move(report) : RepairReport();
  }

  // A copy of the disk, as a loss of power may leave it.
  void LosePower(const SimDisk& ended, uint64_t draw) {
    disk_ = ended.Clone();
    disk_->Reseed(draw);
    disk_->CrashPower();
  }
};

INSTANTIATE_TEST_SUITE_P(Damages, RepairCrashTest, testing::Values("Log", "Manifest", "Catalog", "Tables"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(RepairCrashTest, ACrashAtAnyOperationLeavesTheOldStoreOrTheNewOne) {
  Damage();
  const RepairReport listed = List();
  ASSERT_FALSE(listed.damages.empty());
  std::unique_ptr<SimDisk> damaged = disk_->Clone();
  uint64_t old_stores = 0, new_stores = 0;
  bool crashed = true;
  for (uint64_t operation = 1; crashed; operation += Stride()) {
    SCOPED_TRACE(operation);
    std::unique_ptr<SimDisk> disk = damaged->Clone();
    disk->Reseed(operation);
    crashed = RepairAndCrash(*disk, operation);
    operation % 4 < 2 ? disk->CrashPower() : disk->CrashProcess();
    std::swap(disk_, disk);
    const RepairReport again = List();
    ++(again.damages.empty() ? new_stores : old_stores);
    if (!again.damages.empty()) {
      EXPECT_EQ(LostRanges(again), LostRanges(listed));
      SimRuntime runtime(NextLife(), *disk_);
      auto applied = Run(runtime, /*apply=*/true);
      ASSERT_TRUE(applied.ok()) << applied.status().ToString();
      repaired_at_ = runtime.clock().WallTicks();
    }
    ExpectSoundStore(listed, /*names_kept=*/std::string(GetParam()) != "Catalog");
    if (HasFailure()) return;
  }
  EXPECT_GT(old_stores, 2u);
  EXPECT_GT(new_stores, 0u);
}

// All that it made and all that it kept, the names included.
TEST_P(RepairCrashTest, WhatEndedSurvivesALossOfPower) {
  Damage();
  const RepairReport listed = List();
  const auto before = AllFiles(*disk_);
  const RepairReport applied = Apply(std::nullopt);
  std::unique_ptr<SimDisk> ended = std::move(disk_);
  for (uint64_t draw = 1; draw <= 20; ++draw) {
    SCOPED_TRACE(draw);
    LosePower(*ended, draw);
    ASSERT_THAT(List().damages, testing::IsEmpty());
    ExpectOldBytesKept(before, applied);
    if (HasFailure()) return;
    EXPECT_NE(disk_->ReadFile(applied.kept_in + "/FOUND.txt")->find("partita repair"), std::string::npos);
    if (draw == 1) ExpectSoundStore(listed, /*names_kept=*/std::string(GetParam()) != "Catalog");
    if (HasFailure()) return;
  }
}

// Where a file can have no second name, the old bytes are copied.
TEST_P(RepairCrashTest, WhatWasCopiedSurvivesALossOfPowerToo) {
  Damage();
  const auto before = AllFiles(*disk_);
  SimFault no_links;
  no_links.operations = SimOps(SimOp::kLink);
  no_links.code = Code::kUnsupported;
  const RepairReport applied = Apply(no_links);
  std::unique_ptr<SimDisk> ended = std::move(disk_);
  for (uint64_t draw = 1; draw <= 3; ++draw) {
    SCOPED_TRACE(draw);
    LosePower(*ended, draw);
    ExpectOldBytesKept(before, applied);
    if (HasFailure()) return;
  }
}

// A second name that could not be flushed gives way to a copy.
TEST_P(RepairCrashTest, WhatWasLinkedAndNotFlushedIsCopied) {
  Damage();
  const auto before = AllFiles(*disk_);
  SimFault no_flush;
  no_flush.effect = SimEffect::kError;
  no_flush.operations = SimOps(SimOp::kFlush);
  no_flush.path_prefix = "damaged-";
  no_flush.count = 1;
  ExpectOldBytesKept(before, Apply(no_flush));
}

}  // namespace
}  // namespace partita
