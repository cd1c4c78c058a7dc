#include <gmock/gmock-matchers.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "engine/base/event.h"
#include "test/api/database_fixture.h"

// What an embedder may get wrong: it is refused by name, and nothing that was stored is touched.

namespace partita {
namespace {

using ::testing::HasSubstr;

class MisuseTest : public DatabaseTest {};
INSTANTIATE_TEST_SUITE_P(Backends, MisuseTest, testing::Values(IoBackend::kUring, IoBackend::kThreads),
                         [](const auto& info) {
                           return info.param == IoBackend::kUring ? "Uring" : "Threads";
                         });

// A server that casts a byte of its own protocol gets there.
TEST_P(MisuseTest, NumbersThatNameNothingAreRefused) {
  const auto seventh = static_cast<Durability>(7);
  const Table table = MakeTable();
  EXPECT_THAT(database_->CreateTable("Bad", {.durability = seventh}).status().message(),
              HasSubstr("durability is 7"));
  EXPECT_EQ(database_->CreateRawTable("Bad", {.durability = seventh}).code(), Code::kInvalidArgument);
  EXPECT_EQ(table.Insert(Thing("p", "r", 1), {seventh}).status.code(), Code::kInvalidArgument);
  const std::vector<Write> writes = {{.action = WriteAction::kInsert, .entity = Thing("p", "r", 1)}};
  EXPECT_EQ(table.Transact(writes, {.durability = seventh}).status.code(), Code::kInvalidArgument);
  EXPECT_EQ(table.WriteMany(writes, {seventh})[0].status.code(), Code::kInvalidArgument);
  const std::vector<Write> odd = {{.action = static_cast<WriteAction>(77), .entity = Thing("p", "r", 1)}};
  EXPECT_THAT(table.Transact(odd).status.message(), HasSubstr("action is 77"));
  const Result<RawTable> raw = database_->CreateRawTable("Raw");
  ASSERT_TRUE(raw.ok());
  EXPECT_EQ(raw->Put("p", "r", "v", {seventh}).status.code(), Code::kInvalidArgument);
  const std::vector<RawTable::Operation> operations = {{.partition_key = "p", .row_key = "r"}};
  EXPECT_EQ(raw->Apply(operations, {seventh}).status.code(), Code::kInvalidArgument);
  EXPECT_TRUE(database_->HotPartitions(static_cast<HeatMetric>(9)).empty());
  EXPECT_EQ(database_->Heat({.metric = static_cast<HeatMetric>(9)}).code(), Code::kInvalidArgument);
  const auto sideways = static_cast<ScanOrder>(7);
  EXPECT_THAT(table.Query({.order = sideways}).status().message(), HasSubstr("order is 7"));
  EXPECT_EQ(table.Scan({.order = sideways}).code(), Code::kInvalidArgument);
  EXPECT_EQ(raw->Scan({.order = sideways}).code(), Code::kInvalidArgument);
  EXPECT_EQ(*table.Count({.order = sideways}), 0u) << "has no order";
  const Filter where = Filter::Comparison("N", static_cast<ComparisonOp>(7), 1);
  EXPECT_EQ(table.Query({.where = where}).code(), Code::kInvalidArgument);
  EXPECT_EQ(table.Aggregate({{static_cast<AggregateKind>(9), "N"}}).code(), Code::kInvalidArgument);
  const BackupOptions shared{.sharing = static_cast<FileSharing>(7)};
  const std::string copy = directory_.path() + "/copy";
  EXPECT_EQ(database_->Backup(copy, shared).code(), Code::kInvalidArgument);
  EXPECT_THAT(Database::Restore(copy, copy + "2", shared).status().message(), HasSubstr("sharing is 7"));
  Options options = OptionsOf();
  options.durability = seventh;
  EXPECT_EQ(Database::Open(options).code(), Code::kInvalidArgument);
  options = OptionsOf();
  options.directory += "2";
  options.io_backend = static_cast<IoBackend>(7);
  EXPECT_THAT(Database::Open(options).status().message(), HasSubstr("io_backend is 7"));
  EXPECT_EQ(table.Get("p", "r").code(), Code::kNotFound);
  Reopen();
  EXPECT_EQ(database_->ListTables().size(), 2u);
}

TEST_P(MisuseTest, AnEntityWithOneNameTwiceIsRefused) {
  Entity entity("p", "r");
  entity.AppendProperty("A", 1);
  entity.AppendProperty("B", 2);
  EXPECT_TRUE(ValidateEntity(entity).ok());
  entity.AppendProperty("A", 3);
  EXPECT_THAT(ValidateEntity(entity).message(), HasSubstr("two properties \"A\""));
  EXPECT_EQ(MakeTable().Insert(entity).status.code(), Code::kInvalidArgument);
  Entity wide("p", "r");
  for (int i = 0; i < 252; ++i) wide.AppendProperty("Property" + std::to_string(i), i);
  EXPECT_TRUE(ValidateEntity(wide).ok());
}

TEST_P(MisuseTest, AfterCloseEveryCallSaysSo) {
  const Table table = MakeTable();
  const Result<RawTable> raw = database_->CreateRawTable("Raw");
  ASSERT_TRUE(table.Insert(Thing("p", "r", 1)).ok());
  ASSERT_TRUE(database_->Close().ok());
  EXPECT_TRUE(database_->Close().ok()) << "twice is once";
  EXPECT_EQ(table.Get("p", "r").code(), Code::kClosed);
  EXPECT_EQ(table.Insert(Thing("p", "r", 1)).status.code(), Code::kClosed);
  EXPECT_EQ(table.Transact(std::vector<Write>(1)).status.code(), Code::kClosed);
  EXPECT_EQ(table.WriteMany(std::vector<Write>(3))[2].status.code(), Code::kClosed);
  EXPECT_EQ(table.GetMany(std::vector<Table::Key>(3))[2].code(), Code::kClosed);
  EXPECT_EQ(table.Scan({}).code(), Code::kClosed);
  EXPECT_EQ(table.Query({}).code(), Code::kClosed);
  EXPECT_EQ(table.ForEach({}, [](const Entity&) { return true; }).code(), Code::kClosed);
  EXPECT_EQ(table.Count({}).code(), Code::kClosed);
  EXPECT_EQ(table.Aggregate({AggregateOf{}}).code(), Code::kClosed);
  EXPECT_EQ(table.Explain({}).code(), Code::kClosed);
  Code told = Code::kOk;
  table.WriteAsync({.entity = Thing("p", "r", 1)}, {},
                   [&](WriteResult result) { told = result.status.code(); });
  EXPECT_EQ(told, Code::kClosed);
  table.GetAsync("p", "r", [&](Result<Entity> entity) { told = entity.ok() ? Code::kOk : Code::kBusy; });
  EXPECT_EQ(told, Code::kBusy);
  table.QueryAsync({}, [&](const Result<Page>& page) { told = page.code(); });
  EXPECT_EQ(told, Code::kClosed);
  told = Code::kOk;
  raw->ScanAsync({}, [&](const Result<RawPage>& page) { told = page.code(); });
  EXPECT_EQ(told, Code::kClosed);
  std::string value;
  EXPECT_EQ(raw->Get("p", "r", &value).code(), Code::kClosed);
  EXPECT_EQ(raw->Put("p", "r", "v").status.code(), Code::kClosed);
  EXPECT_EQ(raw->GetMany(std::vector<Table::Key>(1))[0].code(), Code::kClosed);
  EXPECT_EQ(raw->Scan({}).code(), Code::kClosed);
  EXPECT_EQ(raw->ForEach({}, [](const RawRowView&) { return true; }).code(), Code::kClosed);
  EXPECT_EQ(database_->CreateTable("New").code(), Code::kClosed);
  EXPECT_EQ(database_->OpenTable("Things").code(), Code::kClosed);
  EXPECT_EQ(database_->DeleteTable("Things").code(), Code::kClosed);
  EXPECT_EQ(database_->ListRanges().code(), Code::kClosed);
  EXPECT_EQ(database_->SplitRange("Things", "q").code(), Code::kClosed);
  EXPECT_EQ(database_->MergeRanges("Things", "q").code(), Code::kClosed);
  EXPECT_EQ(database_->MoveRange("Things", "q", 1).code(), Code::kClosed);
  EXPECT_EQ(database_->Heat().code(), Code::kClosed);
  for (const Status& status : {database_->Barrier(), database_->Flush(), database_->CompactAll(),
                               database_->SetThroughputTargets({})}) {
    EXPECT_EQ(status.code(), Code::kClosed);
  }
  EXPECT_EQ(database_->Verify().code(), Code::kClosed);
  EXPECT_EQ(database_->Scrub().code(), Code::kClosed);
  EXPECT_EQ(database_->Backup(directory_.path() + "/copy").code(), Code::kClosed);
  EXPECT_TRUE(database_->ListTables().empty());
  EXPECT_TRUE(database_->HotPartitions(HeatMetric::kCpu).empty());
  EXPECT_TRUE(database_->Stats().shards.empty());
  EXPECT_TRUE(database_->Stalls().shards.empty());
  EXPECT_TRUE(database_->throughput_targets().IsOff());
  EXPECT_EQ(database_->LoadPerSecond(), HeatValues{});
}

// It would be noticed on a worker only, and by some calls only when they fail.
TEST_P(MisuseTest, ACallbackThatIsEmptyEndsTheProcessAtTheCall) {
  const Table table = MakeTable();
  const RawTable raw = database_->CreateRawTable("Raw").value();
  ASSERT_TRUE(database_->Close().ok());  // So that its threads have ended.
  EXPECT_DEATH(table.WriteAsync({}, {}, {}), "done != nullptr");
  EXPECT_DEATH(table.TransactAsync({}, {}, {}), "done != nullptr");
  EXPECT_DEATH(table.GetAsync("p", "r", {}), "done != nullptr");
  EXPECT_DEATH(table.QueryAsync({}, {}), "done != nullptr");
  EXPECT_DEATH((void)table.ForEach({}, {}), "visit != nullptr");
  EXPECT_DEATH(raw.ApplyAsync({}, {}, {}), "done != nullptr");
  EXPECT_DEATH(raw.GetAsync("p", "r", {}), "done != nullptr");
  EXPECT_DEATH(raw.ScanAsync({}, {}), "done != nullptr");
  EXPECT_DEATH((void)raw.ForEach({}, {}), "visit != nullptr");
}

// It runs on the thread that made the call, so what it throws can be caught there.
TEST_P(MisuseTest, WhatAVisitThrowsLeavesTheCallAndDoesNoHarm) {
  const Table table = MakeTable();
  const RawTable raw = database_->CreateRawTable("Raw").value();
  ASSERT_TRUE(table.Insert(Thing("p", "r", 1)).ok());
  ASSERT_TRUE(raw.Put("p", "r", "v").ok());
  EXPECT_THROW((void)table.ForEach({}, [](const Entity&) -> bool { throw 1; }), int);
  EXPECT_THROW((void)raw.ForEach({}, [](const RawRowView&) -> bool { throw 1; }), int);
  EXPECT_EQ(*table.Count({}), 1u);
  EXPECT_TRUE(raw.Scan({}).ok());
  Reopen();
}

// What a child found, as bits of its exit code.
enum ChildFinding { kWriteRan = 1, kReadRan = 2, kCloseRan = 4 };

TEST_P(MisuseTest, AChildOfForkHasNoStore) {
  const Table table = MakeTable();
  ASSERT_TRUE(table.Insert(Thing("p", "parent", 1)).ok());
  int gate[2];
  ASSERT_EQ(pipe(gate), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    int found = 0;
    if (table.Insert(Thing("p", "child", 1)).status.code() != Code::kClosed) found |= kWriteRan;
    if (table.Get("p", "parent").code() != Code::kClosed) found |= kReadRan;
    if (database_->Close().code() != Code::kClosed) found |= kCloseRan;
    database_.reset();  // Waits for no thread: there is none.
    char word = 0;
    close(gate[1]);
    (void)!read(gate[0], &word, 1);  // Until the parent has opened the store anew.
    _exit(found);
  }
  close(gate[0]);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(table.Insert(Thing("p", std::to_string(i), i)).ok());
  // The child does not hold the lock.
  Reopen();
  EXPECT_EQ(*database_->OpenTable("Things")->Count({}), 21u);
  close(gate[1]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_P(MisuseTest, ACallbackCannotOpenAStore) {
  const Table table = MakeTable();
  Options options = OptionsOf();
  options.directory = directory_.path() + "/other";
  Waiter answered;
  Code code = Code::kOk;
  table.WriteAsync({.entity = Thing("p", "r", 1)}, {}, [&](WriteResult) {
    code = Database::Open(options).code();
    answered.Wake();
  });
  answered.BlockUntilWoken();
  EXPECT_EQ(code, Code::kInvalidArgument);
}

TEST_P(MisuseTest, SplitsAreBounded) {
  TableOptions options;
  for (int i = 0; i < 4097; ++i) options.split_partition_keys.push_back("p" + std::to_string(10'000 + i));
  const Result<Table> made = database_->CreateTable("Split", options);
  EXPECT_EQ(made.code(), Code::kResourceExhausted);
  EXPECT_THAT(made.status().message(), HasSubstr("4096 are allowed"));
  EXPECT_EQ(database_->OpenTable("Split").code(), Code::kNotFound);
  const std::string long_key(5000, 'k');
  EXPECT_EQ(database_->CreateRawTable("Raw", {.split_partition_keys = {long_key}}).code(),
            Code::kInvalidArgument);
  ASSERT_TRUE(database_->CreateRawTable("Raw").ok());
  EXPECT_EQ(database_->SplitRange("Raw", long_key).code(), Code::kInvalidArgument);
}

TEST_P(MisuseTest, ADirectoryOfDirectoriesIsNotEmpty) {
  ASSERT_TRUE(database_->Backup(directory_.path() + "/copy").ok());
  const std::string above = directory_.path() + "/above";
  std::filesystem::create_directories(above + "/customers");
  Options options = OptionsOf();
  options.directory = above;
  const Result<std::unique_ptr<Database>> opened = Database::Open(options);
  EXPECT_EQ(opened.code(), Code::kInvalidArgument);
  EXPECT_THAT(opened.status().message(), HasSubstr("'customers'"));
  const Result<BackupReport> restored = Database::Restore(directory_.path() + "/copy", above);
  EXPECT_EQ(restored.code(), Code::kAlreadyExists);
  EXPECT_THAT(restored.status().message(), HasSubstr("'customers'"));
  // As a new file system has it.
  std::filesystem::rename(above + "/customers", above + "/lost+found");
  EXPECT_TRUE(Database::Open(options).ok());
}

// ---- Many at once.

TEST_P(MisuseTest, ManyWritesAndReadsAreMadeInTurns) {
  constexpr size_t kRows = 2'500;
  const Table table = MakeTable();
  const RawTable raw = *database_->CreateRawTable("Raw");
  std::vector<Write> writes;
  std::vector<Table::Key> keys;
  for (size_t i = 0; i < kRows; ++i) {
    const std::string row = std::to_string(i);
    keys.push_back({"p" + std::to_string(i % 7), row});
    writes.push_back({.action = WriteAction::kInsert, .entity = Thing(keys.back().partition_key, row, 5)});
    ASSERT_TRUE(raw.Put(keys.back().partition_key, row, row, {Durability::kProcess}).ok());
  }
  writes[2'000] = writes[3];
  const std::vector<WriteResult> results = table.WriteMany(writes, {Durability::kProcess});
  for (size_t i = 0; i < kRows; ++i) {
    EXPECT_EQ(results[i].status.code(), i == 2'000 ? Code::kAlreadyExists : Code::kOk) << i;
  }
  keys[7] = keys[2'400];
  Reopen();
  ASSERT_TRUE(database_->Flush().ok());
  Reopen();  // Nothing is cached.
  const std::vector<Result<Entity>> entities = database_->OpenTable("Things")->GetMany(keys);
  const std::vector<Result<std::string>> values = database_->OpenRawTable("Raw")->GetMany(keys);
  for (size_t i = 0; i < kRows; ++i) {
    ASSERT_EQ(entities[i].ok(), i != 2'000) << i;
    if (i != 2'000) EXPECT_EQ(entities[i]->row_key(), keys[i].row_key);
    ASSERT_TRUE(values[i].ok());
    EXPECT_EQ(*values[i], keys[i].row_key);
  }
}

}  // namespace
}  // namespace partita
