#include "engine/disk_reserve.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>

#include "engine/base/user_key.h"
#include "engine/io/sim_runtime.h"
#include "engine/store.h"
#include "test/support/small_store.h"

// covers: F54 F55 F56 F69: on a disk without a free page logs go on, memtables are flushed, manifests and the
// catalog rewritten, deletes and drops of tables taken, whatever the moment at which it filled up; and once
// there is space, the reserve is taken again before writes are.

namespace partita {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint64_t kPlenty = uint64_t{1} << 40;
constexpr uint64_t kResumedNs = 10'000'000'000;  // F56.

// Does not compress, so that tables are as large as their rows.
std::string ValueOf(uint64_t number, size_t size = 500) {
  std::string value(size, ' ');
  uint64_t random = (number + 1) * 0x9E3779B97F4A7C15u;
  for (char& c : value) {
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    c = static_cast<char>(random >> 20);
  }
  return value;
}

Result<std::string> TakeThePatch(std::string_view, std::string_view, std::string_view patch) {
  return std::string(patch);
}

// A store on a small disk, and what it was told and answered: of each row the value that must be there, or
// that both may be (in doubt).
class ReserveWorld {
 public:
  explicit ReserveWorld(uint64_t seed) : disk(seed), seed_(seed) { Start(); }
  ~ReserveWorld() { CloseAnyway(); }

  void Start() { runtime.emplace(SimOptions{.seed = ++seed_, .shards = 2}, disk); }
  Status Open() {
    Result<std::unique_ptr<Store>> opened = runtime->RunToEnd(Store::Open(*runtime, options));
    if (!opened.ok()) return opened.status();
    store = std::move(opened).value();
    return Status();
  }
  Status Close() {
    Status closed = runtime->RunToEnd(store->Close());
    store.reset();
    return closed;
  }
  void CloseAnyway() {
    if (store != nullptr) (void)Close();
  }
  void CrashAndStartAgain(bool power) {
    runtime->CrashNow();
    CloseAnyway();
    power ? disk.CrashPower() : disk.CrashProcess();
    runtime.reset();
    Start();
  }

  // Not one page is free.
  void Fill() { disk.set_capacity(disk.used_bytes()); }
  void MakeRoom() { disk.set_capacity(kPlenty); }
  bool low() const { return store->reserve().low(); }

  TableId MakeTable(const std::string& name) {
    Store::TableSpec spec;
    spec.account = "default";
    spec.name = name;
    spec.raw = true;
    Result<TableDescriptor> made = runtime->RunToEnd(store->CreateTable(std::move(spec)));
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    return made.ok() ? made->id : TableId();
  }
  TableId Find(const std::string& name) { return store->FindTable("default", name)->id; }

  Status Write(TableId table, std::vector<std::pair<uint64_t, WriteKind>> rows, uint64_t number) {
    std::vector<std::string> keys;
    for (const auto& [row, kind] : rows) keys.push_back(EncodeUserKey(table, "p", std::to_string(row)));
    const std::string value = ValueOf(number);
    std::vector<WriteOp> ops(rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      ops[i].kind = rows[i].second;
      ops[i].user_key = keys[i];
      if (ops[i].kind != WriteKind::kDelete) ops[i].content = value;
    }
    WriteRequest request;
    request.table = table;
    request.ops = ops;
    request.merge = TakeThePatch;
    return runtime->RunToEnd(store->Write(request)).status;
  }
  Status Put(TableId table, uint64_t row, uint64_t number) {
    Status written = Write(table, {{row, WriteKind::kPut}}, number);
    Note(row, written, ValueOf(number));
    return written;
  }
  Status Delete(TableId table, uint64_t row) {
    Status written = Write(table, {{row, WriteKind::kDelete}}, 0);
    Note(row, written, "absent");
    return written;
  }
  std::string Get(TableId table, uint64_t row) {
    std::string content;
    const std::string key = EncodeUserKey(table, "p", std::to_string(row));
    Result<Shard::ReadAnswer> answer = runtime->RunToEnd(store->Get(key, &content));
    if (!answer.ok()) return answer.status().ToString();
    return answer->state == Shard::ReadState::kFound ? content : "absent";
  }
  void ExpectRows(TableId table) {
    for (auto& [row, may_be] : rows) EXPECT_THAT(may_be, testing::Contains(Get(table, row))) << row;
  }
  Status Flush() { return runtime->RunToEnd(store->FlushMemtables()); }

