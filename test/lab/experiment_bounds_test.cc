#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include "test/lab/experiments.h"

// Files that are wrong in ways that computing with what they say would not survive.
namespace partita::lab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string FindingsOf(const std::string& text) {
  return FindingsText("x.toml", ParseExperiment(text, "x.toml").findings);
}

// A whole experiment with these fields, conditions and keys; `more` follows.
struct Parts {
  std::string fields = R"(id = { dist = "sequence" })", where = R"(id = "@record")";
  std::string pk = "all", rk = "{id:020}";
  std::string arrival = "model = \"constant\"\nrate = 10", records = "1000";
};

std::string TextOf(const Parts& parts) {
  return "name = \"x\"\n[data]\nrecords = " + parts.records + "\n[data.fields]\n" + parts.fields +
         "\n[[op]]\nname = \"q\"\nkind = \"query\"\nwhere = { " + parts.where +
         " }\n[[layout]]\nname = \"l\"\npk = \"" + parts.pk + "\"\nrk = \"" + parts.rk + "\"\n[arrival]\n" +
         parts.arrival + "\n";
}

std::string Of(const Parts& parts) { return FindingsOf(TextOf(parts)); }

constexpr const char* kClock = R"(id = { dist = "sequence" }
ts = { dist = "clock" })";

TEST(ExperimentBoundsTest, TheFileThatTheOthersChangeIsSound) {
  EXPECT_EQ(Of({}), "");
  EXPECT_EQ(Of({.fields = kClock, .where = R"(ts = "last 1h")", .rk = "{ticks(ts)}"}), "");
}

TEST(ExperimentBoundsTest, AWeightedFieldNeedsValues) {
  const std::string id = "id = { dist = \"sequence\" }\n";
  EXPECT_THAT(Of({.fields = id + R"(t = { dist = "weighted" })"}), HasSubstr("values: is missing"));
  EXPECT_THAT(Of({.fields = id + R"(t = { dist = "weighted", values = {} })"}),
              HasSubstr("values: is a table"));
  EXPECT_THAT(Of({.fields = id + R"(t = { dist = "weighted", values = { a = inf } })"}),
              HasSubstr("the weight of a"));
}

TEST(ExperimentBoundsTest, ThereIsSomethingToDoAndALayout) {
  const std::string head = "name = \"x\"\n",
                    data = "[data]\nrecords = 10\n[data.fields]\na = { dist = \"sequence\" }\n";
  const std::string arrival = "[arrival]\nmodel = \"closed\"\n";
  const std::string op = "[[op]]\nname = \"g\"\nkind = \"get\"\n",
                    layout = "[[layout]]\nname = \"l\"\npk = \"a\"\nrk = \"{a}\"\n";
  EXPECT_EQ(FindingsOf(head + data + op + layout + arrival), "");
  EXPECT_THAT(FindingsOf(head + "op = []\n" + data + layout + arrival), HasSubstr("op: needs at least one"));
  EXPECT_THAT(FindingsOf(head + "layout = []\n" + data + op + arrival),
              HasSubstr("layout: needs at least one"));
}

TEST(ExperimentBoundsTest, TimesOfConditionsLieWithinThoseThatThereAre) {
  const auto where = [](const std::string& condition) {
    return Of({.fields = kClock, .where = "ts = " + condition, .rk = "{ticks(ts)}"});
  };
  EXPECT_THAT(where(R"("last 200000d")"), HasSubstr("at most 36500d"));
  EXPECT_THAT(where(R"("last 0s")"), HasSubstr("a time above 0"));
  EXPECT_THAT(where(R"({ from_record = "0s" })"), HasSubstr("a time above 0"));
  EXPECT_THAT(where(R"({ from = "1601-01-01T00:00:00Z", to = "1601-01-01T00:00:00Z" })"),
              HasSubstr("'to' must lie above 'from'"));
  EXPECT_THAT(Of({.where = "id = { from = 3, to = -9223372036854775808 }"}),
              HasSubstr("'to' must lie above"));
  EXPECT_EQ(
      Of({.fields =
              "id = { dist = \"sequence\" }\nts = { dist = \"clock\", start = \"1601-01-01T00:00:00Z\" }",
          .where = R"(ts = "last 36500d")",
          .rk = "{ts}"}),
      "")
      << "held at the first time that there is";
}

