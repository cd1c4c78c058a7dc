#include "bench/compare/compare_command.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "bench/load/engine.h"
#include "bench/load/load_command.h"
#include "test/support/scratch_directory.h"

namespace partita::bench {
namespace {

// The exit code of `partita-bench compare` with these options, of one round on few rows.
class CompareCommandTest : public testing::Test {
 protected:
  int RunCompare(const std::string& options) {
    CLI::App app("", "partita-bench");
    const CompareCommand command(&app);
    app.parse("compare --rounds 1 --value-bytes 64 --seconds 0.01 --memory 64 --directory " + directory_ +
              "/stores " + options);
    return command.Run();
  }

  ScratchDirectory scratch_;
  const std::string directory_ = scratch_.path();
};

TEST_F(CompareCommandTest, FailsWhereSomethingCouldNotBeMeasured) {
  EXPECT_EQ(RunCompare("--engines partita --workloads read-hot --keys 300"), 0);
  EXPECT_EQ(RunCompare("--engines partita --workloads read-hot scan-100 --keys 50"), 1);
}

TEST_F(CompareCommandTest, AFileThatCannotBeWrittenIsFoundBeforeAnythingRuns) {
  for (const char* option : {"--json ", "--html "}) {
    EXPECT_EQ(RunCompare("--engines partita --workloads read-hot --keys 300 " + std::string(option) +
                         directory_ + "/nowhere/result"),
              1);
    EXPECT_FALSE(std::filesystem::exists(directory_ + "/stores"));
  }
}

TEST_F(CompareCommandTest, AnEngineIsNamedOnce) {
  EXPECT_EQ(RunCompare("--engines partita,partita --workloads read-hot --keys 300"), 1);
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/stores"));
}

TEST_F(CompareCommandTest, OptionsOfThePlainCommandDoNotGoWithIt) {
  CLI::App app("", "partita-bench");
  const LoadCommand plain(&app);
  const CompareCommand command(&app);
  EXPECT_THROW(app.parse("--keys 300 compare --rounds 1"), CLI::ExcludesError);
  app.clear();
  app.parse("compare --keys 300");
  EXPECT_TRUE(command.is_asked_for());
  app.clear();
  app.parse("--keys 300");
  EXPECT_FALSE(command.is_asked_for());
}

TEST_F(CompareCommandTest, WhatAnEngineDoesNotHaveIsNoFailure) {
  if (!IsEngine("leveldb")) GTEST_SKIP() << "built without LevelDB";
  EXPECT_EQ(RunCompare("--engines leveldb --workloads drop --keys 300"), 0);
}

}  // namespace
}  // namespace partita::bench
