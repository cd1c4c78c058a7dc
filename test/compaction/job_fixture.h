#pragma once
#include <gtest/gtest.h>

#include <cstdio>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/user_key.h"
#include "test/compaction/job_test_world.h"

namespace partita {

inline std::string Key(uint32_t partition, uint32_t row, uint32_t table = 1) {
  char row_text[16];
  std::snprintf(row_text, sizeof row_text, "%06u", row);
  char partition_text[16];
  std::snprintf(partition_text, sizeof partition_text, "p%03u", partition);
  return EncodeUserKey(TableId(table), partition_text, row_text);
}

inline std::string Content(uint64_t seed, size_t size = 100) {
  std::string content;
  while (content.size() < size) content += "value-" + std::to_string(seed * 7919 + content.size()) + ";";
  return content;
}

// Which nothing compresses.
inline std::string RandomContent(size_t size, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string content(size, '\0');
  for (char& c : content) c = static_cast<char>(random());
  return content;
}

inline std::vector<ModelEntry> Puts(uint32_t from, uint32_t to, uint64_t version, uint32_t step = 1,
                                    uint32_t table = 1) {
  std::vector<ModelEntry> entries;
  for (uint32_t row = from; row < to; row += step) {
    entries.push_back(
        MakeEntry(Key(row / 100, row, table), version, EntryKind::kPut, Content(row + version)));
  }
  return entries;
}

inline RetentionPolicy AllVisible() { return {kVersionMax, {}}; }

class JobTest : public testing::Test {
 protected:
  void FlushOk(std::vector<ModelEntry> entries) {
    Result<JobResult> result = world_.Flush(std::move(entries), AllVisible());
    ASSERT_TRUE(result.ok()) << result.status().ToString();
  }
  // Merges all of `input` into `output`.
  JobResult MergeOk(uint32_t input, uint32_t output, bool pass_through = true) {
    MergeSpec spec = world_.SpecFor(world_.PlanOfLevels(input, output), AllVisible());
    spec.pass_through = pass_through;
    Result<JobResult> result = world_.Merge(std::move(spec));
    EXPECT_TRUE(result.ok()) << result.status().ToString();
    return result.ok() ? *result : JobResult{};
  }
  // A merge that must fail leaves the level set and the objects as they were.
  Status MergeFails(uint32_t input, uint32_t output) {
    size_t objects = world_.ObjectCount();
    auto before = world_.levels;
    Result<JobResult> result = world_.Merge(world_.SpecFor(world_.PlanOfLevels(input, output), AllVisible()));
    EXPECT_FALSE(result.ok());
    EXPECT_EQ(world_.levels, before);
    EXPECT_EQ(world_.ObjectCount(), objects);
    return result.status();
  }

  JobWorld world_;
};

}  // namespace partita
