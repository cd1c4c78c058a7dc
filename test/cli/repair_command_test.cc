#include <algorithm>
#include <fstream>
#include <map>

#include "test/cli/command_fixture.h"

// repair and --degraded as a user calls them. covers: F39 F53

namespace partita {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

namespace fs = std::filesystem;

class RepairCommandTest : public CommandTest {
 protected:
  void FillStore() {
    ASSERT_EQ(Run({"create-table", "Orders"}).code, ExitCode::kOk);
    for (const char* row : {"1", "2", "3"}) {
      const std::string entity =
          R"({"PartitionKey":"anna","RowKey":")" + std::string(row) + R"(","Total":12.5})";
      ASSERT_EQ(Run({"put", "Orders", entity}).code, ExitCode::kOk);
    }
  }
  // Another bit in a byte of the file.
  void Flip(const std::string& name, std::streamoff offset) const {
    std::fstream file(store_ + "/" + name, std::ios::in | std::ios::out | std::ios::binary);
    ASSERT_TRUE(file.is_open()) << name;
    file.seekg(offset);
    const int byte = file.get();
    file.seekp(offset);
    file.put(static_cast<char>(byte ^ 4));
  }
  std::map<std::string, std::string> AllFiles() const {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(store_)) {
      if (entry.is_regular_file()) files[entry.path().string()] = Read(entry.path().string());
    }
    return files;
  }
  std::string SideDirectory() const {
    for (const auto& entry : fs::directory_iterator(store_)) {
      if (entry.path().filename().string().starts_with("damaged-")) return entry.path().string();
    }
    return "";
  }
};

TEST_F(RepairCommandTest, ListsFirstThenRepairsAndKeepsTheOldBytes) {
  FillStore();
  const CommandOutcome sound = Run({"repair"});
  EXPECT_EQ(sound.code, ExitCode::kOk) << sound.out << sound.err;
  EXPECT_THAT(sound.out, AllOf(HasSubstr("what a repair would find"), HasSubstr("nothing to repair")));
  const CommandOutcome needless = Run({"repair", "--apply"});
  EXPECT_EQ(needless.code, ExitCode::kOk) << needless.out << needless.err;
  EXPECT_THAT(needless.out,
              AllOf(HasSubstr("repair of "), Not(HasSubstr("would find")), HasSubstr("nothing to repair")));

  Flip("meta/shard-1-0", 60);
  EXPECT_NE(Run({"scan", "Orders"}).code, ExitCode::kOk);
  const std::string damaged_bytes = Read(store_ + "/meta/shard-1-0");
  const auto before = AllFiles();
  const CommandOutcome listed = Run({"repair"});
  EXPECT_EQ(listed.code, ExitCode::kFindings) << listed.out << listed.err;
  EXPECT_THAT(listed.out, AllOf(HasSubstr("meta/shard-1-0"), HasSubstr("nothing was changed")));
  EXPECT_TRUE(AllFiles() == before);

  const CommandOutcome repaired = Run({"repair", "--apply"});
  EXPECT_EQ(repaired.code, ExitCode::kOk) << repaired.out << repaired.err;
  EXPECT_THAT(repaired.out, AllOf(HasSubstr("repaired: the store opens"), Not(HasSubstr("would find"))));
  ASSERT_NE(SideDirectory(), "");
  EXPECT_EQ(Read(SideDirectory() + "/meta/shard-1-0"), damaged_bytes);
  EXPECT_THAT(Read(SideDirectory() + "/FOUND.txt"), HasSubstr("meta/shard-1-0"));
  EXPECT_THAT(Run({"scan", "Orders", "--count"}).out, HasSubstr("3"));
  EXPECT_THAT(Run({"get", "Orders", "anna", "2"}).out, HasSubstr("12.5"));
  EXPECT_EQ(Run({"repair"}).code, ExitCode::kOk);
}

TEST_F(RepairCommandTest, ALostCatalogComesBackUnderOtherNames) {
  FillStore();
  fs::remove(store_ + "/meta/catalog");
  EXPECT_THAT(Run({"repair"}).out,
              HasSubstr("whosesoever they were, as tables of account devstoreaccount1 "));
  EXPECT_THAT(Run({"--account", "contoso", "repair"}).out, HasSubstr("as tables of account contoso "));
  EXPECT_EQ(Run({"repair", "--apply"}).code, ExitCode::kOk);
  EXPECT_THAT(Run({"tables"}).out, HasSubstr("recovered000001"));
  EXPECT_THAT(Run({"get", "recovered000001", "anna", "2"}).out, HasSubstr("12.5"));
}

