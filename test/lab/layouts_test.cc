#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <sstream>
#include <thread>
#include <tuple>

#include "bench/lab/explain.h"
#include "bench/lab/metrics.h"
#include "bench/lab/query_planner.h"
#include "bench/lab/target.h"
#include "bench/lab/write_planner.h"
#include "test/lab/experiments.h"
#include "test/lab/fake_store.h"

namespace partita::lab {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string StaffText(const std::string& layouts, const std::string& ops = "") {
  return R"(name = "staff"
repeats = 1
[data]
records = 400
[data.fields]
n = { dist = "sequence" }
id = { dist = "sequence", format = "{:06}" }
kind = { dist = "weighted", values = { boss = 10, worker = 90 } }
city = { dist = "uniform", n = 8, format = "c{:02}" }
pay = { dist = "uniform", n = 1000 }
[[op]]
name = "in-city"
kind = "query"
where = { city = "@record" }
)" + ops +
         "[arrival]\nrate = 300\nwarmup = \"0s\"\nduration = \"500ms\"\nclients = 8\n" + layouts;
}

constexpr const char* kTyped = R"(
[[layout]]
name = "typed"
pk = "{city}"
[[layout.type]]
name = "boss"
when = { kind = "boss" }
rk = "a-boss_{id}"
props = ["id", "city", "kind"]
[[layout.type]]
name = "worker"
when = { kind = "worker" }
rk = "b-worker_{id}"
props = ["id", "city", "kind", "pay"]
)";

std::string Findings(const std::string& text) {
  return FindingsText("x", ParseExperiment(text, "x").findings);
}

// Holds entities in memory, with a version each, as a store does that checks ETags.
class MemoryStore : public FakeStore {
 public:
  Status Load(const std::string& table, std::vector<Write> writes, const GoesOn&) override {
    for (const Write& write : writes) PARTITA_TRY(Transact(table, {write}));
    return Status();
  }
  Result<Entity> Get(const std::string& table, const std::string& partition_key,
                     const std::string& row_key) override {
    const std::lock_guard lock(mutex_);
    const auto found = entities_.find({table, partition_key, row_key});
    if (found == entities_.end()) return Status::NotFound("no such entity");
    return found->second;
  }
  Status Transact(const std::string& table, const std::vector<Write>& writes) override {
    const std::lock_guard lock(mutex_);
    for (const Write& write : writes) {
      const Key key{table, write.entity.partition_key(), write.entity.row_key()};
      const auto found = entities_.find(key);
      const bool there = found != entities_.end();
      if (write.action == WriteAction::kInsert && there) return Status::AlreadyExists("is there");
      if (!write.if_match.empty() && (!there || found->second.etag() != write.if_match)) {
        ++refused_;
        return Status::PreconditionFailed("changed");
      }
      Entity entity = write.entity;
      entity.set_timestamp_ticks(++ticks_);
      entities_[key] = std::move(entity);
    }
    return Status();
  }
  uint64_t refused() const { return refused_; }

 protected:
  Status Serve() override { return Status(); }

 private:
  using Key = std::tuple<std::string, std::string, std::string>;
  std::mutex mutex_;
  std::map<Key, Entity> entities_;
  uint64_t ticks_ = 131'000'000'000'000'000, refused_ = 0;
};

// Keeps how many entities a query asks for, and answers with as many; with 20 where it asks for all.
class AskedStore final : public FakeStore {
 public:
  explicit AskedStore(uint64_t* top) : top_(*top) {}
  Result<Answer> Query(const std::string&, const Question& question) override {
    top_ = question.top;
    const size_t count = top_ == 0 ? 20 : top_;
    return Answer{
        .entities = std::vector<Entity>(count, Entity("p", "r")), .scanned = count, .continuation = {}};
  }

 private:
  Status Serve() override { return Status(); }
  uint64_t& top_;
};

std::unique_ptr<Target> TargetOn(MemoryStore** store, const RecordGenerator& generator,
                                 const std::atomic<bool>& stop) {
  auto made = std::make_unique<MemoryStore>();
  *store = made.get();
  auto target = Target::Make(std::move(made), generator.experiment().layouts[0], generator, stop,
                             [](double) { return true; });
  EXPECT_TRUE(target.ok()) << target.status().ToString();
  return std::move(*target);
}

