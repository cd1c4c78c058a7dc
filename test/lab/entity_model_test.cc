#include "bench/lab/entity_model.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/limits.h"
#include "bench/lab/entity_units.h"
#include "bench/lab/write_planner.h"
#include "test/lab/experiments.h"

namespace partita::lab {
namespace {

// More than are followed one by one; 29 devices take turns, and 40 readings of each are an entity.
std::string SeriesText(const std::string& layout) {
  return R"(name = "series"
[data]
records = 45000
[data.fields]
n = { dist = "sequence" }
device = { dist = "template", text = "dev-{n % 29:02}" }
series = { dist = "template", text = "{n / 1160:06}" }
slot = { dist = "template", text = "{n / 29 % 40:02}" }
pack = { dist = "template", text = "{n / 50:06}" }
city = { dist = "uniform", n = 900, format = "city-{:03}" }
value = { dist = "normal", mean = 20.0, sd = 1.0 }
line = { dist = "text", bytes = 20 }
[[op]]
name = "all"
kind = "query"
where = { city = "@record" }
[arrival]
rate = 10
[[layout]]
name = "own"
)" + layout;
}

struct Exact {
  std::set<std::pair<std::string, std::string>> entities;
  double bytes = 0;  // For each record.
  double units = 0;  // Of all.
};

// As the store would have it: each entity whole.
Exact CountOf(const EntityPlan& plan, const RecordGenerator& generator) {
  const std::vector<Field>& fields = generator.experiment().fields;
  std::map<std::pair<std::string, std::string>, Entity> whole;
  Record record;
  for (uint64_t number = 0; number < generator.experiment().records; ++number) {
    generator.Make(number, &record);
    Entity made = EntityOf(plan, record, fields);
    const auto [found, is_new] = whole.try_emplace({made.partition_key(), made.row_key()}, made);
    if (is_new) continue;
    for (const Property& property : made.properties()) {
      const std::string* lines = found->second.GetString(property.name);
      const bool joins = plan.list_of || (plan.fold_packs && property.name == plan.fold_name->text());
      if (joins) {
        found->second.Set(property.name, *lines + '\n' + *property.value.if_string());
      } else {
        found->second.Set(property.name, property.value);
      }
    }
  }
  Exact exact;
  for (const auto& [keys, entity] : whole) {
    exact.entities.insert(keys);
    exact.bytes += static_cast<double>(EntitySizeBytes(entity));
    exact.units += static_cast<double>(UnitsOf(entity));
  }
  exact.bytes /= static_cast<double>(generator.experiment().records);
  return exact;
}

// What a scan of a place's table meets.
EntityModel::Answer ScanOf(const EntityModel& model, const Experiment& experiment, size_t place) {
  QueryPlan plan;
  QueryPart part{.kind = PlanKind::kTableScan, .entity = place};
  return model.Ask(plan, part, experiment.ops[0], KnownFields(experiment.fields.size()), 0);
}

TEST(EntityModelMatchTest, WhatIsAskedForOftenIsLookedForAmongOtherRowsEachTime) {
  Experiment experiment = ParseSound(SeriesText("pk = \"all\"\nrk = \"{n:06}\"\n"));
  experiment.records = 36'000;  // All of them are rows; 40 have the city of the last but one.
  const RecordGenerator generator(experiment);
  const EntityModel model(experiment.layouts[0], generator);
  const Op& op = experiment.ops[0];
  const Operation operation{.record = 35'998, .existing = 36'000};
  const KnownFields known = WhatIsKnown(op, operation, generator);
  const QueryPlan plan = *PlanRead(experiment.layouts[0], op, operation, generator);
  double matches = 0, told = 0;
  for (uint64_t number = 0; number < 36'000; ++number) {
    if (generator.ValueAt(0, number) == known.probe.values[0]) ++matches;
  }
  constexpr int kTimes = 72;  // Of 500 rows: all of them.
  for (int i = 0; i < kTimes; ++i) told += model.Ask(plan, plan.parts[0], op, known, 0).returned;
  EXPECT_NEAR(told / kTimes, matches, 1);
}

TEST(EntityModelSampleTest, ASampleSeesEachOfTheSaltsThatTakeTurns) {
  for (const double salts : {2.0, 3.0, 9.0}) {
    const std::string pk = "{salt(" + std::to_string(static_cast<int>(salts)) + ")}";
    const Experiment experiment = ParseSound(SeriesText("pk = \"" + pk + "\"\nrk = \"{n:06}\"\n"));
    const RecordGenerator generator(experiment);
    const EntityModel model(experiment.layouts[0], generator);
    ASSERT_TRUE(model.is_sample()) << "else it is no test";
    EXPECT_NEAR(model.largest(0).share, 1 / salts, 0.1 / salts) << pk;
  }
}

class EntityModelTest : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(EntityModelTest, ASampleAgreesWithCountingAll) {
  const Experiment experiment = ParseSound(SeriesText(GetParam().second));
  const RecordGenerator generator(experiment);
  const Layout& layout = experiment.layouts[0];
  const EntityModel model(layout, generator);
  ASSERT_TRUE(model.is_sample()) << "else it is no test";
  double bytes = 0;
  for (size_t place = 0; place < layout.entities.size(); ++place) {
    const Exact exact = CountOf(layout.entities[place], generator);
    bytes += exact.bytes;
    if (layout.entities[place].list_of) continue;  // Of a list each record it names is a row.
    const auto entities = static_cast<double>(exact.entities.size());
    const EntityModel::Answer scan = ScanOf(model, experiment, place);
    EXPECT_NEAR(scan.scanned, entities, 0.05 * entities) << place;
    EXPECT_NEAR(scan.units / scan.scanned, exact.units / entities, 0.03 * exact.units / entities) << place;
  }
  EXPECT_NEAR(model.stored_bytes_per_record(), bytes, 0.03 * bytes);
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, EntityModelTest,
    ::testing::Values(std::pair{"plain", "pk = \"{device}\"\nrk = \"{n}\"\n"},
                      std::pair{"folded",
                                "pk = \"{device}\"\nrk = \"{series}\"\nprops = [\"device\"]\n"
                                "fold = { property = \"v{slot}\", from = \"value\" }\n"},
                      std::pair{"packed",
                                "pk = \"all\"\nrk = \"{pack}\"\nprops = [\"pack\"]\n"
                                "fold = { property = \"lines\", from = \"line\", pack = true }\n"},
                      std::pair{"listed",
                                "pk = \"{device}\"\nrk = \"{n}\"\n[[layout.copy]]\nname = \"cities\"\n"
                                "table = \"Cities\"\npk = \"{city}\"\nrk = \"list\"\nlist = \"n\"\n"}),
    [](const auto& info) { return std::string(info.param.first); });

}  // namespace
}  // namespace partita::lab