// Interrupted at each place in turn, until it comes to its end.
TEST_F(RepairCommandTest, ARepairThatFailsStillListsAsJsonWhatItFound) {
  FillStore();
  Flip("meta/shard-1-0", 60);
  bool listed = false;
  CommandOutcome outcome{.code = ExitCode::kFailed};
  for (uint64_t asked = 1; outcome.code == ExitCode::kFailed && asked < 200; ++asked) {
    outcome = Run({"repair", "--apply", "--json"}, asked);
    listed = listed ||
             (outcome.code == ExitCode::kFailed && outcome.out.find("\"damaged\":[{") != std::string::npos);
  }
  EXPECT_EQ(outcome.code, ExitCode::kOk) << outcome.err;
  EXPECT_TRUE(listed);
}

TEST_F(RepairCommandTest, AnswersAsJsonAndRefusesContradictions) {
  FillStore();
  Flip("meta/catalog", 60);
  const CommandOutcome listed = Run({"repair", "--json"});
  EXPECT_EQ(listed.code, ExitCode::kFindings);
  EXPECT_THAT(listed.out, AllOf(HasSubstr("\"damaged_files\":1,"), HasSubstr("\"damaged\":[{\"file\""),
                                HasSubstr("meta/catalog")));
  EXPECT_EQ(Run({"repair", "--apply", "--read-only"}).code, ExitCode::kUsage);
  store_ = directory_ + "/nowhere";
  EXPECT_EQ(Run({"repair"}).code, ExitCode::kFailed);
  EXPECT_THAT(RunAsGiven({"repair", "--help"}).out, AllOf(HasSubstr("--apply"), HasSubstr("damaged-TIME")));
}

TEST_F(RepairCommandTest, ADegradedOpenServesWhatIsSound) {
  FillStore();
  // The only shard's log: nothing of the table is served, but the store opens.
  fs::remove_all(store_ + "/log-1-0");
  const CommandOutcome refused = Run({"query", "Orders"});
  EXPECT_NE(refused.code, ExitCode::kOk);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("--degraded"), HasSubstr("Restore a backup"),
                                 HasSubstr("since the store was last open for writing")));
  const CommandOutcome tables = Run({"tables", "--degraded"});
  EXPECT_EQ(tables.code, ExitCode::kOk) << tables.err;
  EXPECT_THAT(tables.out, HasSubstr("Orders"));
  const CommandOutcome query = Run({"query", "Orders", "--degraded"});
  EXPECT_EQ(query.code, ExitCode::kFindings);
  EXPECT_THAT(query.err, AllOf(HasSubstr("log-1-0"), HasSubstr("partita repair")));
}

// Without its catalog a store does not open in any way.
TEST_F(RepairCommandTest, OfADamagedCatalogNoDegradedOpenIsAdvised) {
  FillStore();
  Flip("meta/catalog", 60);
  for (const bool degraded : {false, true}) {
    const CommandOutcome tables = degraded ? Run({"tables", "--degraded"}) : Run({"tables"});
    EXPECT_EQ(tables.code, ExitCode::kFindings);
    EXPECT_THAT(tables.err, AllOf(HasSubstr("Restore a backup"), HasSubstr("'partita repair'"),
                                  Not(HasSubstr("degraded"))));
  }
}

TEST_F(RepairCommandTest, StatisticsCountNoShardThatIsNotOpen) {
  FillStore();
  fs::remove_all(store_ + "/log-1-0");
  const CommandOutcome stats = Run({"stats", "--degraded", "--json"});
  EXPECT_EQ(stats.code, ExitCode::kFindings) << stats.err;
  EXPECT_THAT(stats.out,
              AllOf(HasSubstr("\"shards_open\":0"), HasSubstr("\"shards_damaged\":1"), HasSubstr("log-1-0")));
}

// Who was killed behind the commit has told nobody.
TEST_F(RepairCommandTest, ASoundStorePointsToTheListOfAnEarlierRepair) {
  FillStore();
  Flip("meta/shard-1-0", 60);
  const CommandOutcome repaired = Run({"repair", "--apply"});
  ASSERT_EQ(repaired.code, ExitCode::kOk) << repaired.err;
  EXPECT_LT(repaired.out.find("meta/shard-1-0"), repaired.out.find("repairing; "));
  const CommandOutcome sound = Run({"repair"});
  EXPECT_EQ(sound.code, ExitCode::kOk);
  EXPECT_THAT(sound.err, HasSubstr(SideDirectory() + "/FOUND.txt"));
}