  // Writes resume by themselves, and not before the reserve is there.
  void ExpectToResume(TableId table) {
    const uint64_t began = runtime->now_ns();
    Status written;
    do {
      runtime->AdvanceTime(50'000'000);
      written = Put(table, 1, 77);
      if (written.ok()) {
        EXPECT_EQ(store->reserve().bytes_held(), options.reserve_bytes);
      }
    } while (!written.ok() && runtime->now_ns() - began < kResumedNs);
    EXPECT_TRUE(written.ok()) << written.ToString();
  }

  StoreOptions options = SmallStoreOptions(/*shards=*/2);
  SimDisk disk;
  std::optional<SimRuntime> runtime;
  std::unique_ptr<Store> store;
  std::map<uint64_t, std::vector<std::string>> rows;

 private:
  void Note(uint64_t row, const Status& written, std::string value) {
    std::vector<std::string>& may_be = rows[row];
    if (may_be.empty()) may_be.push_back("absent");
    if (written.ok()) may_be.clear();
    if (written.ok() || written.code() == Code::kUnknown) may_be.push_back(std::move(value));
  }

  uint64_t seed_;
};

TEST(DiskReserveTest, OnAFullDiskEverythingIsFlushedAndOnlyDeletesAreTaken) {
  ReserveWorld world(1);
  ASSERT_TRUE(world.Open().ok());
  const TableId table = world.MakeTable("rows");
  ASSERT_EQ(world.store->reserve().bytes_held(), world.options.reserve_bytes);
  for (uint64_t row = 0; row < 100; ++row) ASSERT_TRUE(world.Put(table, row, row).ok());

  world.Fill();
  EXPECT_FALSE(world.low());
  EXPECT_TRUE(world.Flush().ok());
  EXPECT_EQ(world.store->Statistics()[0].memtable_entries + world.store->Statistics()[1].memtable_entries,
            0u);
  ASSERT_TRUE(world.low());
  EXPECT_EQ(world.store->reserve().bytes_held(), 0u);
  EXPECT_EQ(world.store->reserve().times_low(), 1u);

  const Status refused = world.Put(table, 1, 1000);
  EXPECT_EQ(refused.code(), Code::kNoSpace);
  EXPECT_THAT(refused.message(), HasSubstr("free space"));
  EXPECT_EQ(world.Write(table, {{1, WriteKind::kMerge}}, 1).code(), Code::kNoSpace);
  EXPECT_EQ(world.Write(table, {{1, WriteKind::kDelete}, {2, WriteKind::kPut}}, 1).code(), Code::kNoSpace);
  Store::TableSpec another;
  another.account = "default";
  another.name = "another";
  EXPECT_EQ(world.runtime->RunToEnd(world.store->CreateTable(another)).code(), Code::kNoSpace);
  Store::TableSpec same = another;
  same.name = "Rows";  // Case makes no other name.
  EXPECT_EQ(world.runtime->RunToEnd(world.store->CreateTable(same)).code(), Code::kAlreadyExists);
  EXPECT_EQ(world.runtime->RunToEnd(world.store->SetTableAttributes("default", "rows", "x")).code(),
            Code::kNoSpace);

  EXPECT_TRUE(world.Delete(table, 5).ok());
  EXPECT_TRUE(world.Write(table, {{6, WriteKind::kDelete}, {7, WriteKind::kDelete}}, 0).ok());
  world.rows[6] = world.rows[7] = {"absent"};
  world.ExpectRows(table);
  EXPECT_TRUE(world.Flush().ok());
  EXPECT_TRUE(world.Close().ok());  // With its seal.

  // Still full: it opens, reads and deletes; and there is nothing to replay.
  world.Fill();
  ASSERT_TRUE(world.Open().ok());
  EXPECT_TRUE(world.store->open_report().clean_shutdown);
  EXPECT_TRUE(world.low());
  EXPECT_TRUE(world.Delete(table, 8).ok());
  world.ExpectRows(table);
  world.MakeRoom();
  world.ExpectToResume(table);
}

// A delete on its own takes a page of the log: these take several times what is left of it and the reserve.
TEST(DiskReserveTest, DeletesOnAFullDiskUseTheSameSegmentsOverAndOver) {
  ReserveWorld world(2);
  ASSERT_TRUE(world.Open().ok());
  const TableId table = world.MakeTable("rows");
  for (uint64_t row = 0; row < 200; ++row) ASSERT_TRUE(world.Put(table, row, row).ok());
  world.Fill();
  ASSERT_TRUE(world.Flush().ok());
  ASSERT_TRUE(world.low());
  for (uint64_t i = 0; i < 4000; ++i) {
    const Status deleted = world.Delete(table, i % 190);
    ASSERT_TRUE(deleted.ok()) << i << ": " << deleted.ToString();
  }
  world.CrashAndStartAgain(/*power=*/true);
  world.Fill();
  ASSERT_TRUE(world.Open().ok());
  world.ExpectRows(table);
}

TEST(DiskReserveTest, ADropOfATableFreesItsSpaceAndWritesResume) {
  ReserveWorld world(3);
  ASSERT_TRUE(world.Open().ok());
  const TableId table = world.MakeTable("rows");
  const TableId large = world.MakeTable("large");
  for (uint64_t row = 0; row < 6000; ++row)
    ASSERT_TRUE(world.Write(large, {{row, WriteKind::kPut}}, row).ok());
  ASSERT_TRUE(world.Flush().ok());
  for (uint64_t row = 0; row < 50; ++row) ASSERT_TRUE(world.Put(table, row, row).ok());
  world.Fill();
  ASSERT_TRUE(world.Flush().ok());
  ASSERT_EQ(world.Put(table, 1, 7).code(), Code::kNoSpace);

  const Status dropped = world.runtime->RunToEnd(world.store->DeleteTable("default", "large"));
  EXPECT_TRUE(dropped.ok()) << dropped.ToString();
  world.ExpectToResume(table);
  world.ExpectRows(table);
}

TEST(DiskReserveTest, DeletesFreeSpaceWhenCompactionsDropTheRows) {
  ReserveWorld world(4);
  ASSERT_TRUE(world.Open().ok());
  const TableId table = world.MakeTable("rows");
  for (uint64_t row = 0; row < 8000; ++row) ASSERT_TRUE(world.Put(table, row, row).ok());
  ASSERT_TRUE(world.runtime->RunToEnd(world.store->CompactAll()).ok());
  world.Fill();
  ASSERT_TRUE(world.Delete(table, 100).ok());
  ASSERT_TRUE(world.Flush().ok());
  ASSERT_TRUE(world.low());
  for (uint64_t row = 100; row < 8000; ++row) {
    const Status deleted = world.Delete(table, row);
    ASSERT_TRUE(deleted.ok()) << row << ": " << deleted.ToString();
  }
  world.ExpectToResume(table);
  world.ExpectRows(table);
}

// A few deletes fill no memtable, no log segment and no level, and nobody writes after them.
TEST(DiskReserveTest, FewDeletesOfLargeRowsFreeTheirSpaceToo) {
  ReserveWorld world(6);
  world.options.log_segment_bytes = 8u << 20;
  world.options.memtable_data_bytes = 256u << 10;
  world.options.reserve_bytes = 2u << 20;
  ASSERT_TRUE(world.Open().ok());
  const TableId table = world.MakeTable("rows");
  for (uint64_t row = 0; row < 10'000; ++row) ASSERT_TRUE(world.Put(table, row, row).ok());
  ASSERT_TRUE(world.runtime->RunToEnd(world.store->CompactAll()).ok());
  world.Fill();
  ASSERT_TRUE(world.Delete(table, 9'500).ok());
  ASSERT_TRUE(world.Flush().ok());  // Finds no space, and gives the reserve back.
  ASSERT_TRUE(world.low());
  // By hundreds, as the service would: few bytes in the log.
  for (uint64_t row = 0; row < 9'000; row += 100) {
    std::vector<std::pair<uint64_t, WriteKind>> rows;
    for (uint64_t i = row; i < row + 100; ++i) rows.push_back({i, WriteKind::kDelete});
    ASSERT_TRUE(world.Write(table, std::move(rows), 0).ok());
  }
  for (uint64_t row = 0; row < 9'000; ++row) world.rows[row] = {"absent"};
  world.runtime->AdvanceTime(8'000'000'000);
  EXPECT_FALSE(world.low());
  world.ExpectToResume(table);
  world.ExpectRows(table);
}

// What finds no room of its own must not eat what flushes need.
TEST(DiskReserveTest, ACompactionHasNoShareInIt) {
  ReserveWorld world(5);
  ASSERT_TRUE(world.Open().ok());
  const TableId table = world.MakeTable("rows");
  uint64_t row = 0;
  for (; row < 3000; ++row) ASSERT_TRUE(world.Put(table, row * 7919 % 3000, row).ok());
  ASSERT_TRUE(world.runtime->RunToEnd(world.store->CompactAll()).ok());
  // Room for flushes, not for what compactions want: they pile up (F57).
  world.disk.set_capacity(world.disk.used_bytes() + (700u << 10));
  Status waits;
  for (int i = 0; i < 1000 && waits.ok(); ++i) {
    ASSERT_TRUE(world.Put(table, row * 7919 % 3000, row).ok());
    ++row;
    if (i % 100 == 99) waits = world.runtime->RunToEnd(world.store->CompactAll());
  }
  ASSERT_EQ(waits.code(), Code::kNoSpace);
  ASSERT_EQ(world.store->reserve().times_low(), 0u);
  SimFault fault;
  fault.operations = SimOps(SimOp::kWrite);
  fault.path_prefix = "tables/";
  fault.code = Code::kNoSpace;
  const size_t added = world.runtime->AddFault(fault);
  world.MakeRoom();
  const Status compacted = world.runtime->RunToEnd(world.store->CompactAll());
  ASSERT_GT(world.runtime->FaultHits(added), 0u);
  EXPECT_EQ(compacted.code(), Code::kNoSpace);
  EXPECT_FALSE(world.low());
  EXPECT_EQ(world.store->reserve().times_low(), 0u);
}

TEST(DiskReserveTest, AStoreThatFindsNoRoomForItOpensAndSaysSo) {
  ReserveWorld world(6);
  world.options.reserve_bytes = 64u << 10;
  ASSERT_TRUE(world.Open().ok());
  const TableId table = world.MakeTable("rows");
  for (uint64_t row = 0; row < 20; ++row) ASSERT_TRUE(world.Put(table, row, row).ok());
  ASSERT_TRUE(world.Close().ok());

  // More memory, more reserve; the disk is nearly full, so that the old one is all there is.
  world.options.reserve_bytes = 2u << 20;
  world.disk.set_capacity(world.disk.used_bytes() + (1u << 20));
  ASSERT_TRUE(world.Open().ok());
  EXPECT_TRUE(world.low());
  EXPECT_GT(world.store->reserve().bytes_held(), 64u << 10);  // What there is of it.
  EXPECT_LT(world.store->reserve().bytes_held(), world.options.reserve_bytes);
  EXPECT_EQ(world.Put(table, 1, 100).code(), Code::kNoSpace);
  EXPECT_TRUE(world.Delete(table, 2).ok());
  world.ExpectRows(table);
  world.MakeRoom();
  world.ExpectToResume(table);
  ASSERT_TRUE(world.Close().ok());
  EXPECT_EQ(world.disk.ReadFile(kReserveName)->size(), world.options.reserve_bytes);
}

// Opening makes a segment, a catalog, manifests: it has the reserve of the life before.
TEST(DiskReserveTest, AStoreThatWasClosedWithItOpensOnADiskThatIsFullSince) {
  ReserveWorld world(7);
  ASSERT_TRUE(world.Open().ok());
  const TableId table = world.MakeTable("rows");
  for (uint64_t row = 0; row < 100; ++row) ASSERT_TRUE(world.Put(table, row, row).ok());
  world.CrashAndStartAgain(/*power=*/false);
  world.Fill();
  const Status opened = world.Open();
  ASSERT_TRUE(opened.ok()) << opened.ToString();
  EXPECT_TRUE(world.low());
  EXPECT_TRUE(world.Flush().ok());
  EXPECT_TRUE(world.Delete(table, 3).ok());
  world.ExpectRows(table);
  world.MakeRoom();
  world.ExpectToResume(table);
}

// It is made once there is a catalog: on its own it says that the rest was lost (F69).
TEST(DiskReserveTest, BesideNothingItSaysThatAStoreWasLost) {
  ReserveWorld world(8);
  {
    auto file = world.runtime->RunToEnd(
        world.runtime->files().Open(kReserveName, OpenMode::kCreateOrOpen, FileIo::kBuffered));
    ASSERT_TRUE(file.ok()) << file.status().ToString();
  }
  const Status opened = world.Open();
  EXPECT_EQ(opened.code(), Code::kCorruption) << opened.ToString();
  EXPECT_THAT(opened.message(), HasSubstr("(F69)"));
}

TEST(DiskReserveTest, ALossOfPowerDoesNotTakeIt) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    ReserveWorld world(seed);
    ASSERT_TRUE(world.Open().ok());
    world.CrashAndStartAgain(/*power=*/true);
    const Result<std::string> file = world.disk.ReadFile(kReserveName);
    ASSERT_TRUE(file.ok()) << seed;
    EXPECT_EQ(file->size(), world.options.reserve_bytes) << seed;
  }
}

// A crash may undo the cut and leave the file its size without the space.
TEST(DiskReserveTest, AfterACrashItIsOnlyHeldWithItsSpace) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    ReserveWorld world(seed);
    ASSERT_TRUE(world.Open().ok());
    const TableId table = world.MakeTable("rows");
    for (uint64_t row = 0; row < 100; ++row) ASSERT_TRUE(world.Put(table, row, row).ok());
    world.Fill();
    ASSERT_TRUE(world.Flush().ok());
    world.CrashAndStartAgain(/*power=*/true);
    world.MakeRoom();
    ASSERT_TRUE(world.Open().ok());
    for (uint64_t row = 0; row < 100; ++row) ASSERT_TRUE(world.Put(table, row, row + 100).ok());
    world.Fill();
    const Status flushed = world.Flush();
    EXPECT_TRUE(flushed.ok()) << seed << ": " << flushed.ToString();
    world.ExpectRows(table);
  }
}

// ---- A disk that is full from any operation on.

// Writes, flushes and deletes, on a disk that is full from operation `full_at` on (0: never): nothing but
// inserts may be refused. Crashes at `crash_at` (0: never).
void LiveUntil(ReserveWorld* world, uint64_t full_at, uint64_t crash_at) {
  SimRuntime& runtime = *world->runtime;
  uint64_t completed = 0;
  runtime.OnCompletion([world, full_at, &completed](const SimOperationRecord&) {
    if (++completed == full_at) world->Fill();
  });
  if (crash_at > 0)
    runtime.CrashAtOperation(runtime.operations_completed() + crash_at, SimCrashMoment::kBefore);
  const TableId table = world->Find("rows");
  auto check = [&](const Status& answer, bool may_be_refused, const char* what) {
    if (runtime.crashed() || answer.ok()) return;
    EXPECT_TRUE(may_be_refused) << what << " at " << full_at << ": " << answer.ToString();
    EXPECT_EQ(answer.code(), Code::kNoSpace) << what << " at " << full_at << ": " << answer.ToString();
  };
  for (uint64_t i = 0; i < 60 && !runtime.crashed(); ++i) {
    check(world->Put(table, i % 40, 100 + i), /*may_be_refused=*/full_at > 0 || crash_at > 0, "put");
    if (i % 7 == 3) check(world->Delete(table, i % 40), false, "delete");
    if (i % 30 == 29) check(world->Flush(), false, "flush");
  }
  if (!runtime.crashed()) check(world->Flush(), false, "flush");
  if (!runtime.crashed()) {
    check(runtime.RunToEnd(world->store->DeleteTable("default", "other")), false, "drop");
  }
  runtime.OnCompletion(nullptr);
}

// A store with two tables, open.
void Prepare(ReserveWorld* world) {
  world->options.memtable_data_bytes = 8u << 10;
  world->options.table_file_bytes = 16u << 10;
  world->options.log_segment_bytes = 64u << 10;
  ASSERT_TRUE(world->Open().ok());
  world->MakeTable("other");
  const TableId table = world->MakeTable("rows");
  for (uint64_t row = 0; row < 30; ++row) ASSERT_TRUE(world->Put(table, row, row).ok());
}

uint64_t OperationsOfALife() {
  ReserveWorld world(100);
  Prepare(&world);
  const uint64_t before = world.runtime->operations_completed();
  LiveUntil(&world, 0, 0);
  return world.runtime->operations_completed() - before;
}

void ExpectSoundAfterACrash(ReserveWorld* world, bool power) {
  world->CrashAndStartAgain(power);
  const Status opened = world->Open();
  ASSERT_TRUE(opened.ok()) << opened.ToString();
  const TableId table = world->Find("rows");
  world->ExpectRows(table);
  EXPECT_TRUE(world->Delete(table, 39).ok());
  EXPECT_TRUE(world->Flush().ok());
  world->MakeRoom();
  world->ExpectToResume(table);
  EXPECT_TRUE(world->Close().ok());
}

TEST(DiskReserveTest, ADiskThatIsFullFromAnyOperationOnTakesEverythingButInserts) {
  const uint64_t operations = OperationsOfALife();
  std::printf("%llu operations\n", static_cast<unsigned long long>(operations));
  uint64_t low = 0;
  for (uint64_t full_at = 1; full_at <= operations; ++full_at) {
    ReserveWorld world(100);
    ASSERT_NO_FATAL_FAILURE(Prepare(&world));
    LiveUntil(&world, full_at, 0);
    low += world.low() ? 1 : 0;
    world.ExpectRows(world.Find("rows"));
    ASSERT_NO_FATAL_FAILURE(ExpectSoundAfterACrash(&world, /*power=*/full_at % 2 == 0));
    if (HasFailure()) FAIL() << "full at " << full_at;
  }
  EXPECT_GT(low, operations / 2);
}

TEST(DiskReserveTest, ACrashAtAnyOperationWhileItIsGivenBackTakenOrLowHarmsNothing) {
  const uint64_t operations = OperationsOfALife();
  for (uint64_t crash_at = 1; crash_at <= operations; ++crash_at) {
    ReserveWorld world(100);
    ASSERT_NO_FATAL_FAILURE(Prepare(&world));
    world.Fill();
    LiveUntil(&world, 0, crash_at);
    ASSERT_NO_FATAL_FAILURE(ExpectSoundAfterACrash(&world, /*power=*/crash_at % 2 == 0));
    if (HasFailure()) FAIL() << "crash at " << crash_at;
  }
}

TEST(DiskReserveTest, AReserveThatIsNotGivenBackIsFound) {
  ReserveWorld world(1);
  world.options.planted = EngineDefect::kKeepReserve;
  ASSERT_TRUE(world.Open().ok());
  const TableId table = world.MakeTable("rows");
  for (uint64_t row = 0; row < 100; ++row) ASSERT_TRUE(world.Put(table, row, row).ok());
  world.Fill();
  EXPECT_EQ(world.Flush().code(), Code::kNoSpace);
  world.MakeRoom();
}

}  // namespace
}  // namespace partita
