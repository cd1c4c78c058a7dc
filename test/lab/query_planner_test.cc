#include "bench/lab/query_planner.h"

#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include "bench/lab/key_span.h"
#include "test/lab/experiments.h"

namespace partita::lab {
namespace {

using ::testing::HasSubstr;

// The plan of `op` on the one layout with these keys, for record 1000 of 2000.
struct Planned {
  Planned(const std::string& pk, const std::string& rk, const std::string& op, const std::string& more = "")
      : experiment(ParseSound(ReadingsText("[[layout]]\nname = \"x\"\npk = \"" + pk + "\"\nrk = \"" + rk +
                                           "\"\n" + more + "\n[[op]]\nname = \"tried\"\n" + op))),
        generator(experiment) {
    generator.Make(1000, &record);
    const Result<QueryPlan> planned = PlanRead(experiment.layouts[0], experiment.ops.back(),
                                               {.op = 3, .record = 1000, .existing = 2000}, generator);
    EXPECT_TRUE(planned.ok()) << planned.status().ToString();
    if (planned.ok()) plan = *planned;
  }
  std::string kind() const { return PlanKindName(plan.worst()); }

  Experiment experiment;
  RecordGenerator generator;
  Record record;
  QueryPlan plan;
};

constexpr const char* kLatest =
    "kind = \"query\"\nwhere = { device = \"@record\" }\norder = \"ts desc\"\nlimit = 10\n";
constexpr const char* kLastHour = "kind = \"query\"\nwhere = { ts = \"last 1h\" }\n";

TEST(QueryPlannerTest, TheLatestOfADeviceIsARowRangeOnlyWhereKeysFallWithTime) {
  const Planned down("{device}", "{desc_ticks(ts)}", kLatest);
  EXPECT_EQ(down.kind(), "partition");
  EXPECT_TRUE(down.plan.ordered);
  EXPECT_EQ(down.plan.parts[0].filter.whole(),
            "PartitionKey eq '" + *down.record.values[0].if_string() + "'");
  const Planned up("{device}", "{ticks(ts)}", kLatest);
  EXPECT_FALSE(up.plan.ordered);
}

TEST(QueryPlannerTest, BucketsCostAQueryEach) {
  const Planned salted("{salt(8)}-{device}", "{desc_ticks(ts)}", kLatest);
  EXPECT_EQ(salted.plan.parts.size(), 8u);
  EXPECT_TRUE(salted.plan.ordered);
  const Planned hashed("{hash(device) % 16:02x}-{device}", "{desc_ticks(ts)}", kLatest);
  EXPECT_EQ(hashed.plan.parts.size(), 1u) << "who knows the device knows its bucket";
}

TEST(QueryPlannerTest, ARangeOfTimeIsCutToThePartitionsItTouches) {
  const Planned hours("{ts:%Y%m%d%H}", "{ts:%M%S.%f}_{device}", kLastHour);
  EXPECT_EQ(hours.kind(), "row-range");
  EXPECT_EQ(hours.plan.parts.size(), 2u) << "an hour that does not begin with one";
  EXPECT_THAT(hours.plan.parts[0].filter.whole(), HasSubstr("RowKey ge '"));
  const Planned whole("{ts:%Y%m%d}", "{ts:%M%S.%f}_{ts:%H}", kLastHour);
  EXPECT_EQ(whole.kind(), "partition") << "minutes do not rise within a day";
  const Planned across("{device}", "{ticks(ts)}", kLastHour);
  EXPECT_EQ(across.kind(), "table-scan");
}

TEST(QueryPlannerTest, TheFilterSaysWhatTheKeysLeaveOpen) {
  const char* const one = "kind = \"query\"\nwhere = { device = \"@record\", type = \"door\" }\n";
  EXPECT_TRUE(Planned("{device}_{type}", "{ticks(ts)}", one).plan.residual.empty());
  EXPECT_EQ(Planned("{type}{device}{type}", "{ticks(ts)}", one).plan.residual.size(), 2u)
      << "where a text of several lengths ends is not known";
  const char* const hours = "kind = \"query\"\nwhere = { hour = { from = 3, to = 12 } }\n";
  const Planned wide("all", "{hour:02}_{ticks(ts)}", hours);
  EXPECT_THAT(wide.plan.parts[0].filter.whole(), HasSubstr("RowKey ge '03' and RowKey lt '12'"));
  EXPECT_TRUE(wide.plan.residual.empty());
  for (const char* row : {"{hour:01}_{ticks(ts)}", "{pad(hour, 1)}_{ticks(ts)}"}) {
    const Planned narrow("all", row, hours);
    EXPECT_EQ(narrow.kind(), "partition") << "10 is not behind 3";
    EXPECT_EQ(narrow.plan.residual.size(), 1u);
  }
  const char* const names = "kind = \"query\"\nwhere = { type = { from = \"a\", to = \"door\" } }\n";
  EXPECT_EQ(Planned("all", "{type}{ticks(ts)}", names).plan.residual.size(), 1u);
  const Planned last("{type}", "{ticks(ts)}", names);
  EXPECT_EQ(last.plan.parts[0].filter.whole(), "PartitionKey ge 'a' and PartitionKey lt 'door'");
}

TEST(QueryPlannerTest, OfARangeInDigitsNoMoreIsAskedThanTheFieldHas) {
  const auto keys = [](const std::string& from, const std::string& to) {
    const Planned planned("all", "{hour:02}_{ticks(ts)}",
                          "kind = \"query\"\nwhere = { hour = { from = " + from + ", to = " + to + " } }\n");
    EXPECT_TRUE(planned.plan.residual.empty());
    return planned.plan.parts[0].filter.whole();
  };
  const std::string all = "PartitionKey eq 'all' and ";
  EXPECT_EQ(keys("5", "150"), all + "RowKey ge '05' and RowKey lt '24'") << "'149' is before '15'";
  EXPECT_EQ(keys("-3", "12"), all + "RowKey ge '00' and RowKey lt '12'");
  EXPECT_EQ(keys("24", "150"), all + "RowKey ge '23' and RowKey lt '23'") << "there is no such hour";
  EXPECT_EQ(keys("-3", "0"), all + "RowKey ge '00' and RowKey lt '00'");
}

TEST(QueryPlannerTest, DigitsRiseWithNumbersThatFitThemAndAreNotNegative) {
  const auto direction = [](int64_t start, uint64_t records, const std::string& key) {
    const Field field{
        .name = "n", .distribution = Distribution::kSequence, .start = start, .records_max = records};
    return KeyTemplate::Parse(key, {field})->parts()[0].direction;
  };
  for (const char* key : {"{pad(n, 4)}", "{n:04}"}) {
    EXPECT_EQ(direction(0, 9'999, key), 1) << key;
    EXPECT_EQ(direction(0, 10'000, key), 0) << key << " is outgrown";
    EXPECT_EQ(direction(-1, 100, key), 0) << key << " has a sign";
  }
  EXPECT_EQ(direction(0, 65'535, "{n:04x}"), 1);
}

TEST(QueryPlannerTest, AGetIsAPointAndOneForEachSalt) {
  EXPECT_EQ(Planned("{device}", "{ticks(ts)}", "kind = \"get\"\n").kind(), "point");
  EXPECT_EQ(Planned("{salt(4)}", "{ticks(ts)}", "kind = \"get\"\n").plan.parts.size(), 4u);
}

TEST(QueryPlannerTest, ACopyIsTakenWhereItCostsLess) {
  const char* const alarms = "kind = \"query\"\nwhere = { type = \"alarm\" }\n";
  const Planned copied("{device}", "{ticks(ts)}", alarms,
                       "[[layout.copy]]\nname = \"by-type\"\npk = \"{type}\"\nrk = \"{ticks(ts)}\"\n");
  EXPECT_EQ(copied.plan.entity, 1u);
  EXPECT_EQ(copied.kind(), "partition");
  EXPECT_FALSE(copied.plan.lookups);
  const Planned index("{device}", "{ticks(ts)}", alarms,
                      "[[layout.copy]]\nname = \"by-type\"\npk = \"{type}\"\nrk = \"{ticks(ts)}\"\n"
                      "props = [\"device\", \"ts\"]\n");
  EXPECT_TRUE(index.plan.lookups);
  const Planned none("{device}", "{ticks(ts)}", alarms);
  EXPECT_EQ(none.kind(), "table-scan");
  EXPECT_EQ(none.plan.parts[0].filter.whole(), "type eq 'alarm'");
}

TEST(KeySpanTest, WhatIsBehindAPrefixIsTextInEveryAlphabet) {
  EXPECT_EQ(BehindPrefix("ab"), "ac");
  EXPECT_EQ(BehindPrefix("caf\u00e9"), "caf\u00ea");
  EXPECT_EQ(BehindPrefix("x\u07ff"), "x\u0800") << "which is longer by a byte";
  EXPECT_EQ(BehindPrefix("x\ud7ff"), "y") << "surrogates are no text";
  EXPECT_EQ(BehindPrefix("x\U0010ffff"), "y");
  EXPECT_EQ(BehindPrefix("\U0010ffff"), "") << "nothing is behind it";
}

}  // namespace
}  // namespace partita::lab
