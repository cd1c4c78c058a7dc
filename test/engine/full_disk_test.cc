#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include "engine/backup.h"
#include "engine/base/user_key.h"
#include "engine/io/sim_runtime.h"
#include "engine/store.h"
#include "test/support/pause.h"
#include "test/support/small_store.h"
#include "test/support/subdirectory.h"

// covers: F54 F56 F57: on a full disk no compaction begins that could not end; writes are refused
// with their own status, and go on by themselves when there is space.

namespace partita {
namespace {

using testing::HasSubstr;

// What tries again ever more rarely has come to its rarest by then, and still resumes in time (F56).
constexpr uint64_t kOutageNs = 20 * 60 * kNanosPerSecond;
constexpr uint64_t kResumesWithinNs = 10 * kNanosPerSecond;

Status PutRowOf(SimRuntime& runtime, Store& store, TableId table, int row) {
  std::string key = EncodeUserKey(table, "p", std::to_string(row));
  std::string value(500, ' ');  // Does not compress, so that tables are as large as their rows.
  uint64_t random = static_cast<uint64_t>(row + 1) * 0x9E3779B97F4A7C15u;
  for (char& c : value) {
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    c = static_cast<char>(random >> 20);
  }
  WriteOp op;
  op.user_key = key;
  op.content = value;
  WriteRequest request;
  request.table = table;
  request.ops = std::span<const WriteOp>(&op, 1);
  return runtime.RunToEnd(store.Write(request)).status;
}

Status PutAt(SimRuntime& runtime, Store& store, TableId table, int at) {
  return PutRowOf(runtime, store, table, at * 7919 % 3000);
}

// A store whose disk has room for flushes and two log segments, not for rewriting all that is there.
class CrowdedStore {
 public:
  enum class Loaded { kShuffled, kInKeyOrder };
  explicit CrowdedStore(Loaded loaded = Loaded::kShuffled, uint64_t room = 700u << 10) {
    Result<std::unique_ptr<Store>> opened =
        runtime.RunToEnd(Store::Open(runtime, SmallStoreOptions(/*shards=*/1)));
    EXPECT_TRUE(opened.ok()) << opened.status().ToString();
    store = std::move(opened).value();
    Store::TableSpec spec;
    spec.account = "default";
    spec.name = "rows";
    spec.raw = true;
    table_ = runtime.RunToEnd(store->CreateTable(std::move(spec)))->id;
    for (; rows_ < 3000; ++rows_) {
      const int row = loaded == Loaded::kInKeyOrder ? 1000 + rows_ : rows_ * 7919 % 3000;
      EXPECT_TRUE(PutRow(row).ok());
    }
    EXPECT_TRUE(runtime.RunToEnd(store->CompactAll()).ok());
    disk.set_capacity(disk.used_bytes() + room);
  }

  Status Put() { return PutAt(runtime, *store, table_, rows_++); }
  Status PutRow(int row) { return PutRowOf(runtime, *store, table_, row); }
  Status DeleteRow(int row) {
    const std::string key = EncodeUserKey(table_, "p", std::to_string(row));
    const WriteOp op{.kind = WriteKind::kDelete, .user_key = key};
    const WriteRequest request{.table = table_, .ops = std::span<const WriteOp>(&op, 1)};
    return runtime.RunToEnd(store->Write(request)).status;
  }
  // Writes until compacting fails, and says why it did.
  Status WriteUntilNothingFits() {
    Status compacted;
    for (int i = 0; i < 1000 && compacted.ok(); ++i) {
      const Status written = Put();
      EXPECT_TRUE(written.ok()) << written.ToString();
      if (i % 100 == 99) compacted = runtime.RunToEnd(store->CompactAll());
    }
    return compacted;
  }
  void MakeRoom() { disk.set_capacity(uint64_t{1} << 40); }
  uint64_t compactions() { return store->Statistics()[0].compactions; }

  SimDisk disk{3};
  SimRuntime runtime{{.seed = 3, .shards = 1}, disk};
  std::unique_ptr<Store> store;

