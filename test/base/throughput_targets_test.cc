#include "engine/base/throughput_targets.h"

#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

namespace partita {
namespace {

using ::testing::HasSubstr;

TEST(ThroughputTargetsTest, TextsAreReadAndWritten) {
  for (const std::string text :
       {"off", "storage", "partition=500", "account=5000", "partition=1,account=2"}) {
    Result<ThroughputTargets> targets = ParseThroughputTargets(text);
    ASSERT_TRUE(targets.ok()) << text;
    EXPECT_EQ(ThroughputText(*targets), text);
  }
  EXPECT_EQ(ParseThroughputTargets("partition=2000,account=20000").value(), ThroughputTargets::Storage());
  EXPECT_TRUE(ParseThroughputTargets("off")->IsOff());
}

TEST(ThroughputTargetsTest, BadTextsAreRefusedWithTheForm) {
  for (const std::string text :
       {"", "on", "Storage", "partition", "partition=", "partition=0", "partition=-1", "partition=1.5",
        "partition=10000001", "partition=99999999999999999999", "partition=1,partition=2", "table=5",
        "partition=1,", ",partition=1", "partition =1", "partition=1 account=2"}) {
    Result<ThroughputTargets> targets = ParseThroughputTargets(text);
    ASSERT_EQ(targets.code(), Code::kInvalidArgument) << text;
    EXPECT_THAT(targets.status().message(), HasSubstr("off, storage, partition=N,account=N")) << text;
  }
}

TEST(ThroughputTargetsTest, BadRulesAreNamed) {
  const auto why = [](ThroughputRule rule) {
    ThroughputTargets targets;
    targets.rules = {{.account = "acme", .partition_rate = 1}, std::move(rule)};
    return CheckThroughputTargets(targets).message();
  };
  EXPECT_EQ(why({.account = "other", .account_rate = 5}), "");
  EXPECT_THAT(why({}), HasSubstr("rule 2: it sets neither"));
  EXPECT_THAT(why({.table = "T", .account_rate = 5}), HasSubstr("names neither a table nor"));
  EXPECT_THAT(why({.partition_prefix = "p", .account_rate = 5}), HasSubstr("names neither a table nor"));
  EXPECT_THAT(why({.account = "other", .total_rate = 5}), HasSubstr("names a table or a partition prefix"));
  EXPECT_THAT(why({.table = "T", .total_rate = 10'000'001}), HasSubstr("the target of a total is 10000001"));
  EXPECT_EQ(why({.table = "T", .total_rate = 5}), "");
  EXPECT_THAT(why({.partition_prefix = "\xff", .partition_rate = 5}), HasSubstr("not UTF-8"));
  EXPECT_THAT(why({.table = std::string(2000, 't'), .partition_rate = 5}), HasSubstr("longer than"));
  EXPECT_THAT(why({.table = "T", .partition_rate = 10'000'001}), HasSubstr("0 (no limit) to 10000000"));
  EXPECT_THAT(why({.account = "acme", .partition_rate = 9}), HasSubstr("rule 2 is for the same as rule 1"));
  ThroughputTargets many;
  many.rules.resize(kThroughputRulesMax + 1, {.partition_rate = 1});
  EXPECT_THAT(CheckThroughputTargets(many).message(), HasSubstr("at most 1000"));
}

TEST(ThroughputTargetsTest, ATableIsTheSameInAnyCase) {
  ThroughputTargets targets;
  targets.rules = {{.table = "Orders", .partition_rate = 1}, {.table = "ORDERS", .partition_rate = 2}};
  EXPECT_FALSE(CheckThroughputTargets(targets).ok());
}

TEST(ThroughputTargetsTest, RulesWithoutLimitsAreOff) {
  ThroughputTargets targets;
  targets.rules = {{.table = "Orders", .partition_rate = 0}};
  EXPECT_TRUE(targets.IsOff());
  targets.rules[0].total_rate = 3;
  EXPECT_FALSE(targets.IsOff());
  targets.rules[0].total_rate.reset();
  targets.rules[0].partition_rate = 3;
  EXPECT_FALSE(targets.IsOff());
}

}  // namespace
}  // namespace partita
