#include "bench/micro/own_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "test/support/scratch_directory.h"

namespace partita::bench {
namespace {

class OwnStoreTest : public testing::Test {
 protected:
  void Touch(const std::string& name) const { std::ofstream(directory_ + "/" + name) << "mine"; }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

  ScratchDirectory scratch_;
  const std::string directory_ = scratch_.path();
};

TEST_F(OwnStoreTest, WhatLiesInTheDirectoryStays) {
  Touch("letters");
  {
    const OwnStore store(directory_, "bench_move");
    std::ofstream(store.path() + "/CATALOG") << "first";
    const OwnStore after_one_that_was_ended(directory_, "bench_move");
    EXPECT_TRUE(std::filesystem::is_empty(store.path()));
  }
  EXPECT_THAT(Names(), testing::ElementsAre("letters"));
}

TEST_F(OwnStoreTest, FilesOfOthersInItsPlaceEndTheBenchmark) {
  std::filesystem::create_directory(directory_ + "/bench_move");
  Touch("bench_move/main.cc");
  EXPECT_EXIT(OwnStore(directory_, "bench_move"), testing::ExitedWithCode(1), "name another");
  EXPECT_TRUE(std::filesystem::exists(directory_ + "/bench_move/main.cc"));
}

}  // namespace
}  // namespace partita::bench
