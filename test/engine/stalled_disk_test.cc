#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/user_key.h"
#include "engine/io/runtime_over.h"
#include "engine/io/sim_runtime.h"
#include "engine/manifest.h"
#include "engine/store.h"
#include "engine/world.h"
#include "test/engine/stalled_fixture.h"
#include "test/support/hanging_files.h"
#include "test/support/into.h"
#include "test/support/scratch_directory.h"

// covers: F26 F62 F13 F15 F20 F21: on a disk that does not answer, whoever waits is told so at the deadline,
// and is never told another thing afterwards.

namespace partita {
namespace {

using testing::HasSubstr;

struct Write {
  std::string row;
  Precondition precondition = Precondition::kNone;
  DurabilityLevel durability = DurabilityLevel::kPower;
  std::string content = "content";
};

Task<Status> PutWhere(Store* store, TableId table, Write write) {
  const std::string key = EncodeUserKey(table, "p", write.row);
  const WriteOp op{.precondition = write.precondition, .user_key = key, .content = write.content};
  WriteRequest request{
      .table = table, .ops = std::span<const WriteOp>(&op, 1), .durability = write.durability};
  WriteOutcome outcome = co_await store->Write(request);
  co_return outcome.status;
}

// A store on a simulated disk, with the row "old" in it.
class StalledDiskTest : public testing::TestWithParam<uint64_t> {
 protected:
  using Answer = std::optional<Status>;

  explicit StalledDiskTest(uint32_t shards = 1) : runtime_({.seed = GetParam(), .shards = shards}, disk_) {}

  void Open() {
    store_ = nullptr;
    StoreOptions options = OneShardStore();
    options.shards = runtime_.shard_count();
    Result<std::unique_ptr<Store>> opened = runtime_.RunToEnd(Store::Open(runtime_, options));
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    store_ = std::move(opened).value();
  }
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(Open());
    table_ = runtime_.RunToEnd(MakeRawTable(store_.get(), "rows"))->id;
    ASSERT_TRUE(runtime_.RunToEnd(PutWhere(store_.get(), table_, {"old"})).ok());
  }
  void TearDown() override {
    if (store_ != nullptr) EXPECT_TRUE(runtime_.RunToEnd(store_->Close()).ok());
  }

  // The next `operations` on the log, or on what else there is, take a minute.
  size_t Hang(SimOpSet operations, std::string path_prefix = "log-") {
    return runtime_.AddFault({.effect = SimEffect::kSlow,
                              .operations = operations,
                              .path_prefix = std::move(path_prefix),
                              .count = 1,
                              .delay_ns = 60 * kNanosPerSecond});
  }
  void Begin(Write write, Answer* answer) {
    runtime_.Spawn(Into(PutWhere(store_.get(), table_, std::move(write)), answer));
  }
  Code CodeOf(const Answer& answer) { return answer ? answer->code() : Code::kOk; }
  ShardStatistics Shard0() { return store_->Statistics()[0]; }
  Shard::ReadState Read(std::string row) {
    std::string content;
    return runtime_.RunToEnd(store_->Get(EncodeUserKey(table_, "p", row), &content))->state;
  }

