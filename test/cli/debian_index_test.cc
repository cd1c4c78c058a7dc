#include "api/cli/debian_index.h"

#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include <random>

#include "api/cli/debian_index_check.h"
#include "api/limits.h"
#include "api/names.h"
#include "engine/base/text.h"

namespace partita {
namespace {

using ::testing::HasSubstr;

std::vector<Result<Entity>> ReadAll(DebianIndexReader* reader) {
  std::vector<Result<Entity>> records;
  while (std::optional<Result<Entity>> record = reader->Next()) records.push_back(*std::move(record));
  return records;
}

DebianIndexReader ReaderOf(std::string_view text, size_t max = kRecordBytesMax) {
  return DebianIndexReader(std::make_unique<MemorySource>(text, 17), max);
}

TEST(DebianIndexTest, AStanzaBecomesAnEntityWithItsFieldsInOrder) {
  DebianIndexReader reader = ReaderOf(
      "\nPackage: 0ad\nVersion: 0.0.26-3\nInstalled-Size: 28591\nSection: contrib/games\nMulti-Arch:foreign  "
      "\n"
      "Tag: game::strategy,\n uitoolkit::sdl,\n\tx11\nHomepage:\nSize: 7891488\n\n\n");
  const std::vector<Result<Entity>> records = ReadAll(&reader);
  ASSERT_EQ(records.size(), 1u);
  ASSERT_TRUE(records[0].ok()) << records[0].status().ToString();
  Entity expected("contrib:games", "0ad_0.0.26-3");
  expected.Set("Package", "0ad").Set("Version", "0.0.26-3").Set("Installed_Size", int64_t{28591});
  expected.Set("Section", "contrib/games").Set("Multi_Arch", "foreign");
  expected.Set("Tag", "game::strategy,\nuitoolkit::sdl,\nx11")
      .Set("Homepage", "")
      .Set("Size", int64_t{7891488});
  EXPECT_EQ(*records[0], expected);
  EXPECT_EQ(reader.line_number(), 2u);
  EXPECT_EQ(reader.counts().key_characters_replaced, 1u);
  EXPECT_EQ(reader.counts().names_changed, 2u);
  EXPECT_EQ(reader.counts().numbers, 2u);
  EXPECT_EQ(reader.counts().continuation_lines, 2u);
  EXPECT_EQ(reader.counts().fields, 8u);
  EXPECT_THAT(reader.counts().ToString(), HasSubstr("characters replaced in keys: 1\n"));
}

TEST(DebianIndexTest, NamesAreMappedToOnesThatTablesTake) {
  EXPECT_EQ(DebianPropertyName("Installed-Size"), "Installed_Size");
  EXPECT_EQ(DebianPropertyName("X.Y+Z"), "X_Y_Z");
  EXPECT_EQ(DebianPropertyName("7zip"), "_7zip");
  EXPECT_EQ(DebianPropertyName("Timestamp"), "Timestamp_");
  EXPECT_EQ(DebianPropertyName("\xC3\xBC"), "__");
  for (const char* name : {"Installed-Size", "7zip", "Timestamp", "\xC3\xBC", "-"}) {
    EXPECT_TRUE(CheckPropertyName(DebianPropertyName(name)).ok()) << name;
  }
}

TEST(DebianIndexTest, AMissingSectionAndAnOddNumberAreStated) {
  DebianIndexReader reader = ReaderOf("Package: a\nVersion: 1\nSize: big\n");
  const std::vector<Result<Entity>> records = ReadAll(&reader);
  EXPECT_EQ(records.at(0)->partition_key(), "none");
  EXPECT_EQ(*records.at(0)->GetString("Size"), "big");
  EXPECT_EQ(reader.counts().sections_missing, 1u);
  EXPECT_EQ(reader.counts().numbers_kept_as_text, 1u);
}

TEST(DebianIndexTest, ALongValueIsCutBetweenCharactersAndJoinsAgain) {
  std::string value = "x";
  for (int i = 0; i < 40'000; ++i)
    value += "\xF0\x9F\x98\x80";  // Two units each: no cut falls on an even place.
  const std::string stanza = "Package: a\nVersion: 1\nProvides: " + value + "\nEnd: z\n";
  DebianIndexReader reader = ReaderOf(stanza);
  const std::vector<Result<Entity>> records = ReadAll(&reader);
  ASSERT_TRUE(records.at(0).ok()) << records.at(0).status().ToString();
  std::string joined;
  for (const char* name : {"Provides", "Provides_2", "Provides_3"}) {
    ASSERT_NE(records[0]->GetString(name), nullptr) << name;
    EXPECT_LE(Utf16Units(*records[0]->GetString(name)), kStringUnitsMax);
    joined += *records[0]->GetString(name);
  }
  EXPECT_EQ(joined, value);
  EXPECT_FALSE(records[0]->Has("Provides_4"));
  EXPECT_EQ(reader.counts().values_split, 1u);
  EXPECT_EQ(reader.counts().parts_added, 2u);
  EXPECT_EQ(CompareWithStanza(*records[0], stanza), "");
}

TEST(DebianIndexTest, RepeatedRowsAreToldApartByArchitecture) {
  const auto stanza = [](std::string_view architecture, int mark) {
    return "Package: a\nVersion: 1\nSection: s\nArchitecture: " + std::string(architecture) +
           "\nMark: " + std::to_string(mark) + "\n\n";
  };
  const std::string input =
      stanza("amd64", 1) + stanza("i386", 2) + stanza("amd64", 3) + stanza("i386", 4) + stanza("a/b", 5);
  DebianIndexReader reader = ReaderOf(input);
  std::vector<std::string> rows;
  for (const Result<Entity>& record : ReadAll(&reader)) rows.push_back(record->row_key());
  EXPECT_THAT(rows, testing::ElementsAre("a_1", "a_1_i386", "a_1", "a_1_i386", "a_1_a:b"));
  EXPECT_EQ(reader.counts().rows_made_unique, 2u);
  EXPECT_EQ(reader.counts().rows_repeated, 2u);
  EXPECT_EQ(reader.counts().entities, 5u);
}

TEST(DebianIndexTest, EachBadStanzaIsToldAndTheStreamGoesOn) {
  const std::string input =
      "Package: a\nno colon\nVersion: 1\n\n"
      "Package: a\nPackage: a\nVersion: 1\n\n"
      "Package: a\nVersion: 1\nA-B: x\nA_B: y\n\n"
      " continued\nPackage: a\n\n"
      "Package: a\n\n"
      "Version: 1\n\n"
      "Package: \xFF\nVersion: 1\n\n"
      "Package: long\nVersion: 1\nText: " +
      std::string(300, 'x') +
      "\n\n"
      "Package: good\nVersion: 2\n";
  DebianIndexReader reader = ReaderOf(input, 200);
  const std::vector<Result<Entity>> records = ReadAll(&reader);
  const char* messages[] = {
      "stanza at line 1: line 2: no field name and colon in \"no colon\"",
      "stanza at line 5: field \"Package\": the stanza already gave property \"Package\"",
      "stanza at line 9: field \"A_B\": the stanza already gave property \"A_B\"",
      "stanza at line 14: line 14: a continuation line at the start of a stanza",
      "stanza at line 17: the stanza has no Version",
      "stanza at line 19: the stanza has no Package",
      "stanza at line 21: RowKey \"\\xFF_1\" is not well-formed UTF-8 at byte 0",
      "stanza at line 24: line 26: has 307 bytes; allowed are 200"};
  ASSERT_EQ(records.size(), std::size(messages) + 1);
  for (size_t i = 0; i < std::size(messages); ++i) {
    EXPECT_THAT(records[i].status().message(), testing::StartsWith(messages[i]));
    EXPECT_NE(ViolationOf(records[i].status()), Violation::kNone);
  }
  EXPECT_EQ(records.back()->row_key(), "good_2");
  EXPECT_EQ(reader.counts().stanzas, records.size());
  EXPECT_EQ(reader.counts().entities, 1u);
}

// covers: F77
TEST(DebianIndexTest, AStanzaOfManyFieldsIsRefusedBeforeTheyAreLookedAt) {
  std::string fields;
  for (size_t i = 0; i < kCustomPropertiesMax - 2; ++i) fields += "f" + std::to_string(i) + ":\n";
  std::string more;
  for (size_t i = 0; i < 20'000; ++i) more += "g" + std::to_string(i) + ":\n";
  const std::string package = "Package: a\nVersion: 1\n";
  const std::string input = package + fields + "\n" + package + fields + "f:\n\n" + package + more;
  DebianIndexReader reader(std::make_unique<MemorySource>(input));
  const std::vector<Result<Entity>> records = ReadAll(&reader);
  ASSERT_EQ(records.size(), 3u);
  EXPECT_TRUE(records[0].ok()) << records[0].status().ToString();
  EXPECT_EQ(ViolationOf(records[1].status()), Violation::kTooManyProperties);
  EXPECT_EQ(ViolationOf(records[2].status()), Violation::kTooManyProperties);
  EXPECT_EQ(records[2].status().message(),
            "stanza at line 508: line 760: the stanza has more than 252 fields");
  EXPECT_EQ(reader.counts().fields, kCustomPropertiesMax);
}

TEST(DebianIndexTest, ResumingGivesTheSameRowKeys) {
  std::string input;
  for (int i = 0; i < 40; ++i) {
    input += "Package: p" + std::to_string(i % 9) +
             "\nVersion: 1\nArchitecture: " + (i % 4 == 0 ? "i386" : "amd64") +
             (i % 11 == 5 ? "\noops" : "") + "\nMark: " + std::to_string(i) + "\n\n";
  }
  for (int stop = 0; stop < 40; ++stop) {
    DebianIndexReader first = ReaderOf(input);
    for (int i = 0; i <= stop; ++i) ASSERT_TRUE(first.Next().has_value());
    DebianIndexReader second = ReaderOf(input);
    ASSERT_TRUE(second.SkipTo(first.resume_offset(), first.resume_line()).ok());
    while (std::optional<Result<Entity>> expected = first.Next()) {
      const std::optional<Result<Entity>> got = second.Next();
      ASSERT_EQ(got->ok(), expected->ok());
      if (got->ok()) ASSERT_EQ(got->value(), expected->value());
    }
    EXPECT_EQ(second.counts().ToString(), first.counts().ToString());
  }
  DebianIndexReader reader = ReaderOf(input);
  EXPECT_EQ(reader.SkipTo(3, 1).code(), Code::kInvalidArgument);
}

// Stanzas as strings, cut at blank lines: the input of the second parser.
std::vector<std::string> CutStanzas(const std::string& text) {
  std::vector<std::string> stanzas;
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find("\n\n", start), text.size());
    if (end > start) stanzas.push_back(text.substr(start, end - start));
    start = end + 2;
  }
  return stanzas;
}

TEST(DebianIndexTest, TheSecondParserAgreesOnRandomStanzas) {
  const uint64_t seed = 3;
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  static constexpr const char* kNames[] = {"Description", "X-Y", "Tag",  "9p",
                                           "RowKey",      "a.b", "Size", "Installed-Size"};
  static constexpr const char* kWords[] = {"a", " ", "/",  "\xC3\xBC", "\xF0\x9F\x98\x80",
                                           "1", "-", "\t", ":",        "12"};
  std::string input;
  for (int i = 0; i < 2'000; ++i) {
    input += "Package: p" + std::to_string(random() % 500) + "\nVersion: 1/" + std::to_string(random() % 3) +
             "\nArchitecture: " + (random() % 2 ? "amd64" : "all") + "\n";
    for (const char* name : kNames) {
      if (random() % 2 == 0) continue;
      input += std::string(name) + ":";
      for (uint64_t words = random() % 6; words > 0; --words) {
        input += kWords[random() % std::size(kWords)];
        if (random() % 5 == 0) input += "\n .";
      }
      input += "\n";
    }
    input += "\n";
  }
  DebianIndexReader reader = ReaderOf(input);
  const std::vector<Result<Entity>> records = ReadAll(&reader);
  const std::vector<std::string> stanzas = CutStanzas(input);
  ASSERT_EQ(records.size(), stanzas.size());
  for (size_t i = 0; i < records.size(); ++i) {
    ASSERT_TRUE(records[i].ok()) << records[i].status().ToString();
    ASSERT_EQ(CompareWithStanza(*records[i], stanzas[i]), "") << stanzas[i];
  }
}

TEST(DebianIndexTest, TheSecondParserSeesADifference) {
  const std::string stanza = "Package: a\nVersion: 1\nSize: 5\nTag: x\n";
  DebianIndexReader reader = ReaderOf(stanza);
  const Entity good = reader.Next()->value();
  EXPECT_EQ(CompareWithStanza(good, stanza), "");
  EXPECT_NE(CompareWithStanza(Entity(good).Set("Size", "5"), stanza), "");
  EXPECT_NE(CompareWithStanza(Entity(good).Set("Tag", "y"), stanza), "");
  EXPECT_NE(CompareWithStanza(Entity(good).Set("More", "y"), stanza), "");
  Entity less = good;
  less.Erase("Tag");
  EXPECT_NE(CompareWithStanza(less, stanza), "");
  Entity other = good;
  other.set_row_key("a_2");
  EXPECT_NE(CompareWithStanza(other, stanza), "");
}

}  // namespace
}  // namespace partita
