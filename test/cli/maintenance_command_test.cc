#include <fstream>

#include "test/cli/command_fixture.h"

// backup, restore, scrub and --read-only as a user calls them. covers: F50 F64 F68

namespace partita {
namespace {

using testing::HasSubstr;

class MaintenanceCommandTest : public CommandTest {
 protected:
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
  EXPECT_EQ(Run({"backup", backup}).code, ExitCode::kFindings);  // It exists.

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

TEST_F(MaintenanceCommandTest, AScrubFindsWhatRotsAndSaysSoInItsExitCode) {
  FillStore();
  const CommandOutcome sound = Run({"scrub", "--rate", "100M"});
  EXPECT_EQ(sound.code, ExitCode::kOk) << sound.err;
  EXPECT_THAT(sound.out, HasSubstr("everything is sound"));
  EXPECT_EQ(Run({"scrub", "--within", "soon"}).code, ExitCode::kUsage);

  ASSERT_EQ(Run({"backup", directory_ + "/backup", "--copy"}).code, ExitCode::kOk);
  store_ = directory_ + "/backup";
  for (const auto& table : std::filesystem::directory_iterator(store_ + "/tables")) {
    std::fstream file(table.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(100);
    file.put('\x5a');
  }
  const CommandOutcome damaged = Run({"scrub", "--read-only"});
  EXPECT_EQ(damaged.code, ExitCode::kFindings) << damaged.out << damaged.err;
  EXPECT_THAT(damaged.out, HasSubstr(".sst"));
}

}  // namespace
}  // namespace partita