TEST(ExperimentBoundsTest, NumbersOfConditionsAreFinite) {
  const auto where = [](const std::string& condition) {
    return Of(
        {.fields = "id = { dist = \"sequence\" }\nx = { dist = \"normal\" }", .where = "x = " + condition});
  };
  EXPECT_EQ(where("{ from = 20.0, to = 1e300 }"), "");
  for (const char* condition :
       {"nan", "{ from = -inf, to = 3.0 }", "{ from = 20.0, to = inf }", "{ one_of = [1.0, nan] }"}) {
    EXPECT_THAT(where(condition), HasSubstr("is no finite number")) << condition;
  }
}

TEST(ExperimentBoundsTest, FieldsStayInTheirTypeForAllRecords) {
  const auto field = [](const std::string& text) {
    return Of({.fields = "id = { dist = \"sequence\" }\nf = { " + text + " }"});
  };
  EXPECT_THAT(field(R"(dist = "clock", step = "3650d")"), HasSubstr("step: the clock leaves"));
  EXPECT_THAT(field(R"(dist = "clock", step = "900000000d")"), HasSubstr("step: is at most 36500d"));
  EXPECT_THAT(field(R"(dist = "sequence", start = 9223372036854775807)"),
              HasSubstr("step: the numbers leave"));
  EXPECT_THAT(field(R"(dist = "sequence", step = -9223372036854775808)"),
              HasSubstr("step: the numbers leave"));
  EXPECT_EQ(Of({.rk = "{id % 9223372036854775807:020}"}), "");
}

TEST(ExperimentBoundsTest, TimesOfARunAreNotNegativeNorWithoutEnd) {
  const auto arrival = [](const std::string& text) { return Of({.arrival = text}); };
  EXPECT_THAT(arrival("model = \"replay\"\ntimes = [-5, 1]"),
              HasSubstr("times takes numbers from 0 to 604800"));
  EXPECT_THAT(arrival("model = \"replay\"\ntimes = [1, 1e18]"),
              HasSubstr("times takes numbers from 0 to 604800"));
  for (const char* time : {"warmup", "duration", "think", "on", "off", "period"}) {
    EXPECT_THAT(arrival(std::string("model = \"closed\"\n") + time + " = \"900000000d\""),
                HasSubstr(std::string(time) + ": is at most 7d"));
  }
}

TEST(ExperimentBoundsTest, WhatHasNoEffectIsRefusedAndToldWhatItGoesWith) {
  for (const char* key :
       {"to = 500", "on = \"3s\"", "think = \"5s\"", "amplitude = 0.3", "times = [1.0]", "scale = 2"}) {
    EXPECT_THAT(Of({.arrival = std::string("rate = 10\n") + key}), HasSubstr("has an effect with model "))
        << key;
  }
  const auto field = [](const std::string& text) {
    return Of({.fields = "id = { dist = \"sequence\" }\nf = { dist = \"sequence\", " + text + " }"});
  };
  EXPECT_THAT(field("theta = 2.0"), HasSubstr("theta: has an effect with dist zipf only"));
  EXPECT_THAT(field("mean = 2.0"), HasSubstr("mean: has an effect with dist normal only"));
  EXPECT_THAT(field("late = 0.3"), HasSubstr("late: has an effect with dist clock only"));
  EXPECT_EQ(field("step = 3"), "");
  EXPECT_THAT(Of({.arrival = "model = \"closed\"\nrate = 10"}),
              HasSubstr("rate: has an effect with models but"));
  std::string get = TextOf({});
  get.replace(get.find("kind = \"query\"\nwhere = { id = \"@record\" }"), 41,
              "kind = \"get\"\nlimit = 3\norder = \"id desc\"");
  EXPECT_THAT(FindingsOf(get), AllOf(HasSubstr("limit: has an effect with kind query only"),
                                     HasSubstr("order: has an effect with kind query only")));
  const auto expects = [](const std::string& text) {
    return FindingsOf(TextOf({}) + "[[expect]]\nlayout = \"l\"\nop = \"q\"\n" + text);
  };
  EXPECT_EQ(expects("metric = \"plan\"\nis = \"point\"\n"), "");
  EXPECT_THAT(expects("metric = \"plan\"\nis = \"pointt\"\n"), HasSubstr("did you mean point"));
  EXPECT_THAT(expects("metric = \"scanned\"\nabove = 1\nis = \"point\"\n"),
              HasSubstr("is: has an effect with metric plan only"));
}