TEST(IndexEntityTest, NothingIsLostByWritersOfOneList) {
  const Experiment experiment = ParseSound(
      StaffText(kListedLayout,
                "[[op]]\nname = \"hire\"\nkind = \"insert\"\n[[op]]\nname = \"fire\"\nkind = \"delete\"\n"));
  const RecordGenerator generator(experiment);
  const std::atomic<bool> stop{false};
  MemoryStore* store = nullptr;
  const std::unique_ptr<Target> target = TargetOn(&store, generator, stop);
  std::atomic<uint64_t> next{experiment.records}, requests{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 100; ++k) {
        const Outcome outcome = target->Execute({.op = 1, .record = next.fetch_add(1)});
        EXPECT_TRUE(outcome.status.ok()) << outcome.status.ToString();
        requests += outcome.requests;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(target->Execute({.op = 2, .record = 7}).status.ok());
  // Each is listed where it belongs, once; who was refused asked again.
  std::map<std::string, std::vector<std::string>> due;
  Record record;
  for (uint64_t number = 0; number < experiment.records + 800; ++number) {
    generator.Make(number, &record);
    if (number != 7) due[*record.values[0].if_string()].push_back(*record.values[1].if_string());
  }
  ASSERT_EQ(experiment.fields[0].name, "city");
  for (auto& [city, ids] : due) {
    const Result<Entity> list = store->Get("LabCities", city, "list");
    ASSERT_TRUE(list.ok()) << city;
    std::vector<std::string> listed;
    std::istringstream lines(*list->GetString("idList"));
    for (std::string line; std::getline(lines, line);) listed.push_back(line);
    std::sort(listed.begin(), listed.end());
    EXPECT_EQ(listed, ids) << city;
  }
  EXPECT_EQ(requests.load(), 800 * 3 + 2 * store->refused());
}

TEST(IndexEntityTest, AReadTakesTheListAndEachRecord) {
  const Experiment experiment = ParseSound(StaffText(kListedLayout));
  const RecordGenerator generator(experiment);
  const LayoutPrediction told = Predict(generator).layouts[0];
  EXPECT_EQ(told.ops[0].plan, "point");
  EXPECT_EQ(told.ops[0].from, "cities");
  EXPECT_NEAR(told.ops[0].requests, 51, 12);
  const std::atomic<bool> stop{false};
  MemoryStore* store = nullptr;
  const Outcome outcome = TargetOn(&store, generator, stop)->Execute({.op = 0, .record = 3});
  EXPECT_TRUE(outcome.status.ok());
  EXPECT_GT(outcome.returned, 30u);
  EXPECT_EQ(outcome.requests, 1 + outcome.returned);
  EXPECT_EQ(outcome.scanned, outcome.requests);
}

TEST(IndexEntityTest, AListThatOutgrowsItsPropertyIsTold) {
  std::string text = StaffText(kListedLayout);
  text.replace(text.find("records = 400"), 13, "records = 60000");
  EXPECT_THAT(Findings(text), HasSubstr("has more than the 64 KiB that a property holds"));
}

TEST(EntityTypesTest, EachHasItsKeysAndPropertiesAndOneQueryFindsAll) {
  const Experiment experiment = ParseSound(StaffText(kTyped));
  const RecordGenerator generator(experiment);
  const Layout& layout = experiment.layouts[0];
  ASSERT_EQ(layout.types, 2u);
  const auto plan = PlanRead(layout, experiment.ops[0], {.op = 0, .record = 3, .existing = 400}, generator);
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  ASSERT_EQ(plan->parts.size(), 1u);
  EXPECT_EQ(plan->parts[0].kind, PlanKind::kRowRange);
  EXPECT_THAT(plan->parts[0].filter.whole(), HasSubstr("RowKey ge 'a-boss_' and RowKey lt 'b-worker`'"));
  EXPECT_THAT(plan->parts[0].also, ElementsAre(1));
  std::map<std::string, size_t> properties;
  for (uint64_t number = 0; number < 50; ++number) {
    for (const WriteRequestPlan& request :
         PlanWrites(layout, {.kind = OpKind::kInsert}, {.record = number}, generator)) {
      ASSERT_EQ(request.writes.size(), 1u);
      const Entity& entity = request.writes[0].entity;
      properties[entity.row_key().substr(0, 6)] = entity.property_count();
    }
  }
  EXPECT_EQ(properties, (std::map<std::string, size_t>{{"a-boss", 3}, {"b-work", 4}}));
}

TEST(EntityTypesTest, WhatOnlyOneTypeHasIsAskedOfThatOne) {
  const Experiment experiment = ParseSound(StaffText(
      kTyped,
      "[[op]]\nname = \"paid\"\nkind = \"query\"\nwhere = { city = \"@record\", pay = 7 }\n"
      "[[op]]\nname = \"bosses\"\nkind = \"query\"\nwhere = { city = \"@record\", kind = \"boss\" }\n"));
  const RecordGenerator generator(experiment);
  const auto plan_of = [&](size_t op) {
    return *PlanRead(experiment.layouts[0], experiment.ops[op], {.op = op, .record = 3, .existing = 400},
                     generator);
  };
  EXPECT_THAT(plan_of(1).parts[0].filter.whole(), HasSubstr("RowKey ge 'b-worker_'"));
  ASSERT_EQ(plan_of(2).parts.size(), 1u);
  EXPECT_THAT(plan_of(2).parts[0].filter.whole(), HasSubstr("RowKey lt 'a-boss`'"));
}

TEST(EntityTypesTest, WhatIsOfNoTypeOrOfTwoIsTold) {
  std::string none = kTyped;
  none.replace(none.find("\"worker\" }"), 10, "\"clerk\" }");
  EXPECT_THAT(Findings(StaffText(none)), HasSubstr("is of none of the types"));
  std::string two = kTyped;
  two.replace(two.find("{ kind = \"worker\" }"), 19, "{ kind = [\"worker\", \"boss\"] }");
  EXPECT_THAT(Findings(StaffText(two)), HasSubstr("type 'boss' has this value too"));
}

TEST(EntityTypesTest, NoTwoTypesHaveTheKeysOfOneEntity) {
  const auto keys = [](const std::string& worker, const std::string& more = "") {
    std::string text = StaffText(kTyped);
    text.replace(text.find("a-boss_{id}"), 11, "{n}");
    return Findings(text.replace(text.find("b-worker_{id}\""), 14, worker + "\"\n" + more));
  };
  EXPECT_EQ(keys("worker_{n + 3}"), "");
  EXPECT_THAT(keys("{n + 3}"), AllOf(HasSubstr(" (worker) and "), HasSubstr(" (boss) have the same keys")));
  EXPECT_EQ(keys("{n + 3}", "table = \"Workers\"\n"), "");
}

TEST(PackTest, WholeEntitiesAreWrittenOrItIsTold) {
  const auto text = [](const std::string& batch) {
    return "name = \"log\"\n[data]\nrecords = 120\n[data.fields]\nts = { dist = \"clock\" }\n"
           "line = { dist = \"text\", bytes = 20 }\n[[op]]\nname = \"write\"\nkind = \"insert\"\nbatch = " +
           batch +
           "\n[[layout]]\nname = \"packed\"\npk = \"all\"\nrk = \"{ts:%H%M}\"\n"
           "fold = { property = \"lines\", from = \"line\", pack = true }\n[arrival]\nrate = 1\nduration = "
           "\"1s\"\n";
  };
  EXPECT_THAT(Findings(text("50")), HasSubstr("batch must be the number of records of an entity"));
  const Experiment experiment = ParseSound(text("60"));
  const RecordGenerator generator(experiment);
  const auto requests =
      PlanWrites(experiment.layouts[0], experiment.ops[0], {.record = 120, .records = 60}, generator);
  ASSERT_EQ(requests.size(), 1u);
  ASSERT_EQ(requests[0].writes.size(), 1u);
  const std::string& lines = *requests[0].writes[0].entity.GetString("lines");
  EXPECT_EQ(lines.size(), 60 * 20 + 59);
  const std::atomic<bool> stop{false};
  MemoryStore* store = nullptr;
  const auto target = TargetOn(&store, generator, stop);
  EXPECT_EQ(store->Get("Lab", "all", "0001")->GetString("lines")->size(), 60 * 20 + 59)
      << "loaded whole, too";
}

TEST(PackTest, PacksKeepTheirRecordsBesideCopies) {
  const Experiment experiment = ParseSound(R"(name = "log"
[data]
records = 2400
[data.fields]
ts = { dist = "clock" }
line = { dist = "text", bytes = 20 }
[[op]]
name = "write"
kind = "insert"
batch = 60
[[layout]]
name = "packed"
pk = "all"
rk = "{ts:%H%M}"
fold = { property = "lines", from = "line", pack = true }
[[layout.copy]]
name = "same"
pk = "all"
rk = "line_{ts:%H%M%S}"
atomic = true
[[layout.copy]]
name = "third"
pk = "all"
rk = "third_{ts:%H%M%S}"
atomic = true
[[layout.copy]]
name = "other"
pk = "other"
rk = "line_{ts:%H%M%S}"
[arrival]
rate = 1
duration = "1s"
)");
  const RecordGenerator generator(experiment);
  const std::atomic<bool> stop{false};
  MemoryStore* store = nullptr;
  const auto target = TargetOn(&store, generator, stop);
  for (const char* row : {"0000", "0001", "0039"}) {
    EXPECT_EQ(store->Get("Lab", "all", row)->GetString("lines")->size(), 60 * 20 + 59) << row;
  }
  EXPECT_TRUE(store->Get("Lab", "all", "line_000059").ok());
  EXPECT_TRUE(store->Get("Lab", "other", "line_003959").ok());
  // 121 writes to one partition, of which a transaction takes 100.
  const auto requests =
      PlanWrites(experiment.layouts[0], experiment.ops[0], {.record = 2400, .records = 60}, generator);
  std::map<std::string, size_t> packs;
  for (const WriteRequestPlan& request : requests) {
    EXPECT_LE(request.writes.size(), 100u);
    for (const Write& write : request.writes) {
      const std::string* lines = write.entity.GetString("lines");
      if (lines != nullptr) EXPECT_TRUE(packs.emplace(write.entity.row_key(), lines->size()).second);
    }
  }
  EXPECT_THAT(packs, ElementsAre(std::pair("0040", 60 * 20 + 59)));
}

// Readings of one sensor, an hour apart, and one a day in an entity of each day.
std::string SeriesOfDaysText(const std::string& op) {
  return R"(name = "days"
[data]
records = 480
[data.fields]
sensor = { dist = "constant", value = "s1" }
ts = { dist = "clock", start = "2026-01-01T00:30:00Z", step = "1h" }
value = { dist = "normal", mean = 20.0, sd = 2.0 }
[arrival]
rate = 10
[[layout]]
name = "entities"
pk = "{sensor}"
rk = "{ts:%Y%m%d%H}"
[[layout]]
name = "series"
pk = "{sensor}"
rk = "{ts:%Y%m%d}"
fold = { property = "v{ts:%H}", from = "value" }
[[op]]
name = "op"
kind = "query"
)" + op;
}