  SimDisk disk_{GetParam()};
  SimRuntime runtime_;
  std::unique_ptr<Store> store_;
  TableId table_;
};
INSTANTIATE_TEST_SUITE_P(Seeds, StalledDiskTest, testing::Range(uint64_t{1}, uint64_t{9}));

TEST_P(StalledDiskTest, AnswersInDoubtAtTheDeadlineAndGoesOnWhenTheDiskDoes) {
  Hang(SimOps(SimOp::kFlush));
  Answer first, second, weak, refused, late, barrier;
  Begin({"first"}, &first);
  Begin({"second"}, &second);
  runtime_.AdvanceTime(10'000'000);
  Begin({"first", Precondition::kAbsent}, &refused);  // Whether it exists already hangs on the flush (F13).
  Begin({.row = "weak", .durability = DurabilityLevel::kProcess}, &weak);
  runtime_.Spawn(Into(store_->Barrier(), &barrier));
  runtime_.AdvanceTime(29 * kNanosPerSecond);
  EXPECT_FALSE(first || second || refused || weak || barrier);
  EXPECT_FALSE(Shard0().stalled);

  runtime_.AdvanceTime(2 * kNanosPerSecond);
  for (const Answer* answer : {&first, &second, &refused, &weak, &barrier}) {
    EXPECT_EQ(CodeOf(*answer), Code::kUnknown);
  }
  EXPECT_THAT(first->message(), HasSubstr("(F26)"));
  EXPECT_TRUE(Shard0().stalled);
  EXPECT_TRUE(Shard0().fenced);

  // Nothing more is let in; what is certain is read, what is not is not.
  Begin({"late"}, &late);
  runtime_.AdvanceTime(kNanosPerSecond / 100);
  EXPECT_EQ(CodeOf(late), Code::kIoError);
  EXPECT_THAT(late->message(), HasSubstr("(F26)"));
  EXPECT_EQ(Read("old"), Shard::ReadState::kFound);
  EXPECT_EQ(Read("first"), Shard::ReadState::kInDoubt);
  EXPECT_EQ(Read("late"), Shard::ReadState::kAbsent);

  runtime_.AdvanceTime(60 * kNanosPerSecond);
  EXPECT_FALSE(Shard0().fenced);
  EXPECT_EQ(Shard0().stalls, 1u);
  EXPECT_EQ(CodeOf(first), Code::kUnknown);
  for (const char* row : {"old", "first", "second", "weak"}) EXPECT_EQ(Read(row), Shard::ReadState::kFound);
  EXPECT_EQ(Read("late"), Shard::ReadState::kAbsent);
  EXPECT_TRUE(runtime_.RunToEnd(PutWhere(store_.get(), table_, {"late"})).ok());
}

// It hangs first and fails then: the shard leaves that file, with all that is in doubt (F21).
TEST_P(StalledDiskTest, GoesOnInANewFileWhenWhatHungFails) {
  Hang(SimOps(SimOp::kWrite));
  runtime_.AddFault({.operations = SimOps(SimOp::kFlush), .path_prefix = "log-", .count = 1});
  Answer first;
  Begin({"first"}, &first);
  runtime_.AdvanceTime(31 * kNanosPerSecond);
  EXPECT_EQ(CodeOf(first), Code::kUnknown);
  EXPECT_TRUE(Shard0().stalled);
  runtime_.AdvanceTime(60 * kNanosPerSecond);
  EXPECT_FALSE(Shard0().fenced);
  EXPECT_EQ(Read("first"), Shard::ReadState::kFound);
  EXPECT_TRUE(runtime_.RunToEnd(PutWhere(store_.get(), table_, {"more"})).ok());
}

// The flush fails, and the disk hangs over the way out.
TEST_P(StalledDiskTest, AnswersThoseWhoWaitForTheNewFile) {
  runtime_.AddFault({.operations = SimOps(SimOp::kFlush), .path_prefix = "log-", .count = 1});
  Hang(SimOps(SimOp::kFlush));
  Answer first;
  Begin({"first"}, &first);
  runtime_.AdvanceTime(31 * kNanosPerSecond);
  EXPECT_EQ(CodeOf(first), Code::kUnknown);
  EXPECT_TRUE(Shard0().stalled);
  EXPECT_EQ(Read("first"), Shard::ReadState::kInDoubt);
  runtime_.AdvanceTime(60 * kNanosPerSecond);
  EXPECT_FALSE(Shard0().fenced);
  EXPECT_EQ(Read("first"), Shard::ReadState::kFound);
  EXPECT_EQ(CodeOf(first), Code::kUnknown);
}

// Nobody waits for the idle seal (F32), but for the log that it holds.
TEST_P(StalledDiskTest, AHungSealIsWatchedAsWell) {
  Hang(SimOps(SimOp::kFlush));
  runtime_.AdvanceTime(kNanosPerSecond);  // The seal of what SetUp wrote, if it was not before.
  Answer first;
  Begin({"first"}, &first);
  runtime_.AdvanceTime(31 * kNanosPerSecond);
  EXPECT_EQ(CodeOf(first), Code::kUnknown);
  runtime_.AdvanceTime(60 * kNanosPerSecond);
  EXPECT_FALSE(Shard0().fenced);
  EXPECT_EQ(Read("first"), Shard::ReadState::kFound);
  EXPECT_EQ(Shard0().stalls, 1u);
}

// What was in doubt is, after a crash in the middle of it, wholly there or wholly not; nothing else is lost.
TEST_P(StalledDiskTest, ACrashMeanwhileKeepsWhatWasAcknowledged) {
  Hang(SimOps(SimOp::kFlush));
  Answer first;
  Begin({"first"}, &first);
  runtime_.AdvanceTime(31 * kNanosPerSecond);
  EXPECT_EQ(CodeOf(first), Code::kUnknown);
  runtime_.CrashNow();
  (void)runtime_.RunToEnd(store_->Close());
  disk_.CrashPower();

  SimRuntime again({.seed = GetParam() + 100, .shards = 1}, disk_);
  Result<std::unique_ptr<Store>> opened = again.RunToEnd(Store::Open(again, OneShardStore()));
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  std::string content;
  EXPECT_EQ(again.RunToEnd((*opened)->Get(EncodeUserKey(table_, "p", "old"), &content))->state,
            Shard::ReadState::kFound);
  EXPECT_TRUE(again.RunToEnd(PutWhere(opened->get(), table_, {"more"})).ok());
  EXPECT_TRUE(again.RunToEnd((*opened)->Close()).ok());
  store_ = nullptr;
}

// ---- Changes of tables.

class StalledCatalogTest : public StalledDiskTest {
 protected:
  Task<Status> Create(std::string name) {
    Result<TableDescriptor> made = co_await MakeRawTable(store_.get(), std::move(name));
    co_return made.status();
  }
  Code Find(std::string_view name) { return store_->FindTable("acct", name).code(); }
  // From now on no name becomes durable: swaps of the catalog come to nothing known.
  void RefuseNames() {
    runtime_.AddFault({.operations = SimOps(SimOp::kFlushDirectory), .path_prefix = "meta"});
  }
  // Whatever the catalog's operation in doubt was; answers of reads and writes of "rows" go on.
  void ExpectRowsAreServed() {
    EXPECT_EQ(Read("old"), Shard::ReadState::kFound);
    EXPECT_TRUE(runtime_.RunToEnd(PutWhere(store_.get(), table_, {"meanwhile"})).ok());
  }
};
INSTANTIATE_TEST_SUITE_P(Seeds, StalledCatalogTest, testing::Range(uint64_t{1}, uint64_t{9}));

TEST_P(StalledCatalogTest, ACreationIsInDoubtUntilTheDiskAnswersAgain) {
  RefuseNames();
  Answer made, waiting, after;
  runtime_.Spawn(Into(Create("new"), &made));
  runtime_.AdvanceTime(kNanosPerSecond);
  runtime_.Spawn(Into(store_->DeleteTable("acct", "rows"), &waiting));
  runtime_.AdvanceTime(28 * kNanosPerSecond);
  EXPECT_FALSE(made || waiting);
  runtime_.AdvanceTime(3 * kNanosPerSecond);
  EXPECT_EQ(CodeOf(made), Code::kUnknown);
  EXPECT_EQ(CodeOf(waiting), Code::kIoError);
  EXPECT_TRUE(store_->catalog_in_doubt());
  EXPECT_EQ(Find("New"), Code::kUnknown);
  EXPECT_EQ(Find("rows"), Code::kOk);
  EXPECT_EQ(Find("other"), Code::kNotFound);
  ExpectRowsAreServed();
  runtime_.Spawn(Into(Create("more"), &after));
  runtime_.AdvanceTime(kNanosPerSecond / 100);
  EXPECT_EQ(CodeOf(after), Code::kIoError);
  EXPECT_THAT(after->message(), HasSubstr("(F26)"));

  runtime_.ClearFaults();
  runtime_.AdvanceTime(3 * kNanosPerSecond);
  EXPECT_FALSE(store_->catalog_in_doubt());
  EXPECT_EQ(CodeOf(made), Code::kUnknown);
  EXPECT_EQ(Find("other"), Code::kNotFound);
  const bool there = Find("new") == Code::kOk;
  EXPECT_EQ(runtime_.RunToEnd(Create("new")).code(), there ? Code::kAlreadyExists : Code::kOk);
  const Result<TableDescriptor> table = store_->FindTable("acct", "new");
  ASSERT_TRUE(table.ok());
  EXPECT_TRUE(runtime_.RunToEnd(PutWhere(store_.get(), table->id, {"row"})).ok());
}

TEST_P(StalledCatalogTest, ADeletionIsInDoubtUntilTheDiskAnswersAgain) {
  ASSERT_TRUE(runtime_.RunToEnd(Create("other")).ok());
  const TableId other = store_->FindTable("acct", "other")->id;
  ASSERT_TRUE(runtime_.RunToEnd(PutWhere(store_.get(), other, {"row"})).ok());
  RefuseNames();
  Answer dropped;
  runtime_.Spawn(Into(store_->DeleteTable("acct", "other"), &dropped));
  runtime_.AdvanceTime(31 * kNanosPerSecond);
  EXPECT_EQ(CodeOf(dropped), Code::kUnknown);
  EXPECT_EQ(Find("other"), Code::kUnknown);
  // Neither read nor written by who found it before: a crash might take it away (F13).
  const std::string key = EncodeUserKey(other, "p", "row");
  std::string content;
  EXPECT_EQ(runtime_.RunToEnd(store_->Get(key, &content)).code(), Code::kUnknown);
  EXPECT_EQ(store_->TryGet(key, &content).state, Shard::ReadState::kNeedsIo);
  EXPECT_EQ(runtime_.RunToEnd(PutWhere(store_.get(), other, {"row"})).code(), Code::kUnknown);
  ScanRequest scan;
  scan.lower = TableLowerBound(other);
  scan.upper = TableUpperBound(other);
  EXPECT_EQ(runtime_.RunToEnd(store_->Scan(scan, nullptr)).code(), Code::kUnknown);
  ExpectRowsAreServed();

  runtime_.ClearFaults();
  runtime_.AdvanceTime(3 * kNanosPerSecond);
  EXPECT_EQ(CodeOf(dropped), Code::kUnknown);
  const Code now = Find("other");
  EXPECT_TRUE(now == Code::kOk || now == Code::kNotFound);
  const Code read = runtime_.RunToEnd(store_->Get(key, &content)).code();
  EXPECT_EQ(read, now == Code::kOk ? Code::kOk : Code::kNotFound);
}

// What takes long and comes to its end then is in force, and was in doubt for who asked.
TEST_P(StalledCatalogTest, ALateEndIsNoAcknowledgement) {
  runtime_.AddFault({.effect = SimEffect::kSlow,
                     .operations = SimOps(SimOp::kFlush, SimOp::kFlushDirectory),
                     .path_prefix = "meta",
                     .count = 1,
                     .delay_ns = 60 * kNanosPerSecond});
  Answer made, set;
  runtime_.Spawn(Into(Create("new"), &made));
  runtime_.AdvanceTime(kNanosPerSecond);
  runtime_.Spawn(Into(store_->SetAccountAttributes("acct", "properties"), &set));
  runtime_.AdvanceTime(30 * kNanosPerSecond);
  EXPECT_EQ(CodeOf(made), Code::kUnknown);
  EXPECT_EQ(CodeOf(set), Code::kIoError);
  EXPECT_EQ(Find("new"), Code::kUnknown);
  ExpectRowsAreServed();
  runtime_.AdvanceTime(40 * kNanosPerSecond);
  EXPECT_EQ(CodeOf(made), Code::kUnknown);
  EXPECT_EQ(Find("new"), Code::kOk);
  EXPECT_TRUE(runtime_.RunToEnd(store_->SetAccountAttributes("acct", "properties")).ok());
}

// Closing does not wait for a disk that refuses for ever, and the next life finds one or the other.
TEST_P(StalledCatalogTest, ClosingEndsTheDoubtForTheNextLife) {
  RefuseNames();
  Answer made;
  runtime_.Spawn(Into(Create("new"), &made));
  runtime_.AdvanceTime(31 * kNanosPerSecond);
  EXPECT_EQ(CodeOf(made), Code::kUnknown);
  EXPECT_TRUE(runtime_.RunToEnd(store_->Close()).ok());
  runtime_.ClearFaults();
  ASSERT_NO_FATAL_FAILURE(Open());
  EXPECT_NE(Find("new"), Code::kUnknown);
  ExpectRowsAreServed();
}

// ---- Moves of ranges.

class StalledMoveTest : public StalledDiskTest {
 protected:
  StalledMoveTest() : StalledDiskTest(/*shards=*/2) {}

  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(StalledDiskTest::SetUp());
    runtime_.AdvanceTime(kNanosPerSecond);  // Until the logs rest.
    from_ = Owner();
    to_ = ShardId(1 - from_.value);
  }
  ShardId Owner() { return store_->CatalogCopy().FindRange(EncodeUserKey(table_, "p", ""))->owner; }
  Task<Status> Move() {
    Result<Store::MoveReport> moved = co_await store_->MoveRange(EncodeUserKey(table_, "p", ""), to_);
    co_return moved.status();
  }
  // More than a move leaves to be handed over.
  void FillMemtable() {
    std::mt19937 random(1);  // Nothing to compress.
    for (int i = 0; i < 24; ++i) {
      rows_.push_back("large " + std::to_string(i));
      Write write{.row = rows_.back(), .content = std::string(60'000, '\0')};
      for (char& c : write.content) c = static_cast<char>(random());
      ASSERT_TRUE(runtime_.RunToEnd(PutWhere(store_.get(), table_, write)).ok());
    }
  }
  size_t HangNewOwnersManifest() {
    return Hang(SimOps(SimOp::kFlush), "meta/" + ManifestKey(store_->CatalogCopy().layout, to_));
  }
  Status Put(std::string row) {
    rows_.push_back(row);
    return runtime_.RunToEnd(PutWhere(store_.get(), table_, {std::move(row)}));
  }
  void ExpectRowsOn(ShardId owner) {
    EXPECT_EQ(Owner(), owner);
    for (const std::string& row : rows_) EXPECT_EQ(Read(row), Shard::ReadState::kFound) << row;
  }
  // A move that meets the fault does not come about. Writes go on meanwhile, and another move when the disk
  // does.
  void ExpectNotMade(size_t fault) {
    Answer moved;
    runtime_.Spawn(Into(Move(), &moved));
    runtime_.AdvanceTime(29 * kNanosPerSecond);
    EXPECT_EQ(runtime_.FaultHits(fault), 1u);
    EXPECT_FALSE(moved);
    EXPECT_TRUE(Put("meanwhile").ok());
    runtime_.AdvanceTime(2 * kNanosPerSecond);
    EXPECT_EQ(CodeOf(moved), Code::kDeadlineExceeded);
    EXPECT_THAT(moved.value_or(Status()).message(), HasSubstr("(F26)"));
    EXPECT_FALSE(store_->catalog_in_doubt());
    EXPECT_TRUE(Put("after").ok());
    ExpectRowsOn(from_);

    runtime_.AdvanceTime(60 * kNanosPerSecond);
    EXPECT_EQ(CodeOf(moved), Code::kDeadlineExceeded);
    ExpectRowsOn(from_);
    ExpectItMoves();
  }
  void ExpectItMoves() {
    const Status again = runtime_.RunToEnd(Move());
    EXPECT_TRUE(again.ok()) << again.ToString();
    ExpectRowsOn(to_);
    EXPECT_TRUE(Put("there").ok());
    EXPECT_TRUE(runtime_.RunToEnd(store_->Close()).ok());
    ASSERT_NO_FATAL_FAILURE(Open());
    ExpectRowsOn(to_);
  }

  ShardId from_, to_;
  std::vector<std::string> rows_{"old"};
};
INSTANTIATE_TEST_SUITE_P(Seeds, StalledMoveTest, testing::Range(uint64_t{1}, uint64_t{9}));

TEST_P(StalledMoveTest, IsNotMadeWhereTheNewOwnersManifestHangs) { ExpectNotMade(HangNewOwnersManifest()); }

TEST_P(StalledMoveTest, IsNotMadeWhereTheCatalogToBeHangs) {
  ExpectNotMade(Hang(SimOps(SimOp::kWrite), "meta/catalog"));
}

TEST_P(StalledMoveTest, IsNotMadeWhereAFlushHangs) {
  FillMemtable();
  ExpectNotMade(Hang(SimOps(SimOp::kWrite), "tables/"));
}

// What goes on, though slowly, is waited for.
TEST_P(StalledMoveTest, IsMadeWhereAFlushTakesLongerThanTheDeadline) {
  FillMemtable();
  const size_t slow = runtime_.AddFault({.effect = SimEffect::kSlow,
                                         .operations = SimOps(SimOp::kWrite),
                                         .path_prefix = "tables/",
                                         .count = 2,
                                         .delay_ns = 20 * kNanosPerSecond});
  const uint64_t began_ns = runtime_.now_ns();
  ExpectItMoves();
  EXPECT_EQ(runtime_.FaultHits(slow), 2u);
  EXPECT_GT(runtime_.now_ns() - began_ns, 40 * kNanosPerSecond);
}

// Others who change tables are answered, and go on once it is given up.
TEST_P(StalledMoveTest, OtherChangesDoNotBeginMeanwhile) {
  Hang(SimOps(SimOp::kWrite), "meta/catalog");
  Answer moved, dropped, moved_too;
  runtime_.Spawn(Into(Move(), &moved));
  runtime_.AdvanceTime(kNanosPerSecond);
  runtime_.Spawn(Into(store_->DeleteTable("acct", "rows"), &dropped));
  runtime_.Spawn(Into(Move(), &moved_too));
  runtime_.AdvanceTime(32 * kNanosPerSecond);
  EXPECT_EQ(CodeOf(moved), Code::kDeadlineExceeded);
  EXPECT_EQ(CodeOf(dropped), Code::kDeadlineExceeded);
  EXPECT_EQ(CodeOf(moved_too), Code::kBusy);
  runtime_.AdvanceTime(30 * kNanosPerSecond);
  ExpectRowsOn(from_);
  ExpectItMoves();
}

// The range is fenced then.
TEST_P(StalledMoveTest, IsNotMadeWhereTheNewOwnersLogHangs) {
  const size_t fault = Hang(SimOps(SimOp::kFlush), LogDirectory(store_->CatalogCopy().layout, to_));
  Answer moved, waits;
  runtime_.Spawn(Into(Move(), &moved));
  runtime_.AdvanceTime(kNanosPerSecond);
  EXPECT_EQ(runtime_.FaultHits(fault), 1u);
  Begin({"waits"}, &waits);
  runtime_.AdvanceTime(11 * kNanosPerSecond);
  EXPECT_EQ(CodeOf(waits), Code::kBusy);
  EXPECT_FALSE(moved);
  runtime_.AdvanceTime(20 * kNanosPerSecond);
  EXPECT_EQ(CodeOf(moved), Code::kIoError);
  EXPECT_TRUE(Put("after").ok());
  runtime_.AdvanceTime(60 * kNanosPerSecond);
  ExpectRowsOn(from_);
  ExpectItMoves();
}

TEST_P(StalledMoveTest, IsInDoubtWhereTheSwapHangs) {
  const size_t fault = Hang(SimOps(SimOp::kRename), "meta/catalog");
  Answer moved, waits;
  runtime_.Spawn(Into(Move(), &moved));
  runtime_.AdvanceTime(kNanosPerSecond);
  EXPECT_EQ(runtime_.FaultHits(fault), 1u);
  Begin({"waits"}, &waits);
  runtime_.AdvanceTime(30 * kNanosPerSecond);
  EXPECT_EQ(CodeOf(moved), Code::kUnknown);
  EXPECT_EQ(CodeOf(waits), Code::kBusy);
  EXPECT_TRUE(store_->catalog_in_doubt());
  runtime_.AdvanceTime(60 * kNanosPerSecond);
  EXPECT_EQ(CodeOf(moved), Code::kUnknown);
  EXPECT_FALSE(store_->catalog_in_doubt());
  ExpectRowsOn(to_);
  EXPECT_TRUE(Put("there").ok());
}

// As of any change, closing waits for what the kernel has.
TEST_P(StalledMoveTest, ClosingGivesItUp) {
  HangNewOwnersManifest();
  Answer moved;
  runtime_.Spawn(Into(Move(), &moved));
  runtime_.AdvanceTime(31 * kNanosPerSecond);
  EXPECT_EQ(CodeOf(moved), Code::kDeadlineExceeded);
  EXPECT_TRUE(runtime_.RunToEnd(store_->Close()).ok());
  ASSERT_NO_FATAL_FAILURE(Open());
  ExpectRowsOn(from_);
  ExpectItMoves();
}

// Real threads: the caller whose own transfer hangs cannot come back before the kernel lets it, and learns
// then that it is in doubt; the other one is answered meanwhile.
TEST(StalledStoreTest, OthersAreAnsweredWhileOneThreadHangsInTheKernel) {
  ScratchDirectory directory;
  Result<std::unique_ptr<Runtime>> world =
      OpenWorld({.directory = directory.path() + "/store", .create_directory = true, .shards = 1});
  ASSERT_TRUE(world.ok()) << world.status().ToString();
  HangingFiles files((*world)->files(), "log-");
  RuntimeOver runtime(**world, files);
  StoreOptions options = OneShardStore();
  // Made before the deadline is short: a real disk may take longer for that.
  TableId table;
  {
    Result<std::unique_ptr<Store>> patient = runtime.RunToEnd(Store::Open(runtime, options));
    ASSERT_TRUE(patient.ok()) << patient.status().ToString();
    const Result<TableDescriptor> made = runtime.RunToEnd(MakeRawTable(patient->get(), "rows"));
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    table = made->id;
    ASSERT_TRUE(runtime.RunToEnd((*patient)->Close()).ok());
  }
  options.io_deadline_ns = 3 * kNanosPerSecond;  // A real disk that others write to may take one or two.
  Result<std::unique_ptr<Store>> opened = runtime.RunToEnd(Store::Open(runtime, options));
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  Store& store = **opened;

  files.HangNext();
  Status hung;
  std::thread writer([&] {
    // At times the worker flushes in its place.
    while (!files.OneHung()) hung = RunBlocking(PutWhere(&store, table, {"hung"}));
  });
  files.WaitUntilOneHangs();
  // Until the deadline in doubt, as the flush that hangs comes first; then refused.
  const Status other = RunBlocking(PutWhere(&store, table, {"other"}));
  EXPECT_TRUE(other.code() == Code::kUnknown || other.code() == Code::kIoError) << other.ToString();
  EXPECT_THAT(other.message(), HasSubstr("(F26)"));
  EXPECT_TRUE(store.Statistics()[0].stalled);
  const Status later = RunBlocking(PutWhere(&store, table, {"later"}));
  EXPECT_EQ(later.code(), Code::kIoError);

  files.LetGo();
  writer.join();
  EXPECT_EQ(hung.code(), Code::kUnknown) << hung.ToString();
  EXPECT_FALSE(store.Statistics()[0].stalled);
  std::string content;
  EXPECT_EQ(RunBlocking(store.Get(EncodeUserKey(table, "p", "hung"), &content))->state,
            Shard::ReadState::kFound);
  EXPECT_TRUE(RunBlocking(PutWhere(&store, table, {"later"})).ok());
  EXPECT_TRUE(runtime.RunToEnd(store.Close()).ok());
}

}  // namespace
}  // namespace partita