// covers: F35 F39. Its directory is gone, or those of catalog and manifests.
TEST_F(RepairCommandTest, AStoreThatLacksADirectoryIsRepairedAllTheSame) {
  FillStore();
  fs::remove_all(store_ + "/tables");
  EXPECT_THAT(Run({"scan", "Orders", "--count", "--read-only"}).err,
              HasSubstr("the directory tables is missing"));
  const CommandOutcome listed = Run({"repair"});
  EXPECT_EQ(listed.code, ExitCode::kFindings) << listed.err;
  EXPECT_FALSE(fs::exists(store_ + "/tables"));
  EXPECT_EQ(Run({"repair", "--apply"}).code, ExitCode::kOk);
  EXPECT_EQ(Run({"scan", "Orders", "--count"}).out, "3\n");

  // What manifests do not name nobody misses.
  ASSERT_EQ(Run({"backup", directory_ + "/backup"}).code, ExitCode::kOk);
  fs::remove_all(store_ + "/tables");
  const CommandOutcome scan = Run({"scan", "Orders", "--count"});
  EXPECT_EQ(scan.code, ExitCode::kFindings) << scan.out;
  EXPECT_THAT(scan.err, HasSubstr(".sst"));
}

TEST_F(RepairCommandTest, AStoreWithoutItsMetaDirectoryIsFoundByItsLogs) {
  FillStore();
  fs::remove_all(store_ + "/meta");
  const CommandOutcome repaired = Run({"repair", "--apply"});
  EXPECT_EQ(repaired.code, ExitCode::kOk) << repaired.out << repaired.err;
  EXPECT_THAT(Run({"get", "recovered000001", "anna", "2"}).out, HasSubstr("12.5"));
}

TEST_F(RepairCommandTest, DamageIsSkippedWhenAskedAndAlwaysTold) {
  {
    Options options = SmallOptions();
    options.durability = Durability::kMemory;
    auto database = Database::Open(options);
    ASSERT_TRUE(database.ok()) << database.status().ToString();
    auto table = (*database)->CreateTable("Orders");
    ASSERT_TRUE(table.ok());
    for (int i = 0; i < 2000; ++i) {
      Entity entity("anna", "r" + std::to_string(10000 + i));
      entity.Set("Note", std::string(100, static_cast<char>('a' + i % 26)));
      ASSERT_TRUE(table->Insert(entity).ok());
    }
    ASSERT_TRUE((*database)->CompactAll().ok());
    ASSERT_TRUE((*database)->Close().ok());
  }
  for (const auto& entry : fs::directory_iterator(store_ + "/tables")) {
    Flip("tables/" + entry.path().filename().string(), 20'000);
  }
  const std::string out = directory_ + "/out.jsonl";
  EXPECT_NE(Run({"export", "--table", "Orders", "-o", out}).code, ExitCode::kOk);
  EXPECT_FALSE(fs::exists(out));
  const CommandOutcome exported = Run({"export", "--table", "Orders", "-o", out, "--skip-damage"});
  EXPECT_EQ(exported.code, ExitCode::kFindings) << exported.err;
  EXPECT_THAT(exported.err, AllOf(HasSubstr("skipped: "), HasSubstr("'anna' 'r1"), HasSubstr(".sst")));
  const std::string lines = Read(out);
  const auto count = std::count(lines.begin(), lines.end(), '\n');
  EXPECT_GT(count, 500);
  EXPECT_LT(count, 2000);
  EXPECT_NE(Run({"query", "Orders", "--top", "0"}).code, ExitCode::kOk);
  const CommandOutcome queried = Run({"query", "Orders", "--top", "0", "--skip-damage"});
  EXPECT_EQ(queried.code, ExitCode::kFindings);
  EXPECT_EQ(std::count(queried.out.begin(), queried.out.end(), '\n'), count);
  EXPECT_THAT(queried.err, HasSubstr("skipped: "));
  EXPECT_EQ(Run({"query", "Orders", "--count", "--skip-damage"}).code, ExitCode::kUsage);

  auto database = Database::Open(SmallOptions());
  ASSERT_TRUE(database.ok()) << database.status().ToString();
  auto table = (*database)->OpenTable("Orders");
  ASSERT_TRUE(table.ok());
  QueryOptions query;
  query.skip_damage = true;
  EXPECT_EQ(table->ForEach(query, [](Entity) { return true; }).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace partita