TEST(FoldTest, ALimitIsOfRecordsNotOfTheEntitiesThatTheyAreIn) {
  const auto text = [](const std::string& limit) {
    return SeriesOfDaysText("where = { sensor = \"@record\" }\norder = \"ts\"\nlimit = " + limit + "\n");
  };
  const Experiment experiment = ParseSound(text("48"));
  const RecordGenerator generator(experiment);
  const Prediction told = Predict(generator);
  EXPECT_DOUBLE_EQ(told.layouts[0].ops[0].scanned, 48);
  EXPECT_DOUBLE_EQ(told.layouts[1].ops[0].scanned, 3) << "the first day may have begun late";
  EXPECT_DOUBLE_EQ(Predict(RecordGenerator(ParseSound(text("25")))).layouts[1].ops[0].scanned, 2);
  EXPECT_DOUBLE_EQ(Predict(RecordGenerator(ParseSound(text("1")))).layouts[1].ops[0].scanned, 1);
  EXPECT_FALSE(told.layouts[1].ops[0].client_filters) << "its key says whose they are";
  for (size_t layout : {0, 1}) {
    uint64_t top = 0;
    const std::atomic<bool> stop{false};
    const auto target = Target::Make(std::make_unique<AskedStore>(&top), experiment.layouts[layout],
                                     generator, stop, [](double) { return true; });
    ASSERT_TRUE(target.ok());
    EXPECT_TRUE((*target)->Execute({.op = 0, .record = 3, .existing = 480}).status.ok());
    EXPECT_EQ(top, layout == 0 ? 48u : 3u);
  }
}

