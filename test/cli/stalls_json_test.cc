#include "api/cli/stalls_json.h"

#include <gtest/gtest.h>

namespace partita {
namespace {

TEST(StallsJsonTest, ComesBackAsItWas) {
  StallSummary stalls;
  stalls.shards = {{7, 2, 12.5, 3.25, 4}, {}};
  stalls.places = {{"engine/shard.cc:12 Shard::Write", {7, 2, 12.5, 3.25, 4}}};
  stalls.last = {{1, 133'000'000'000'000'000, "a \"quoted\" place", "", 1.5, 0.25}};
  const std::string json = StallsJson(stalls);
  const Result<StallSummary> back = ParseStallsJson(json);
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(StallsJson(*back), json);
  ASSERT_EQ(back->last.size(), 1u);
  EXPECT_EQ(back->last[0].began_ticks, 133'000'000'000'000'000u);
  EXPECT_EQ(back->last[0].from, "a \"quoted\" place");
  ASSERT_EQ(back->shards.size(), 2u);
  EXPECT_EQ(back->shards[0].own, 2u);
  EXPECT_EQ(back->places[0].count.longest_ms, 4);
  for (size_t size = 0; size + 2 < json.size(); size += 5) {
    EXPECT_EQ(ParseStallsJson(json.substr(0, size)).code(), Code::kInvalidArgument);
  }
  EXPECT_FALSE(ParseStallsJson("{\"shards\":[],\"places\":[]}").ok());
  EXPECT_FALSE(ParseStallsJson("{\"shards\":[],\"places\":[],\"last\":[{\"shard\":-1}]}").ok());
}

}  // namespace
}  // namespace partita
