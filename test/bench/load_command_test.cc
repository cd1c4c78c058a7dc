#include "bench/load/load_command.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <simdjson.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "test/support/scratch_directory.h"

namespace partita::bench {
namespace {

// Whether the file system tells when a directory was made.
bool KeepsBirths(const std::string& directory) {
  struct statx info {};
  return statx(AT_FDCWD, directory.c_str(), 0, STATX_BTIME, &info) == 0 && (info.stx_mask & STATX_BTIME) != 0;
}

// `partita-bench` with options, on few rows.
class LoadCommandTest : public testing::Test {
 protected:
  int RunLoad(const std::string& options) {
    CLI::App app("", "partita-bench");
    const LoadCommand command(&app);
    app.parse("--value-bytes 64 --memory 64 --directory " + directory_ + "/stores " + options);
    return command.Run();
  }
  size_t MeasurementsIn(const std::string& json) {
    simdjson::dom::parser parser;
    simdjson::dom::element document;
    EXPECT_EQ(parser.parse(json).get(document), simdjson::SUCCESS) << json;
    return document.get_array().size();
  }
  size_t MeasurementsInFile() {
    std::ostringstream text;
    text << std::ifstream(JsonPath()).rdbuf();
    return MeasurementsIn(text.str());
  }

  std::string JsonPath() const { return directory_ + "/result.json"; }
  bool HasStores() const { return std::filesystem::exists(directory_ + "/stores"); }

  ScratchDirectory scratch_;
  const std::string directory_ = scratch_.path();
};

TEST_F(LoadCommandTest, AMisspeltNameIsRefusedBeforeAnythingRuns) {
  EXPECT_EQ(RunLoad("--seconds 0.01 --keep --workload read-hot,read-hto"), 1);
  EXPECT_EQ(RunLoad("--seconds 0.01 --keep --workload read-hot --engine abacus"), 1);
  EXPECT_EQ(RunLoad("--seconds 0.01 --keep --workload read-hot --json " + directory_ + "/nowhere/x"), 1);
  EXPECT_FALSE(HasStores());
}

TEST_F(LoadCommandTest, WhatCannotBeDoneTakesNothingOfTheRest) {
  // Recovery must come first: not supported here.
  EXPECT_EQ(RunLoad("--seconds 0.01 --keys 300 --workload read-hot,recovery,fill-seq --json " + JsonPath()),
            0);
  EXPECT_EQ(MeasurementsInFile(), 2u);
  EXPECT_FALSE(HasStores());
  EXPECT_EQ(RunLoad("--seconds 0.01 --keys 50 --workload read-hot,scan-100,fill-seq --json " + JsonPath()),
            1);
  EXPECT_EQ(MeasurementsInFile(), 1u);
}

TEST_F(LoadCommandTest, StandardOutputHasTheJsonAlone) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(RunLoad("--seconds 0.01 --keys 300 --workload read-hot,fill-seq --json -"), 0);
  EXPECT_EQ(MeasurementsIn(testing::internal::GetCapturedStdout()), 2u);
}

TEST_F(LoadCommandTest, FilesOfOthersStayWhatItMadeBesideThemGoes) {
  const std::string stores = directory_ + "/stores";
  std::filesystem::create_directories(stores + "/partita");
  std::ofstream(stores + "/partita/mine") << "kept";
  EXPECT_EQ(RunLoad("--keys 300 --workload fill-seq"), 1);
  EXPECT_TRUE(std::filesystem::exists(stores + "/partita/mine"));
  std::filesystem::rename(stores + "/partita", stores + "/other");
  EXPECT_EQ(RunLoad("--keys 300 --workload fill-seq"), 0);
  EXPECT_TRUE(std::filesystem::exists(stores + "/other/mine"));
  EXPECT_FALSE(std::filesystem::exists(stores + "/partita"));
  EXPECT_EQ(RunLoad("--keys 300 --workload fill-seq --keep"), 0);
  EXPECT_EQ(RunLoad("--keys 300 --workload fill-seq"), 0);  // Over what an earlier run kept.
  EXPECT_TRUE(std::filesystem::exists(stores + "/partita"));
  std::filesystem::remove_all(stores + "/partita");
  std::filesystem::create_directories(stores + "/partita");  // Perhaps with the number of the one before.
  if (!KeepsBirths(stores)) {
    std::filesystem::rename(stores + "/partita", stores + "/keeps the number");
    std::filesystem::create_directories(stores + "/partita");
  }
  std::ofstream(stores + "/partita/mine") << "put in its place";
  EXPECT_EQ(RunLoad("--keys 300 --workload fill-seq"), 1);
  EXPECT_TRUE(std::filesystem::exists(stores + "/partita/mine"));
}

TEST_F(LoadCommandTest, ASignalEndsItAndItsStoresGo) {
  ASSERT_EQ(mkfifo(JsonPath().c_str(), 0600), 0);
  const int results = open(JsonPath().c_str(), O_RDWR);
  const pid_t command = fork();
  if (command == 0) {
    _exit(RunLoad("--keys 300 --seconds 1000 --workload fill-seq,read-hot --json " + JsonPath()));
  }
  char byte;
  EXPECT_EQ(read(results, &byte, 1), 1);  // Waits for the end of fill-seq.
  EXPECT_TRUE(HasStores());
  kill(command, SIGTERM);
  int status = 0;
  waitpid(command, &status, 0);
  close(results);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 128 + SIGTERM);
  EXPECT_FALSE(HasStores());
}

}  // namespace
}  // namespace partita::bench