TEST(ExperimentBoundsTest, ARateStandsOnceButForSteps) {
  EXPECT_THAT(Of({.arrival = "rate = [20, 40, 20]"}), HasSubstr("rate: has a rate twice"));
  EXPECT_EQ(Of({.arrival = "model = \"steps\"\nrate = [20, 40, 20]"}), "");
  const auto own = [](const std::string& rates) {
    return Of({.rk = "{id}\"\n[layout.arrival]\nrate = " + rates + "\n#\"", .arrival = "rate = [20, 40]"});
  };
  EXPECT_THAT(own("[10, 10]"), HasSubstr("rate: has a rate twice"));
  EXPECT_EQ(own("[10, 20]"), "");
}

TEST(ExperimentBoundsTest, OfManyRecordsNoTwoHaveTheSameKeys) {
  const std::string drawn = R"(id = { dist = "uniform", n = 1_000_000_000 })";
  EXPECT_EQ(Of({.fields = drawn, .records = "1000"}), "");
  EXPECT_THAT(Of({.fields = drawn, .records = "200_000"}), HasSubstr("have the same keys"))
      << "some twenty of them do";
}

TEST(ExperimentBoundsTest, NoRecordThatARunAddsHasTheKeysOfAnother) {
  const std::string drawn = R"(id = { dist = "uniform", n = 1_000_000_000 })";
  const auto with_inserts = [&](const std::string& arrival) {
    return FindingsOf(TextOf({.fields = drawn, .arrival = arrival}) +
                      "[[op]]\nname = \"add\"\nkind = \"upsert\"\n");
  };
  EXPECT_EQ(with_inserts("rate = 10"), "");
  EXPECT_THAT(with_inserts("rate = 2000\nduration = \"3m\""), HasSubstr("have the same keys"))
      << "some twenty of 180,000 do";
  EXPECT_THAT(with_inserts("model = \"closed\""), HasSubstr("have the same keys"));
  EXPECT_EQ(with_inserts("model = \"closed\"\nclients = 4\nthink = \"1s\""), "")
      << "four clients that think write 28 of them at most";
}

TEST(ExperimentBoundsTest, ACopyDiffersFromTheRecordInItsKeysNotInTheirTemplates) {
  const auto copied = [](const std::string& rk, const std::string& more = "") {
    return FindingsOf(TextOf({.fields = "id = { dist = \"sequence\" }\nsame = { dist = \"sequence\" }"}) +
                      "[[layout.copy]]\nname = \"twin\"\npk = \"all\"\nrk = \"" + rk + "\"\n" + more);
  };
  EXPECT_EQ(copied("twin-{same:020}"), "");
  EXPECT_THAT(copied("{same:020}"), HasSubstr("records 0 and 0 (twin) have the same keys"));
  EXPECT_EQ(copied("{same:020}", "table = \"Twins\"\n"), "");
  for (const std::string table : {"Aside", "Twins"}) {
    EXPECT_THAT(copied("{same % 500}", "table = \"" + table + "\"\n"),
                HasSubstr("records 0 (twin) and 500 (twin) have the same keys"));
  }
  EXPECT_THAT(copied("{id:020}"), HasSubstr("'twin' has the keys of another entity of the layout"));
}