TEST(FoldTest, OfWhatComesAsManyEntitiesAreReturnedAsTheLimitIsIn) {
  std::string text = SeriesOfDaysText(
      "where = { sensor = { one_of = [\"s0\", \"s1\", \"s2\", \"s3\"] } }\norder = \"ts\"\nlimit = 48\n");
  text.replace(text.find("dist = \"constant\", value = \"s1\""), 31,
               "dist = \"template\", text = \"s{n % 4}\"");
  text.replace(text.find("step = \"1h\" }"), 13, "step = \"15m\" }\nn = { dist = \"sequence\" }");
  text.replace(text.find("records = 480"), 13, "records = 1920");
  const Experiment experiment = ParseSound(text);
  const RecordGenerator generator(experiment);
  const Prediction told = Predict(generator);
  for (size_t layout : {0, 1}) {
    const OpPrediction& of = told.layouts[layout].ops[0];
    EXPECT_DOUBLE_EQ(of.density(), 0.25) << "each of four sensors is asked for as many as there are to be";
    uint64_t top = 0;
    const std::atomic<bool> stop{false};
    const auto target = Target::Make(std::make_unique<AskedStore>(&top), experiment.layouts[layout],
                                     generator, stop, [](double) { return true; });
    ASSERT_TRUE(target.ok());
    const Outcome outcome = (*target)->Execute({.op = 0, .record = 3, .existing = 1920});
    EXPECT_EQ(outcome.returned, top);
    EXPECT_EQ(outcome.scanned, 4 * top);
  }
}

