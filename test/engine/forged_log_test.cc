#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include <array>

#include "engine/base/coding.h"
#include "engine/base/user_key.h"
#include "engine/io/sim_runtime.h"
#include "engine/repair.h"
#include "engine/store.h"
#include "test/support/small_store.h"
#include "wal/frame_format.h"
#include "wal/segment_format.h"

// covers: F77: records under a good seal that no engine has written.

namespace partita {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class ForgedLogTest : public testing::Test {
 protected:
  // A batch of two rows, in the log alone: the process dies behind it.
  void WriteBatchAndDie(std::string_view first_key, std::string_view second_key) {
    SimRuntime runtime({.seed = 1, .shards = 1}, disk_);
    auto opened = runtime.RunToEnd(Store::Open(runtime, SmallStoreOptions(1)));
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    Store::TableSpec spec;
    spec.account = "default";
    spec.name = "rows";
    spec.raw = true;
    const Result<TableDescriptor> table = runtime.RunToEnd((*opened)->CreateTable(std::move(spec)));
    ASSERT_TRUE(table.ok());
    const std::array<std::string, 2> keys = {EncodeUserKey(table->id, "p", first_key),
                                             EncodeUserKey(table->id, "p", second_key)};
    std::array<WriteOp, 2> ops;
    for (size_t i = 0; i < keys.size(); ++i) {
      ops[i].user_key = keys[i];
      ops[i].content = "content";
    }
    const WriteRequest request{.table = table->id, .ops = ops, .durability = DurabilityLevel::kPower};
    const WriteOutcome written = runtime.RunToEnd((*opened)->Write(request));
    ASSERT_TRUE(written.status.ok()) << written.status.ToString();
    table_ = table->id;
    version_ = written.version;
    runtime.CrashNow();
    (void)runtime.RunToEnd((*opened)->Close());
  }

  // Where `from` stands in a frame of the log there is `to` now; the frame says that its versions go up to
  // the one given, if that is higher, and its seal is right.
  void Forge(std::string_view from, std::string_view to, Version version_max = Version()) {
    size_t forged = 0;
    for (const std::string& path : disk_.ListFiles("log-1-0/")) {
      if (!path.ends_with(".log")) continue;
      std::string content = *disk_.ReadFile(path);
      const auto segment =
          DecodeSegmentHeader(std::string_view(content).substr(0, kSegmentHeaderSize)).value();
      ParsedFrame frame;
      for (uint64_t at = kSegmentHeaderSize; at < content.size(); at += frame.size) {
        std::span<uint8_t> bytes(reinterpret_cast<uint8_t*>(content.data()) + at, content.size() - at);
        if (ParseFrame(segment.owner, at, std::string_view(content).substr(at), &frame) != FrameCheck::kValid)
          break;
        const size_t found = frame.payload.find(from);
        if (found == frame.payload.npos) continue;
        content.replace(at + kFrameHeaderSize + found, to.size(), to);
        frame.header.version_max = std::max(frame.header.version_max, version_max);
        SealFrame(segment.owner, at, frame.header, bytes.subspan(0, frame.size));
        ++forged;
      }
      disk_.WriteFile(path, content);
    }
    EXPECT_EQ(forged, 1u);
  }

  Status Open() {
    SimRuntime runtime({.seed = 2, .shards = 1}, disk_);
    auto opened = runtime.RunToEnd(Store::Open(runtime, SmallStoreOptions(1)));
    return opened.ok() ? runtime.RunToEnd((*opened)->Close()) : opened.status();
  }

  Result<RepairReport> Repair() {
    SimRuntime runtime({.seed = 3, .shards = 1}, disk_);
    RepairWorld world{.files = runtime.files(), .clock = runtime.clock(), .random = 7, .account = "default"};
    RepairOptions options;
    options.apply = true;
    return runtime.RunToEnd(RepairStore(std::move(world), options));
  }

  // As the batch's record begins.
  std::string BatchOf(Version version) const {
    std::string bytes = {1, 1, 0, 0};
    AppendLe32(&bytes, table_.value);
    AppendLe64(&bytes, version.value);
    return bytes;
  }

  SimDisk disk_{5};
  TableId table_;
  Version version_;
};

TEST_F(ForgedLogTest, ABatchThatNamesAKeyTwiceRefusesTheOpen) {
  WriteBatchAndDie("first_row", "other_row");
  if (HasFatalFailure()) return;
  Forge("other_row", "first_row");
  const Status opened = Open();
  EXPECT_EQ(opened.code(), Code::kCorruption) << opened.ToString();
  EXPECT_THAT(opened.message(), AllOf(HasSubstr("log record"), HasSubstr("version of a key")));
}

// A bit that turned before the seal was made. The row would be above all that is visible, and so not be
// there.
TEST_F(ForgedLogTest, ABatchOfAnotherVersionThanItsRecordRefusesTheOpenAndIsLeftOutByARepair) {
  WriteBatchAndDie("first_row", "other_row");
  if (HasFatalFailure()) return;
  Forge(BatchOf(version_), BatchOf(Version(version_.value ^ (1ull << 50))));
  const Status opened = Open();
  EXPECT_EQ(opened.code(), Code::kCorruption) << opened.ToString();
  EXPECT_THAT(opened.message(), AllOf(HasSubstr("log record"), HasSubstr("but its batch of version")));

  const Result<RepairReport> repaired = Repair();
  ASSERT_TRUE(repaired.ok()) << repaired.status().ToString();
  ASSERT_EQ(repaired->damages.size(), 1u);
  EXPECT_THAT(repaired->damages[0].reason, HasSubstr("but its batch of version"));
  EXPECT_TRUE(Open().ok());
}

// Nothing can be given above it that a Timestamp could say.
TEST_F(ForgedLogTest, AVersionThatNoClockGivesRefusesTheOpenAndIsPassedByARepair) {
  WriteBatchAndDie("first_row", "other_row");
  if (HasFatalFailure()) return;
  Forge("other_row", "other_row", Version(version_.value | (1ull << 62)));
  const Status opened = Open();
  EXPECT_EQ(opened.code(), Code::kCorruption) << opened.ToString();
  EXPECT_THAT(opened.message(), HasSubstr("which no clock gives"));

  const Result<RepairReport> repaired = Repair();
  ASSERT_TRUE(repaired.ok()) << repaired.status().ToString();
  ASSERT_EQ(repaired->damages.size(), 1u);
  EXPECT_THAT(repaired->damages[0].consequence, HasSubstr("1 records are kept"));
  EXPECT_TRUE(Open().ok());
}

TEST_F(ForgedLogTest, ARecordOfAVersionThatNoClockGivesRefusesTheOpen) {
  WriteBatchAndDie("first_row", "other_row");
  if (HasFatalFailure()) return;
  std::string from, to;
  AppendLe64(&from, version_.value);
  AppendLe64(&to, version_.value | (1ull << 62));
  Forge(from + BatchOf(version_), to + BatchOf(Version(version_.value | (1ull << 62))));
  EXPECT_THAT(Open().message(), AllOf(HasSubstr("log record"), HasSubstr("which no clock gives")));
}

TEST_F(ForgedLogTest, WhatIsSealedAnewAsItWasIsNoDamage) {
  WriteBatchAndDie("first_row", "other_row");
  if (HasFatalFailure()) return;
  Forge("other_row", "other_row");
  const Status opened = Open();
  EXPECT_TRUE(opened.ok()) << opened.ToString();
}

}  // namespace
}  // namespace partita
