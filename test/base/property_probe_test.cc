#include "engine/base/property_probe.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace partita {
namespace {

class SomeNames : public PropertyNames {
 public:
  uint16_t IdOf(std::string_view name) const override { return name == "Name" ? 9 : name == "b" ? 4 : 0; }
  std::string_view NameOf(uint16_t id) const override { return id == 9 ? "Name" : id == 4 ? "b" : ""; }
};

// Names that begin alike, and of sizes around what a number and what one byte of size can hold.
const std::vector<std::string>& Names() {
  static const std::vector<std::string> names = {"a",
                                                 "b",
                                                 "ab",
                                                 "Name",
                                                 "Names",
                                                 "NamesX",
                                                 "NamesXY",
                                                 "NamesXYZ",
                                                 "NamesXYZW",
                                                 std::string(126, 'n'),
                                                 std::string(127, 'n'),
                                                 std::string(128, 'n'),
                                                 std::string(129, 'n'),
                                                 std::string(200, 'n')};
  return names;
}

PropertyValue RandomValue(std::mt19937_64& random) {
  switch (random() % 4) {
    case 0:
      return static_cast<int32_t>(random() % 100);
    case 1:
      return std::string(random() % 12, 'n');
    case 2:
      return random() % 2 == 0;
    default:
      return Binary{std::string(random() % 200, 'X')};
  }
}

void Compare(const PropertyNames* names_of_writer, const PropertyNames* names_of_reader, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<PropertyProbe> probes;
  for (const std::string& name : Names()) probes.emplace_back(name, names_of_reader);
  size_t found = 0;
  std::vector<Property> properties;
  for (int round = 0; round < 3000; ++round) {
    // Mostly like the one before, with other values.
    if (round % 5 == 0) {
      properties.clear();
      for (const std::string& name : Names()) {
        if (random() % 3 > 0) properties.push_back({name, {}});
      }
    }
    for (Property& property : properties) property.value = RandomValue(random);
    const std::string content = EncodeEntityRecord(properties, names_of_writer);
    const EntityRecordView record(content, names_of_reader);
    ASSERT_TRUE(record.Check().ok());
    for (PropertyProbe& probe : probes) {
      probe.Prefetch(content);
      const std::optional<PropertyView> expected = record.Find(probe.name());
      const std::optional<PropertyView> view = probe.Find(content);
      ASSERT_EQ(view.has_value(), expected.has_value()) << probe.name();
      if (!view) continue;
      ++found;
      ASSERT_EQ(view->name(), probe.name());
      ASSERT_EQ(view->type(), expected->type());
      ASSERT_EQ(view->raw().data(), expected->raw().data());
      ASSERT_EQ(view->raw().size(), expected->raw().size());
    }
  }
  EXPECT_GT(found, 10'000u);
}

TEST(PropertyProbeTest, FindsWhatTheDirectorySearchFinds) {
  const SomeNames ids;
  Compare(nullptr, nullptr, 1);
  Compare(&ids, &ids, 2);
  // Records from before the names had ids.
  Compare(nullptr, &ids, 3);
}

TEST(PropertyProbeTest, ANameTooLongForARecordIsInNone) {
  // The start of its value goes on as the name asked for does.
  const std::string tail(kInlineNameSizeMax + 1, 'n');
  const std::vector<Property> properties = {{"n", tail}};
  const std::string content = EncodeEntityRecord(properties);
  PropertyProbe probe("n" + tail, nullptr);
  EXPECT_FALSE(probe.Find(content).has_value());
  EXPECT_TRUE(PropertyProbe("n", nullptr).Find(content).has_value());
}

TEST(PropertyProbeTest, AnEmptyRecordHasNoProperties) {
  const std::string content = EncodeEntityRecord({});
  PropertyProbe probe("a", nullptr);
  probe.Prefetch(content);
  EXPECT_FALSE(probe.Find(content).has_value());
}

// The content in memory of its own size, so that a look beyond it shows.
void FindInAll(std::vector<PropertyProbe>* probes, std::string_view content) {
  const std::vector<char> exact(content.begin(), content.end());
  const std::string_view view(exact.data(), exact.size());
  const bool is_record = EntityRecordView(view).Check().ok();
  for (PropertyProbe& probe : *probes) {
    PropertyProbe fresh = probe;
    fresh.Prefetch(view);
    const std::optional<PropertyView> found = fresh.Find(view);
    if (is_record) EXPECT_FALSE(fresh.met_unreadable());
    if (!found) continue;
    EXPECT_EQ(found->name(), probe.name());
    (void)found->code();
    EXPECT_LE(found->ToValue().type(), PropertyType::kBinary);
    ASSERT_GE(found->raw().data(), view.data());
    ASSERT_LE(found->raw().data() + found->raw().size(), view.data() + view.size());
  }
}

// covers: F42 F77
TEST(PropertyProbeTest, BytesThatAreNoRecordAreNotLookedBeyond) {
  std::mt19937_64 random(4);
  std::vector<PropertyProbe> probes;
  for (const std::string& name : Names()) probes.emplace_back(name, nullptr);
  for (int round = 0; round < 2000; ++round) {
    std::vector<Property> properties;
    for (const std::string& name : Names()) {
      if (random() % 3 > 0) properties.push_back({name, RandomValue(random)});
    }
    std::string content = EncodeEntityRecord(properties);
    for (PropertyProbe& probe : probes) (void)probe.Find(content);  // Where to look first.
    if (random() % 2 == 0) content.resize(random() % (content.size() + 1));
    for (uint64_t changes = random() % 4; changes > 0 && !content.empty(); --changes) {
      // Mostly of the directory.
      const size_t at = random() % std::min<size_t>(content.size(), random() % 4 == 0 ? SIZE_MAX : 100);
      content[at] = static_cast<char>(random());
    }
    FindInAll(&probes, content);
  }
}

TEST(PropertyProbeTest, WhatIsNoRecordOfThisFormatIsUnreadable) {
  const std::vector<Property> properties = {{"a", 1}, {"b", 2}};
  const std::string sound = EncodeEntityRecord(properties);
  std::string newer = sound;
  newer[0] = 2;
  std::string of_an_id = sound;  // Nobody knows its name.
  of_an_id[kEntityRecordHeaderSize] = 7;
  std::string of_no_type = sound;
  of_no_type[kEntityRecordHeaderSize + 5] = 9;
  std::string of_no_date = EncodeEntityRecord(std::vector<Property>{{"a", DateTime{kDateTimeTicksMax}}});
  of_no_date.back() = '\xFF';
  const std::string counter = {44, 1};  // Of a raw table, say.
  for (const std::string& content : {std::string(), std::string("\1"), counter, std::string("\1\3"), newer,
                                     of_an_id, of_no_type, of_no_date}) {
    PropertyProbe probe("a", nullptr);
    EXPECT_TRUE(probe.Find(sound).has_value());
    EXPECT_FALSE(probe.met_unreadable());
    probe.Prefetch(content);
    EXPECT_FALSE(probe.Find(content).has_value());
    EXPECT_TRUE(probe.met_unreadable());
  }
}

}  // namespace
}  // namespace partita