TEST(FoldTest, WhatTheClientFiltersIsNotToldAsReturned) {
  const Experiment experiment = ParseSound(SeriesOfDaysText(
      "where = { sensor = \"@record\", value = { from = 23.0, to = 24.0 } }\norder = \"ts\"\nlimit = 12\n"));
  const RecordGenerator generator(experiment);
  const Prediction told = Predict(generator);
  EXPECT_FALSE(told.layouts[0].ops[0].client_filters);
  EXPECT_TRUE(told.layouts[1].ops[0].client_filters);
  EXPECT_DOUBLE_EQ(told.layouts[1].ops[0].scanned, 20) << "all that may hold some";
  EXPECT_THAT(PredictionText(experiment, told),
              HasSubstr("scans 20, returns 20, of which the client filters what is wanted\n"));
  uint64_t top = 7;
  const std::atomic<bool> stop{false};
  const auto target = Target::Make(std::make_unique<AskedStore>(&top), experiment.layouts[1], generator, stop,
                                   [](double) { return true; });
  ASSERT_TRUE(target.ok());
  const Outcome outcome = (*target)->Execute({.op = 0, .record = 3, .existing = 480});
  EXPECT_EQ(top, 0u);
  EXPECT_TRUE(outcome.client_filters);
  EXPECT_EQ(outcome.returned, 20u) << "of which the client takes twelve records, which may be in any";
  const OpFigures figures{.operations = 1, .completed = 1, .scanned = 20, .returned = 20, .unfiltered = 1};
  EXPECT_TRUE(HasFigure("scanned", figures));
  for (const char* metric : {"returned", "density"}) EXPECT_FALSE(HasFigure(metric, figures)) << metric;
}