 private:
  TableId table_;
  int rows_ = 0;
};

TEST(FullDiskStoreTest, ACompactionWithoutRoomForItsOutputDoesNotBegin) {
  CrowdedStore world;
  const uint64_t compactions = world.compactions();
  const Status compacted = world.WriteUntilNothingFits();
  EXPECT_EQ(compacted.code(), Code::kNoSpace) << compacted.ToString();
  EXPECT_THAT(compacted.message(), HasSubstr("(F57)"));

  world.MakeRoom();
  EXPECT_TRUE(world.runtime.RunToEnd(world.store->CompactAll()).ok());
  EXPECT_GT(world.compactions(), compactions);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(world.Put().ok());
  Result<Store::VerifyResult> verified = world.runtime.RunToEnd(world.store->Verify(nullptr));
  ASSERT_TRUE(verified.ok());
  EXPECT_THAT(verified->damages, testing::IsEmpty());
  EXPECT_TRUE(world.runtime.RunToEnd(world.store->Close()).ok());
}

// A stack of flushes of a third of the keys, and the base level under it, has no room together; some of the
// stack have, and as often as it grows.
TEST(FullDiskStoreTest, WhereTheBestCompactionHasNoRoomASmallerOneIsMade) {
  CrowdedStore world(CrowdedStore::Loaded::kInKeyOrder, /*room=*/950u << 10);
  const uint64_t compactions = world.compactions();
  for (int i = 0; i < 3000; ++i) {
    ASSERT_TRUE(world.PutRow(3000 + i * 7919 % 1000).ok());
    if (i % 50 != 49) continue;
    const Status compacted = world.runtime.RunToEnd(world.store->CompactAll());
    ASSERT_TRUE(compacted.ok()) << i << ": " << compacted.ToString();
  }
  EXPECT_GT(world.compactions(), compactions);
  EXPECT_TRUE(world.runtime.RunToEnd(world.store->Close()).ok());
}

// Nobody writes any more, so no flush asks for it.
TEST(FullDiskStoreTest, ACompactionGoesOnByItselfOnceThereIsRoom) {
  CrowdedStore world;
  ASSERT_EQ(world.WriteUntilNothingFits().code(), Code::kNoSpace);
  world.runtime.RunToEnd(Pause(kOutageNs));
  const uint64_t compactions = world.compactions();

  world.MakeRoom();
  world.runtime.RunToEnd(Pause(kResumesWithinNs));
  EXPECT_GT(world.compactions(), compactions);
  EXPECT_TRUE(world.runtime.RunToEnd(world.store->Close()).ok());
}

class LogThatLacksTest : public testing::TestWithParam<Code> {};
INSTANTIATE_TEST_SUITE_P(Codes, LogThatLacksTest,
                         testing::Values(Code::kNoSpace, Code::kResourceExhausted, Code::kIoError),
                         [](const auto& info) { return std::string(CodeName(info.param)); });

// Space, descriptors, or a disk that works: who decides what to do goes by the code. Deletes, as the reserve
// keeps puts from getting there.
TEST_P(LogThatLacksTest, SaysWhatAndGoesOnByItselfOnceItHasIt) {
  CrowdedStore world(CrowdedStore::Loaded::kShuffled, /*room=*/64u << 20);
  world.runtime.AddFault(
      {.operations = SimOps(SimOp::kOpen, SimOp::kWrite), .path_prefix = "log-", .code = GetParam()});
  EXPECT_EQ(world.DeleteRow(1).code(), Code::kUnknown);
  const auto expect_refusal = [&world] {
    const Status refused = world.DeleteRow(2);
    EXPECT_EQ(refused.code(), GetParam());
    EXPECT_THAT(refused.message(), HasSubstr("takes no writes until its log can be written again"));
  };
  expect_refusal();
  world.runtime.RunToEnd(Pause(kOutageNs));
  expect_refusal();

  world.runtime.ClearFaults();
  world.runtime.RunToEnd(Pause(kResumesWithinNs));
  const Status deleted = world.DeleteRow(2);
  EXPECT_TRUE(deleted.ok()) << deleted.ToString();
  const Status put = world.PutRow(3);
  EXPECT_TRUE(put.ok()) << put.ToString();
  EXPECT_TRUE(world.runtime.RunToEnd(world.store->Close()).ok());
}

// A change of files that cannot be saved is tried again for as long as it takes, and keeps others from
// theirs.
TEST(FullDiskStoreTest, ABackupIsToldThatNoManifestCanBeSaved) {
  SimDisk disk(4);
  SimRuntime runtime({.seed = 4, .shards = 1}, disk);
  Result<std::unique_ptr<Store>> opened =
      runtime.RunToEnd(Store::Open(runtime, SmallStoreOptions(/*shards=*/1)));
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  Store& store = **opened;
  const auto create = [&](const char* name) {
    Store::TableSpec spec;
    spec.account = "default";
    spec.name = name;
    spec.raw = true;
    return runtime.RunToEnd(store.CreateTable(std::move(spec)))->id;
  };
  const TableId kept = create("kept");
  create("dropped");
  for (int row = 0; row < 100; ++row) ASSERT_TRUE(PutAt(runtime, store, kept, row).ok());
  Subdirectory to(runtime.files(), "backup");
  ASSERT_TRUE(runtime.RunToEnd(to.Make()).ok());
  ASSERT_TRUE(runtime.RunToEnd(store.FlushMemtables()).ok());
  // The manifest without the table's files comes behind its deletion.
  runtime.AddFault({.operations = SimOps(SimOp::kWrite), .path_prefix = "meta/shard"});
  ASSERT_TRUE(runtime.RunToEnd(store.DeleteTable("default", "dropped")).ok());
  runtime.RunToEnd(Pause(100'000'000));

  Result<BackupReport> report = runtime.RunToEnd(store.Backup(to, nullptr, BackupOptions()));
  EXPECT_EQ(report.status().code(), Code::kIoError) << report.status().ToString();

  runtime.ClearFaults();
  report = runtime.RunToEnd(store.Backup(to, nullptr, BackupOptions()));
  EXPECT_TRUE(report.ok()) << report.status().ToString();
  EXPECT_TRUE(runtime.RunToEnd(store.Close()).ok());
}

}  // namespace
}  // namespace partita
