#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "test/cli/command_fixture.h"

// backup, restore, scrub and --read-only as a user calls them. covers: F50 F64 F68

namespace partita {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class MaintenanceCommandTest : public CommandTest {
 protected:
  static void DamageTablesOf(const std::string& directory) {
    for (const auto& table : std::filesystem::directory_iterator(directory + "/tables")) {
      std::fstream file(table.path(), std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(100);
      file.put('\x5a');
    }
  }
  void FillStore() {
    ASSERT_EQ(Run({"create-table", "Orders"}).code, ExitCode::kOk);
    for (const char* row : {"1", "2", "3"}) {
      const std::string entity =
          R"({"PartitionKey":"anna","RowKey":")" + std::string(row) + R"(","Total":12.5})";
      ASSERT_EQ(Run({"put", "Orders", entity}).code, ExitCode::kOk);
    }
  }
};

TEST_F(MaintenanceCommandTest, ABackupIsMadeAndRestoredAndReadWithoutBeingChanged) {
  FillStore();
  const std::string backup = directory_ + "/backup";
  const CommandOutcome made = Run({"backup", backup, "--copy"});
  ASSERT_EQ(made.code, ExitCode::kOk) << made.err;
  EXPECT_THAT(made.out, HasSubstr("entries"));
  EXPECT_EQ(Run({"backup", backup}).code, ExitCode::kFailed);  // It exists.

  store_ = backup;
  const CommandOutcome refused = Run({"scan", "Orders", "--count"});
  EXPECT_NE(refused.code, ExitCode::kOk);
  EXPECT_THAT(refused.err, HasSubstr("is a backup"));
  const CommandOutcome read = Run({"scan", "Orders", "--count", "--read-only"});
  EXPECT_EQ(read.code, ExitCode::kOk) << read.err;
  EXPECT_THAT(read.out, HasSubstr("3"));
  EXPECT_NE(Run({"delete", "Orders", "anna", "1", "--read-only"}).code, ExitCode::kOk);

  store_ = directory_ + "/restored";
  const CommandOutcome restored = Run({"restore", backup});
  ASSERT_EQ(restored.code, ExitCode::kOk) << restored.err;
  EXPECT_EQ(Run({"delete", "Orders", "anna", "1"}).code, ExitCode::kOk);
  EXPECT_THAT(Run({"scan", "Orders", "--count"}).out, HasSubstr("2"));
  EXPECT_NE(Run({"restore", backup}).code, ExitCode::kOk);  // There is a store already.
}

// It grows under the name that is to be taken from it.
TEST_F(MaintenanceCommandTest, ABackupRemovesNoneThatBearsTheNameItGrowsUnder) {
  FillStore();
  const std::string backup = directory_ + "/backup";
  ASSERT_EQ(Run({"backup", backup + ".partial"}).code, ExitCode::kOk);
  const CommandOutcome refused = Run({"backup", backup});
  EXPECT_EQ(refused.code, ExitCode::kFailed);
  EXPECT_THAT(refused.err, AllOf(HasSubstr(backup + ".partial"), HasSubstr("complete backup")));
  EXPECT_FALSE(std::filesystem::exists(backup));
  const std::string store = store_;
  store_ = directory_ + "/restored";
  EXPECT_EQ(Run({"restore", backup + ".partial"}).code, ExitCode::kOk);

  // Nor a store, which has no mark of a backup.
  std::filesystem::rename(store_, directory_ + "/other.partial");
  const auto files = [&] {
    return std::distance(std::filesystem::recursive_directory_iterator(directory_ + "/other.partial"), {});
  };
  const auto before = files();
  store_ = store;
  const CommandOutcome beside = Run({"backup", directory_ + "/other"});
  EXPECT_EQ(beside.code, ExitCode::kFailed);
  EXPECT_THAT(beside.err, HasSubstr("other.partial"));
  EXPECT_EQ(files(), before);
}

TEST_F(MaintenanceCommandTest, ABackupThatWasKilledBeforeItsMarkIsInNobodysWay) {
  FillStore();
  const std::string partial = directory_ + "/backup.partial";
  std::filesystem::create_directories(partial + "/meta");
  Write("backup.partial/LOCK", "");
  Write("backup.partial/meta/unfinished.new-1", "half");
  const CommandOutcome made = Run({"backup", directory_ + "/backup"});
  EXPECT_EQ(made.code, ExitCode::kOk) << made.err;
  EXPECT_FALSE(std::filesystem::exists(partial));
  store_ = directory_ + "/restored";
  EXPECT_EQ(Run({"restore", directory_ + "/backup"}).code, ExitCode::kOk);
}

TEST_F(MaintenanceCommandTest, OfTwoBackupsToOneNameTheFirstIsMade) {
  FillStore();
  auto database = Database::Open(SmallOptions());
  ASSERT_TRUE(database.ok()) << database.status().ToString();
  const std::string backup = directory_ + "/backup";
  Status second;
  BackupOptions options;
  options.sharing = FileSharing::kNever;
  options.pace.progress = [&](uint64_t, uint64_t) {
    if (second.ok()) std::thread([&] { second = (*database)->Backup(backup).status(); }).join();
    return true;
  };
  const Result<BackupReport> first = (*database)->Backup(backup, options);
  EXPECT_TRUE(first.ok()) << first.status().ToString();
  EXPECT_EQ(second.code(), Code::kBusy) << second.ToString();
  EXPECT_THAT(second.message(), HasSubstr(backup + ".partial"));
  EXPECT_TRUE((*database)->Close().ok());
  store_ = directory_ + "/restored";
  EXPECT_EQ(Run({"restore", backup}).code, ExitCode::kOk);
}

TEST_F(MaintenanceCommandTest, ADamagedEarlierBackupIsToldAndHarmsNoLaterOne) {
  FillStore();
  const std::string monday = directory_ + "/monday", tuesday = directory_ + "/tuesday";
  ASSERT_EQ(Run({"backup", monday, "--copy"}).code, ExitCode::kOk);
  DamageTablesOf(monday);
  const CommandOutcome made = Run({"backup", tuesday, "--base", monday});
  EXPECT_EQ(made.code, ExitCode::kFindings) << made.err;
  EXPECT_THAT(made.err, AllOf(HasSubstr(monday), HasSubstr(".sst"), HasSubstr("complete")));
  store_ = directory_ + "/restored";
  EXPECT_EQ(Run({"restore", tuesday}).code, ExitCode::kOk);
}

// Exit code 1 is for backups that are there.
TEST_F(MaintenanceCommandTest, WhateverKeepsABackupFromBeingMadeIsAFailure) {
  FillStore();
  const CommandOutcome no_parent = Run({"backup", directory_ + "/backups/monday"});
  EXPECT_EQ(no_parent.code, ExitCode::kFailed);
  EXPECT_THAT(no_parent.err, HasSubstr("there is no directory '" + directory_ + "/backups'; make it first"));
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/backups"));
  EXPECT_EQ(Run({"backup", directory_ + "/b", "--base", directory_ + "/nowhere"}).code, ExitCode::kFailed);

  ASSERT_EQ(Run({"backup", directory_ + "/sound"}).code, ExitCode::kOk);  // Flushes.
  DamageTablesOf(store_);
  EXPECT_EQ(Run({"backup", directory_ + "/damaged"}).code, ExitCode::kFailed);
  std::filesystem::resize_file(store_ + "/meta/catalog", 10);
  EXPECT_EQ(Run({"backup", directory_ + "/damaged"}).code, ExitCode::kFailed);
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/damaged"));
}

// It is neither repaired nor restored.
TEST_F(MaintenanceCommandTest, ADamagedBackupIsNoDeadEnd) {
  FillStore();
  const std::string store = store_, backup = directory_ + "/backup";
  ASSERT_EQ(Run({"backup", backup, "--copy"}).code, ExitCode::kOk);
  const auto expect_way_out = [&] {
    const auto way_out = HasSubstr("partita export --skip-damage --read-only --degraded --data " + backup);
    store_ = directory_ + "/restored";
    const CommandOutcome refused = Run({"restore", backup});
    EXPECT_EQ(refused.code, ExitCode::kFindings);
    EXPECT_THAT(refused.err, way_out);
    store_ = backup;
    const CommandOutcome listed = Run({"repair"});
    EXPECT_EQ(listed.code, ExitCode::kFindings);
    EXPECT_THAT(listed.out, AllOf(way_out, testing::Not(HasSubstr("--apply repairs"))));
    const CommandOutcome exported =
        Run({"export", "--skip-damage", "--read-only", "--degraded", "--table", "Orders"});
    EXPECT_EQ(exported.code, ExitCode::kFindings) << exported.err;
    EXPECT_THAT(exported.err, HasSubstr("skipped"));
  };
  DamageTablesOf(backup);
  expect_way_out();
  const std::string manifest = backup + "/meta/shard-1-0";
  std::filesystem::resize_file(manifest, std::filesystem::file_size(manifest) - 1);
  expect_way_out();
}

TEST_F(MaintenanceCommandTest, ARestoreOfWhatIsNoBackupMakesNoDirectory) {
  FillStore();
  const std::string store = store_;
  store_ = directory_ + "/restored";
  const CommandOutcome refused = Run({"restore", store});
  EXPECT_EQ(refused.code, ExitCode::kUsage);
  EXPECT_THAT(refused.err, AllOf(HasSubstr(store), HasSubstr("no backup")));
  EXPECT_FALSE(std::filesystem::exists(store_));
}

TEST_F(MaintenanceCommandTest, ARestoreToWhereSomethingIsLeavesThatAsItWas) {
  FillStore();
  const std::string backup = directory_ + "/backup";
  ASSERT_EQ(Run({"backup", backup}).code, ExitCode::kOk);
  store_ = directory_ + "/letters";
  std::filesystem::create_directory(store_);
  Write("letters/letter.txt", "dear");
  const CommandOutcome refused = Run({"restore", backup});
  EXPECT_EQ(refused.code, ExitCode::kFailed) << "1 would tell of damage";
  EXPECT_THAT(refused.err, HasSubstr("it holds 'letter.txt'"));
  EXPECT_FALSE(std::filesystem::exists(store_ + "/LOCK"));
}

TEST_F(MaintenanceCommandTest, ARateAtWhichNothingWouldEndIsRefused) {
  FillStore();
  for (const char* rate : {"0", "0.5", "0M", "50", "63K"}) {
    const CommandOutcome refused = Run({"scrub", "--rate", rate});
    EXPECT_EQ(refused.code, ExitCode::kUsage) << rate;
    EXPECT_THAT(refused.err, AllOf(HasSubstr("--rate"), HasSubstr("64K or more a second, such as 50M")));
  }
  const CommandOutcome backup = Run({"backup", directory_ + "/monday", "--rate", "0"});
  EXPECT_EQ(backup.code, ExitCode::kUsage);
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/monday"));
}

TEST_F(MaintenanceCommandTest, AScrubFindsWhatRotsAndSaysSoInItsExitCode) {
  FillStore();
  const CommandOutcome sound = Run({"scrub", "--rate", "100M"});
  EXPECT_EQ(sound.code, ExitCode::kOk) << sound.err;
  EXPECT_THAT(sound.out, HasSubstr("everything is sound"));
  EXPECT_EQ(Run({"scrub", "--within", "soon"}).code, ExitCode::kUsage);

  ASSERT_EQ(Run({"backup", directory_ + "/backup", "--copy"}).code, ExitCode::kOk);
  store_ = directory_ + "/backup";
  DamageTablesOf(store_);
  const CommandOutcome damaged = Run({"scrub", "--read-only"});
  EXPECT_EQ(damaged.code, ExitCode::kFindings) << damaged.out << damaged.err;
  EXPECT_THAT(damaged.out, HasSubstr(".sst"));
}

// Its opening is the last to see it. covers: F33 F80
TEST_F(MaintenanceCommandTest, WhicheverCommandCutsATornLogTellsOfIt) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"scrub"}, {"verify"}, {"tables"}, {"backup", directory_ + "/monday"}}) {
    store_ = directory_ + "/" + words[0];
    ASSERT_EQ(Run({"create-table", "Orders"}).code, ExitCode::kOk);
    DamageLastFrame();
    const CommandOutcome told = Run(words);
    EXPECT_EQ(told.code, ExitCode::kOk) << told.err;
    EXPECT_THAT(told.err, HasSubstr("partita: shard 0: 4096 bytes of the log behind position ")) << words[0];
    EXPECT_THAT(Run({"tables"}).err, Not(HasSubstr("position"))) << words[0];
  }
}

}  // namespace
}  // namespace partita