TEST(FoldTest, OfWholeDaysNothingIsLeftToFilter) {
  const auto filters = [](const std::string& from, const std::string& to, const std::string& pk,
                          const std::string& rk) {
    std::string text = SeriesOfDaysText("where = { sensor = \"@record\", ts = { from = \"2026-01-" + from +
                                        ":00Z\", to = \"2026-" + to + ":00Z\" } }\n");
    const std::string keys = "pk = \"{sensor}\"\nrk = \"{ts:%Y%m%d}\"";
    text.replace(text.find(keys), keys.size(), "pk = \"" + pk + "\"\nrk = \"" + rk + "\"");
    return Predict(RecordGenerator(ParseSound(text))).layouts[1].ops[0].client_filters;
  };
  EXPECT_FALSE(filters("03T00:00", "01-13T00:00", "{sensor}", "{ts:%Y%m%d}"));
  EXPECT_TRUE(filters("03T00:00", "01-13T06:00", "{sensor}", "{ts:%Y%m%d}"));
  EXPECT_TRUE(filters("03T06:00", "01-13T00:00", "{sensor}", "{ts:%Y%m%d}"));
  EXPECT_FALSE(filters("03T00:00", "01-13T00:00", "{sensor}_{ts:%Y%m%d}", ""));
  EXPECT_TRUE(filters("03T06:00", "01-13T00:00", "{sensor}_{ts:%Y%m%d}", ""));
  EXPECT_FALSE(filters("03T00:00", "01-13T00:00", "{sensor}_{ts:%Y%m}", "{ts:%d}"));
  EXPECT_TRUE(filters("03T00:00", "01-13T00:00", "{sensor}_{ts:%Y%m}", ""));
  EXPECT_FALSE(filters("01T00:00", "02-01T00:00", "{sensor}_{ts:%Y%m}", ""));
}

TEST(FoldTest, APaddedNumberIsToldByTheKey) {
  std::string text = SeriesOfDaysText("where = { sensor = \"@record\" }\n");
  text.replace(text.find("dist = \"constant\", value = \"s1\""), 31, "dist = \"uniform\", n = 300");
  const std::string keys = "pk = \"{sensor}\"\nrk = \"{ts:%Y%m%d}\"";
  text.replace(text.find(keys), keys.size(), "pk = \"{pad(sensor, 2)}\"\nrk = \"{ts:%Y%m%d}\"");
  EXPECT_FALSE(Predict(RecordGenerator(ParseSound(text))).layouts[1].ops[0].client_filters);
}

TEST(ModifyTest, AChangeThatCameBetweenIsReadAnew) {
  const Experiment experiment =
      ParseSound(StaffText("[[layout]]\nname = \"one\"\npk = \"all\"\nrk = \"{id}\"\n",
                           "[[op]]\nname = \"raise\"\nkind = \"modify\"\nset = [\"pay\"]\n"));
  const RecordGenerator generator(experiment);
  const std::atomic<bool> stop{false};
  MemoryStore* store = nullptr;
  const std::unique_ptr<Target> target = TargetOn(&store, generator, stop);
  std::atomic<uint64_t> requests{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (uint64_t k = 0; k < 200; ++k) {
        const Outcome outcome = target->Execute({.number = k, .op = 1, .record = 5});
        EXPECT_TRUE(outcome.status.ok()) << outcome.status.ToString();
        requests += outcome.requests;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(requests.load(), 4 * 200 * 2 + 2 * store->refused());
}

TEST(OrFilterTest, OneRequestNamesAllRows) {
  const Experiment experiment = ParseSound(StaffText(
      "[[layout]]\nname = \"or\"\npk = \"all\"\nrk = \"{id}\"\none_of = \"filter\"\n",
      "[[op]]\nname = \"two\"\nkind = \"query\"\nwhere = { id = { one_of = [\"000001\", \"000003\"] } }\n"));
  const RecordGenerator generator(experiment);
  const auto plan = PlanRead(experiment.layouts[0], experiment.ops[1], {.op = 1, .existing = 400}, generator);
  ASSERT_TRUE(plan.ok());
  ASSERT_EQ(plan->parts.size(), 1u);
  EXPECT_EQ(plan->parts[0].filter.whole(),
            "PartitionKey eq 'all' and (RowKey eq '000001' or RowKey eq '000003')");
  const LayoutPrediction told = Predict(generator).layouts[0];
  EXPECT_EQ(told.ops[1].plan, "partition");
  EXPECT_DOUBLE_EQ(told.ops[1].scanned, 400);
  EXPECT_DOUBLE_EQ(told.ops[1].returned, 2);
}

}  // namespace
}  // namespace partita::lab
