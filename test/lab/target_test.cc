#include "bench/lab/target.h"

#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "test/lab/experiments.h"
#include "test/lab/fake_store.h"

namespace partita::lab {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

// Says of all that it is not there.
class EmptyStore final : public FakeStore {
  Status Serve() override { return Status::NotFound("no such thing"); }
};

// Answers as if it held the records of LargeRecordsText.
class LargeStore final : public FakeStore {
 public:
  Result<Entity> Get(const std::string&, const std::string& partition_key,
                     const std::string& row_key) override {
    Entity entity(partition_key, row_key);
    entity.Set("note", std::string(8'000, 'x')).Set("n", int64_t{7});
    return entity;
  }
  Result<Answer> Query(const std::string&, const Question&) override {
    return Answer{.entities = {}, .scanned = 20, .continuation = {}};
  }

 private:
  Status Serve() override { return Status(); }
};

// Has twenty people in each city, as ListedText has them.
class ListStore final : public FakeStore {
 public:
  Result<Entity> Get(const std::string& table, const std::string& partition_key,
                     const std::string& row_key) override {
    Entity entity(partition_key, row_key);
    std::string ids;
    for (int id = 0; id < 20; ++id) ids += (id == 0 ? "" : "\n") + std::to_string(id);
    if (table == "LabCities") entity.Set("idList", ids);
    return entity;
  }

 private:
  Status Serve() override { return Status(); }
};

// Has so many pieces, and keeps where a table is cut.
class CutStore final : public FakeStore {
 public:
  CutStore(uint32_t pieces, std::vector<std::string>* splits) : pieces_(pieces), splits_(*splits) {}
  Status MakeTable(const std::string&, const std::vector<std::string>& splits) override {
    splits_ = splits;
    return Status();
  }
  uint32_t pieces() const override { return pieces_; }

 private:
  Status Serve() override { return Status(); }
  const uint32_t pieces_;
  std::vector<std::string>& splits_;
};

// Where the table of 20,000 records, or of as many as are told, is cut into so many pieces.
std::vector<std::string> SplitsOf(uint32_t pieces, const std::string& pk,
                                  const std::string& records = "20_000") {
  std::string text = RareBatchesText("rate = 1\n");
  text.replace(text.find("20_000"), 6, records);
  text.replace(text.find("pk = \"{id:08}\"\nrk = \"\""), 22, "pk = \"" + pk + "\"\nrk = \"{id:08}\"");
  const Experiment experiment = ParseSound(text);
  const RecordGenerator generator(experiment);
  const std::atomic<bool> stop{false};
  std::vector<std::string> splits;
  EXPECT_TRUE(Target::Make(std::make_unique<CutStore>(pieces, &splits), experiment.layouts[0], generator,
                           stop, [](double) { return true; })
                  .ok());
  return splits;
}

// Asks for five people of a city.
std::string ListedText(const std::string& order) {
  return R"(name = "five"
[data]
records = 400
[data.fields]
id = { dist = "sequence", format = "{:06}" }
age = { dist = "uniform", n = 80 }
city = { dist = "uniform", n = 20, format = "c{:02}" }
[[op]]
name = "in-city"
kind = "query"
where = { city = "@record" }
limit = 5
)" + order +
         "[arrival]\nrate = 10\n" + kListedLayout;
}

// What an operation on large records does, whose layout has `more`.
Outcome OutcomeOn(std::unique_ptr<TableStore> store, const std::string& op, const std::string& more = "") {
  std::string text = LargeRecordsText(op);
  const Experiment experiment = ParseSound(text.insert(text.find("[arrival]"), more));
  const RecordGenerator generator(experiment);
  const std::atomic<bool> stop{false};
  const auto target =
      Target::Make(std::move(store), experiment.layouts[0], generator, stop, [](double) { return true; });
  EXPECT_TRUE(target.ok());
  return (*target)->Execute({.op = 0, .record = 3, .existing = 20});
}

// What it is charged.
double UnitsCharged(std::unique_ptr<TableStore> store, const std::string& op) {
  const Outcome outcome = OutcomeOn(std::move(store), op);
  double units = 0;
  for (const Touch& touch : outcome.touches) units += touch.entities;
  return units;
}

TEST(TargetTest, OnlyWhatIsAboutARecordCanFindItMissing) {
  std::string text = ReadingsText(kDeviceLayout);
  text.replace(text.find("[arrival]"), 9,
               "[[op]]\nname = \"put\"\nkind = \"upsert\"\n[[op]]\nname = \"change\"\nkind = \"merge\"\n"
               "set = [\"value\"]\n[[op]]\nname = \"drop\"\nkind = \"delete\"\n[arrival]");
  Experiment experiment = ParseSound(text);
  experiment.records = 0;
  const RecordGenerator generator(experiment);
  const std::atomic<bool> stop{false};
  const auto target = Target::Make(std::make_unique<EmptyStore>(), experiment.layouts[0], generator, stop,
                                   [](double) { return true; });
  ASSERT_TRUE(target.ok());
  for (size_t op = 0; op < experiment.ops.size(); ++op) {
    const Outcome outcome = (*target)->Execute({.op = op, .records = 1});
    const std::string& name = experiment.ops[op].name;
    const bool is_of_one = name == "read" || name == "change" || name == "drop";
    EXPECT_EQ(outcome.missing, is_of_one) << name;
    EXPECT_EQ(outcome.status.code(), is_of_one ? Code::kOk : Code::kNotFound) << name;
  }
}

TEST(TargetTest, AnEntityIsHeatForEachOfItsKib) {
  const auto units = [](const std::string& op) { return UnitsCharged(std::make_unique<LargeStore>(), op); };
  EXPECT_DOUBLE_EQ(units("kind = \"get\"\n"), 16);
  EXPECT_DOUBLE_EQ(units("kind = \"query\"\nwhere = { n = 3 }\n"), 20 * 16) << "whatever it returns";
  EXPECT_DOUBLE_EQ(units("kind = \"insert\"\n"), 16);
  EXPECT_DOUBLE_EQ(units("kind = \"replace\"\n"), 16);
  EXPECT_DOUBLE_EQ(units("kind = \"merge\"\nset = [\"n\"]\n"), 1) << "what is sent";
  EXPECT_DOUBLE_EQ(units("kind = \"delete\"\n"), 1);
  EXPECT_DOUBLE_EQ(units("kind = \"modify\"\nset = [\"n\"]\n"), 17);
}

TEST(TargetTest, SplitsCutTheTableIntoAboutAsManyRecords) {
  EXPECT_THAT(SplitsOf(2, "{id:08}", "1_999"), ElementsAre("00000999"));
}

TEST(TargetTest, SplitsKnowEachOfTheSaltsThatTakeTurns) {
  EXPECT_THAT(SplitsOf(4, "{salt(4)}"), ElementsAre("1", "2", "3"));
  EXPECT_THAT(SplitsOf(8, "{salt(8)}"), ElementsAre("1", "2", "3", "4", "5", "6", "7"));
  EXPECT_THAT(SplitsOf(8, "{id % 16:02}"), ElementsAre("02", "04", "06", "08", "10", "12", "14"));
  for (const std::string records : {"10_000", "20_000", "50_000"}) {
    EXPECT_THAT(SplitsOf(2, "{salt(3)}", records), SizeIs(1)) << records;
    for (const std::string salts : {"7", "11", "13"}) {
      EXPECT_THAT(SplitsOf(4, "{salt(" + salts + ")}", records), SizeIs(3)) << records << " " << salts;
    }
  }
}

TEST(TargetTest, WhatIsSelectedIsWhatAPointReadGets) {
  const auto outcome = [](const std::string& op) { return OutcomeOn(std::make_unique<LargeStore>(), op); };
  for (const std::string op : {"kind = \"get\"\n", "kind = \"query\"\nwhere = { id = \"@record\" }\n"}) {
    const Outcome whole = outcome(op), part = outcome(op + "select = [\"n\"]\n");
    EXPECT_EQ(part.returned, 1u) << op;
    EXPECT_GT(whole.bytes, 16'000u) << op;
    EXPECT_LT(part.bytes, 100u) << op;
    ASSERT_EQ(part.touches.size(), 1u) << op;
    EXPECT_DOUBLE_EQ(part.touches[0].entities, 16) << "as much is read: " << op;
  }
  const Outcome folded = OutcomeOn(std::make_unique<LargeStore>(), "kind = \"get\"\nselect = [\"n\"]\n",
                                   "fold = { property = \"n{id}\", from = \"n\" }\n");
  EXPECT_GT(folded.bytes, 16'000u) << "it has another name there";
}

TEST(TargetTest, OfAListAllAreLookedUpWhereAnOrderIsWanted) {
  const auto outcome = [](const std::string& order) {
    const Experiment experiment = ParseSound(ListedText(order));
    const RecordGenerator generator(experiment);
    const std::atomic<bool> stop{false};
    const auto target = Target::Make(std::make_unique<ListStore>(), experiment.layouts[0], generator, stop,
                                     [](double) { return true; });
    EXPECT_TRUE(target.ok());
    return (*target)->Execute({.op = 0, .record = 3, .existing = 400});
  };
  const Outcome sorted = outcome("order = \"age desc\"\n"), any = outcome("");
  EXPECT_EQ(sorted.requests, 1u + 20) << "a list has the order in which they were added";
  EXPECT_EQ(sorted.returned, 5u);
  EXPECT_EQ(any.requests, 1u + 5);
  EXPECT_EQ(any.returned, 5u);
}

TEST(TargetTest, WhatIsRefusedForAnotherReasonThanTheTargetsIsHeat) {
  EXPECT_DOUBLE_EQ(UnitsCharged(std::make_unique<EmptyStore>(), "kind = \"insert\"\n"), 16);
  EXPECT_DOUBLE_EQ(UnitsCharged(std::make_unique<EmptyStore>(), "kind = \"get\"\n"), 1) << "nothing is there";
}

}  // namespace
}  // namespace partita::lab
