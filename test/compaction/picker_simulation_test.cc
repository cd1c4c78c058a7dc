#include <gtest/gtest.h>

#include <random>

#include "test/compaction/lsm_simulation.h"
#include "test/compaction/picker_shapes.h"

// What the picker picks, over and over, on levels that are only counted.

namespace partita {
namespace {

PickerOptions SmallOptions() { return {.flush_bytes = kMiB, .target_file_bytes = kMiB / 4}; }

TEST(PickerSimulationTest, RandomOverwritesAreAnsweredRightWithBoundedAmplification) {
  LsmSimulation simulation(SmallOptions());
  std::mt19937 random(20);
  for (int i = 0; i < 300; ++i) {
    std::vector<uint32_t> keys;
    for (int k = 0; k < 1024; ++k) keys.push_back(random() % 60'000);
    simulation.Flush(keys);
    simulation.RunUntilQuiet();
    ASSERT_LT(simulation.files(0), kLevel0DepthCalm * 8);
  }
  simulation.ExpectRightAnswers();
  std::printf("random overwrites: write amplification %.2f, space amplification %.2f\n",
              simulation.WriteAmplification(), simulation.SpaceAmplification());
  EXPECT_LT(simulation.WriteAmplification(), 14);
  EXPECT_LT(simulation.SpaceAmplification(), 1.35);
}

TEST(PickerSimulationTest, RisingKeysAreWrittenAboutTwice) {
  LsmSimulation simulation(SmallOptions());
  uint32_t next = 0;
  for (int i = 0; i < 200; ++i) {
    std::vector<uint32_t> keys;
    for (int k = 0; k < 1024; ++k) keys.push_back(next++);
    simulation.Flush(keys);
    simulation.RunUntilQuiet();
  }
  simulation.ExpectRightAnswers();
  std::printf("rising keys: write amplification %.2f, %llu moves\n", simulation.WriteAmplification(),
              static_cast<unsigned long long>(simulation.moves()));
  EXPECT_LT(simulation.WriteAmplification(), 2.5);
}

// M22
TEST(PickerSimulationTest, FlushesBesideAJobNeverMixUpVersions) {
  for (uint32_t seed = 1; seed <= 24; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    LsmSimulation simulation({.flush_bytes = 64 * 1024, .target_file_bytes = 16 * 1024});
    for (int i = 0; i < 200; ++i) {
      std::vector<uint32_t> keys;
      uint32_t center = random() % 4000;
      uint32_t width = 1 + random() % (seed % 2 == 0 ? 4000 : 300);
      for (uint32_t k = 1 + random() % 64; k > 0; --k) keys.push_back(center + random() % width);
      simulation.Flush(keys);
      if (!simulation.job_runs() && random() % 3 > 0) simulation.StartJob();
      if (simulation.job_runs() && random() % 2 == 0) simulation.FinishJob();
      if (i % 20 == 0) simulation.ExpectRightAnswers();
      if (HasFatalFailure() || HasNonfatalFailure()) return;
    }
    simulation.RunUntilQuiet();
    simulation.ExpectRightAnswers();
  }
}

}  // namespace
}  // namespace partita