TEST(ExperimentBoundsTest, TheLastRecordsAreLookedAtAsWell) {
  const std::string fields =
      "id = { dist = \"sequence\" }\npart = { dist = \"template\", text = \"{id / 3500}\" }";
  const auto type = [](const std::string& name, const std::string& part) {
    return "\"\n[[layout.type]]\nname = \"" + name + "\"\nwhen = { part = \"" + part + "\" }\nrk = \"{id}";
  };
  EXPECT_EQ(Of({.fields = fields, .rk = "{id}" + type("a", "0") + type("b", "1"), .records = "3999"}), "");
  EXPECT_THAT(Of({.fields = fields, .rk = "{id}" + type("a", "0") + type("b", "2"), .records = "3999"}),
              HasSubstr("is of none of the types"))
      << "from record 3,500 on";
}

TEST(ExperimentBoundsTest, TheNameIsTheNameOfAFile) {
  for (const char* name : {"", "..", ".x", "a/b", "../../etc", "a b"}) {
    std::string text = TextOf({});
    text.replace(0, std::string("name = \"x\"").size(), "name = \"" + std::string(name) + "\"");
    EXPECT_THAT(FindingsOf(text), HasSubstr("name: is of 1 to 100 letters")) << name;
  }
}

TEST(ExperimentBoundsTest, WhatReportsNameHasAName) {
  const std::string text = TextOf({});
  for (const char* name : {"name = \"q\"", "name = \"l\""}) {
    std::string nameless = text;
    nameless.replace(text.find(name), 10, "name = \"\"");
    EXPECT_THAT(FindingsOf(nameless), HasSubstr("name: is empty")) << name;
  }
  EXPECT_THAT(FindingsOf(text + "[[layout.copy]]\nname = \"\"\npk = \"{id}\"\nrk = \"\"\n"),
              HasSubstr("name: is empty"));
}

TEST(ExperimentBoundsTest, WhatIsFoldedFitsOneEntity) {
  const auto folded = [](const std::string& id, const std::string& bytes) {
    return "name = \"x\"\n[data]\nrecords = 300\n[data.fields]\nid = { dist = \"sequence\" }\n"
           "note = { dist = \"text\", bytes = " +
           bytes +
           " }\n[[op]]\nname = \"w\"\nkind = \"insert\"\n"
           "[[layout]]\nname = \"l\"\npk = \"a\"\nrk = \"{" +
           id +
           "}\"\n"
           "[layout.fold]\nproperty = \"p{id}\"\nfrom = \"note\"\n[arrival]\nmodel = \"closed\"\n";
  };
  EXPECT_EQ(FindingsOf(folded("id / 100", "10")), "");
  EXPECT_THAT(FindingsOf(folded("id / 1000", "10")),
              HasSubstr("with record 252 an entity has more than 252"));
  EXPECT_THAT(FindingsOf(folded("id / 100", "30000")), HasSubstr("an entity has more than 1 MiB"));
}

TEST(ExperimentBoundsTest, ExpressionsAndFanOutsAreBounded) {
  EXPECT_THAT(Of({.rk = "{" + std::string(100'000, '(') + "}"}), HasSubstr("at most 64 operators"));
  std::string sum = "{1";
  for (int i = 0; i < 100'000; ++i) sum += "+1";
  EXPECT_THAT(Of({.rk = sum + "}"}), HasSubstr("at most 64 operators"));
  std::string calls = "{id:020}";
  for (int i = 0; i < 100; ++i) calls += "{id}x";
  EXPECT_THAT(Of({.rk = calls}), HasSubstr("at most 64 parts"));
  EXPECT_EQ(Of({.pk = "{salt(256)}{salt(256)}{salt(256)}{salt(256)}", .rk = "{salt(256)}{salt(256)}{id}"}),
            "");
}

}  // namespace
}  // namespace partita::lab
