#include "bench/lab/read_planner.h"

#include <gtest/gtest.h>

#include <string>

#include "test/lab/experiments.h"

namespace partita::lab {
namespace {

// The copy that the orders of a customer of a country are read from; "": the record itself.
std::string ReadFrom(const std::string& layout, const std::string& where) {
  const Experiment experiment = ParseSound(R"(name = "orders"
[data]
records = 5000
[data.fields]
id = { dist = "sequence", format = "{:08}" }
customer = { dist = "uniform", n = 500, format = "c{:03}" }
country = { dist = "uniform", n = 5, format = "x{:01}" }
[arrival]
rate = 10
[[op]]
name = "orders-of"
kind = "query"
where = { )" + where + " }\n[[layout]]\nname = \"l\"\n" +
                                           layout);
  const RecordGenerator generator(experiment);
  const Layout& only = experiment.layouts[0];
  const ReadPlanner planner(only, generator, EntityModel(only, generator));
  const Result<QueryPlan> plan = planner.Plan({.op = 0, .record = 7, .existing = 5000});
  EXPECT_TRUE(plan.ok()) << plan.status().ToString();
  return plan.ok() ? only.entities[plan->entity].name : "none";
}

std::string Copy(const std::string& pk, const std::string& rk = "{id}") {
  return "[[layout.copy]]\nname = \"" + pk + "\"\npk = \"" + pk + "\"\nrk = \"" + rk + "\"\n";
}

constexpr const char* kBoth = "customer = \"@record\", country = \"@record\"";

TEST(ReadPlannerTest, AQueryReadsWhereFewestEntitiesAreLookedAt) {
  const std::string all = "pk = \"all\"\nrk = \"{id}\"\n", each = "pk = \"{id}\"\nrk = \"{id}\"\n";
  EXPECT_EQ(ReadFrom(all + Copy("{customer}"), "customer = \"@record\""), "{customer}");
  EXPECT_EQ(ReadFrom(all + Copy("{country}"), "customer = \"@record\""), "") << "no copy helps";
  for (const auto& copies :
       {Copy("{country}") + Copy("{customer}"), Copy("{customer}") + Copy("{country}")}) {
    EXPECT_EQ(ReadFrom(each + copies, kBoth), "{customer}") << copies;
  }
  EXPECT_EQ(ReadFrom(each + Copy("{country}") + Copy("{country}-{customer}"), kBoth), "{country}-{customer}");
}

TEST(ReadPlannerTest, ASmallPartitionIsReadBeforeALongRangeOfRows) {
  EXPECT_EQ(ReadFrom("pk = \"all\"\nrk = \"{country}-{id}\"\n" + Copy("{customer}"), kBoth), "{customer}");
  // Of twenty entities either way: one request instead of five.
  EXPECT_EQ(ReadFrom("pk = \"{salt(5)}-{customer}\"\nrk = \"{id}\"\n" + Copy("{customer}-c"), kBoth),
            "{customer}-c");
}

TEST(ReadPlannerTest, OfKeysAloneThoseThatLeaveLeastOpenAreTaken) {
  EXPECT_TRUE(IsBetter({.parts = {{.kind = PlanKind::kPartition}}},
                       {.parts = {{.kind = PlanKind::kPartition}}, .residual = {nullptr}}));
}

}  // namespace
}  // namespace partita::lab
