#include "engine/base/entity_record.h"

#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <thread>

#include "engine/base/text.h"
#include "engine/base/user_key.h"

namespace partita {
namespace {

using ::testing::ElementsAre;

class FixedNames : public PropertyNames {
 public:
  explicit FixedNames(std::map<std::string, uint16_t, std::less<>> ids) : ids_(std::move(ids)) {
    for (const auto& [name, id] : ids_) names_[id] = name;
  }
  uint16_t IdOf(std::string_view name) const override {
    const auto it = ids_.find(name);
    return it == ids_.end() ? 0 : it->second;
  }
  std::string_view NameOf(uint16_t id) const override {
    const auto it = names_.find(id);
    return it == names_.end() ? std::string_view() : std::string_view(it->second);
  }

 private:
  std::map<std::string, uint16_t, std::less<>> ids_;
  std::map<uint16_t, std::string> names_;
};

std::string Hex(std::string_view bytes) {
  std::string out;
  for (char c : bytes) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", static_cast<unsigned>(static_cast<uint8_t>(c)));
    out += two;
  }
  return out;
}

std::vector<Property> Decode(std::string_view content, const PropertyNames* names = nullptr) {
  const EntityRecordView view(content, names);
  EXPECT_EQ(view.Check().ToString(), "Ok");
  std::vector<Property> properties;
  for (size_t k = 0; k < view.property_count(); ++k) {
    properties.push_back({std::string(view.inserted(k).name()), view.inserted(k).ToValue()});
  }
  return properties;
}

std::vector<Property> OneOfEach() {
  Guid guid;
  for (size_t i = 0; i < 16; ++i) guid.bytes[i] = static_cast<uint8_t>(i * 17);
  return {{"text", "na\xC3\xAFve \xEE\x80\x80\xEF\xBF\xBF"},
          {"small", -3},
          {"big", int64_t{1} << 60},
          {"ratio", -0.0},
          {"flag", true},
          {"when", DateTime{kDateTimeTicksMax}},
          {"id", guid},
          {"blob", Binary{std::string("\0\xFF\xEE", 3)}},
          {"empty", ""}};
}

PropertyValue RandomValue(std::mt19937_64* random) {
  switch ((*random)() % 8) {
    case 0: {
      std::string text;
      for (size_t i = (*random)() % 20; i > 0; --i) AppendUtf8Character(&text, (*random)() % 0xD800);
      return text;
    }
    case 1:
      return static_cast<int32_t>((*random)());
    case 2:
      return static_cast<int64_t>((*random)());
    case 3:
      return std::bit_cast<double>((*random)());
    case 4:
      return ((*random)() & 1) != 0;
    case 5:
      return DateTime{(*random)() % (kDateTimeTicksMax + 1)};
    case 6: {
      Guid guid;
      for (uint8_t& byte : guid.bytes) byte = static_cast<uint8_t>((*random)());
      return guid;
    }
    default:
      return Binary{std::string((*random)() % 30, static_cast<char>((*random)()))};
  }
}

// Distinct names from a small pool, so that merges meet.
std::vector<Property> RandomProperties(std::mt19937_64* random, size_t pool) {
  std::vector<size_t> numbers(pool);
  for (size_t i = 0; i < pool; ++i) numbers[i] = i;
  std::shuffle(numbers.begin(), numbers.end(), *random);
  numbers.resize((*random)() % (pool + 1));
  std::vector<Property> properties;
  for (size_t number : numbers) properties.push_back({"p" + std::to_string(number), RandomValue(random)});
  return properties;
}

TEST(EntityRecordTest, GoldenBytesOfTheFormat) {
  const std::vector<Property> properties = {{"b", 1}, {"a", "\xEE\x80\x80"}, {"k", true}};
  const FixedNames names({{"k", 7}});
  EXPECT_EQ(Hex(EncodeEntityRecord(properties, &names)),
            "0103"          // Format 1, three properties.
            "000017000001"  // Directory: "a" inline, String, cell at 23;
            "00001c000002"  // "b" inline, Int32, cell at 28;
            "070026000005"  // id 7, Boolean, cell at 38.
            "010002"        // Insert order: b, a, k.
            "0161f58080"    // "a": ordered text, EE written as F5.
            "01620100000000000080"
            "0100000000000000");
}

// Made before whatever the thread may keep to write by, so it ends after that.
struct EncodesAtItsEnd {
  const std::vector<Property>* properties = nullptr;
  std::string* record = nullptr;
  ~EncodesAtItsEnd() {
    if (properties == nullptr) return;
    // In what was kept, if it is gone: nothing is written there.
    const std::vector<std::string> others(8, std::string(790, 'x'));
    *record = EncodeEntityRecord(*properties);
    for (const std::string& other : others) EXPECT_EQ(other, std::string(790, 'x'));
  }
};

TEST(EntityRecordTest, AThreadMayWriteAtItsVeryEnd) {
  std::vector<Property> properties;
  for (int i = 0; i < 20; ++i) properties.push_back({"Name" + std::to_string(i), PropertyValue(i)});
  std::string first, last_of_thread;
  std::thread([&] {
    thread_local EncodesAtItsEnd last;
    last.properties = &properties;
    last.record = &last_of_thread;
    first = EncodeEntityRecord(properties);
  }).join();
  EXPECT_EQ(last_of_thread, first);
}

TEST(EntityRecordTest, AnEmptyEntityIsTwoBytes) {
  const std::string content = EncodeEntityRecord({});
  EXPECT_EQ(Hex(content), "0100");
  EXPECT_TRUE(Decode(content).empty());
  EXPECT_FALSE(EntityRecordView(content).Find("a").has_value());
}

TEST(EntityRecordTest, EveryTypeComesBackInTheOrderGiven) {
  const std::vector<Property> properties = OneOfEach();
  EXPECT_EQ(Decode(EncodeEntityRecord(properties)), properties);
}

TEST(EntityRecordTest, FindReadsOnePropertyAndNoOther) {
  const std::string content = EncodeEntityRecord(OneOfEach());
  const EntityRecordView view(content);
  for (const Property& property : OneOfEach()) {
    const std::optional<PropertyView> found = view.Find(property.name);
    ASSERT_TRUE(found.has_value()) << property.name;
    EXPECT_EQ(found->ToValue(), property.value);
    EXPECT_EQ(found->code(), OrderedCode(property.value)) << property.name;
  }
  for (const char* absent : {"", "a", "tex", "text2", "zzz", "Text"})
    EXPECT_FALSE(view.Find(absent)) << absent;
}

TEST(EntityRecordTest, AnInlineNameIsFoundAfterItGotAnId) {
  const std::vector<Property> properties = {{"x", 1}, {"y", 2}, {"z", 3}};
  const std::string before = EncodeEntityRecord(properties);
  const FixedNames names({{"y", 1}, {"w", 2}});
  const std::string after = EncodeEntityRecord(properties, &names);
  EXPECT_LT(after.size(), before.size());
  for (const std::string& content : {before, after}) {
    EXPECT_EQ(Decode(content, &names), properties);
    EXPECT_EQ(EntityRecordView(content, &names).Find("y")->ToValue(), PropertyValue(2));
    EXPECT_EQ(EntityRecordView(content, &names).Find("y", 1)->ToValue(), PropertyValue(2));
    EXPECT_FALSE(EntityRecordView(content, &names).Find("w"));
  }
  EXPECT_EQ(EntityRecordView(after).Check().code(), Code::kCorruption) << "an id without a name";
}

TEST(EntityRecordTest, LongNamesAndTheFullCountFit) {
  std::vector<Property> properties;
  for (int i = 0; i < 255; ++i) {
    properties.push_back({std::string(i < 3 ? 765 : 127 + i % 2, 'n') + std::to_string(1000 + i), i});
  }
  EXPECT_EQ(Decode(EncodeEntityRecord(properties)), properties);
}

TEST(EntityRecordTest, RandomEntitiesComeBack) {
  const uint64_t seed = 99;
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  const FixedNames names({{"p1", 1}, {"p4", 2}, {"p9", 3}});
  for (int round = 0; round < 5'000; ++round) {
    const std::vector<Property> properties = RandomProperties(&random, 20);
    const PropertyNames* used = round % 2 == 0 ? &names : nullptr;
    const std::string content = EncodeEntityRecord(properties, used);
    ASSERT_EQ(Decode(content, used), properties);
    size_t billed = 0;
    for (size_t i = 0; i < properties.size(); ++i) {
      const EntityRecordView view(content, used);
      ASSERT_EQ(view.Find(properties[i].name)->ToValue(), properties[i].value);
      billed += view.inserted(i).BilledSize();
    }
    ASSERT_EQ(EntityRecordView(content, used).BilledSize(), billed);
  }
}

// The directory of the entity before is tried first: it fits the next one, or it does not.
TEST(EntityRecordTest, NamesInAnyOrderOfAnyEntityBeforeComeBack) {
  std::vector<std::string> names = {"Alpha", "Beta", "Gamma", "Delta", "Alp", "Betaa", "Z"};
  std::mt19937_64 random(7);
  for (int i = 0; i < 2'000; ++i) {
    if (i % 3 == 0) std::shuffle(names.begin(), names.end(), random);
    if (i % 50 == 0) names[random() % names.size()] = "Name" + std::to_string(i);
    std::vector<Property> properties;
    for (size_t k = 0; k < names.size() - i / 7 % 3; ++k)
      properties.push_back({names[k], static_cast<int32_t>(k)});
    const std::string record = EncodeEntityRecord(properties);
    ASSERT_EQ(Decode(record), properties);
    for (const Property& property : properties) {
      ASSERT_EQ(EntityRecordView(record).Find(property.name)->ToValue(), property.value);
    }
  }
}

TEST(EntityRecordTest, BilledSizeFollowsTheServicesFormula) {
  // 8 + 2 * name + value; spec 8: Name = ten characters is 40, Age Int32 is 18.
  EXPECT_EQ(EntityRecordView(EncodeEntityRecord(std::vector<Property>{{"Name", "tencharact"}})).BilledSize(),
            40u);
  EXPECT_EQ(EntityRecordView(EncodeEntityRecord(std::vector<Property>{{"Age", 1}})).BilledSize(), 18u);
  EXPECT_EQ(EntityRecordView(EncodeEntityRecord(std::vector<Property>{{"a", Guid{}}})).BilledSize(), 26u);
}

TEST(MergeTest, ThePatchReplacesAndAddsInOrder) {
  const std::vector<Property> base = {{"c", 1}, {"a", "old"}, {"b", true}};
  const std::vector<Property> patch = {{"z", 9}, {"a", int64_t{5}}, {"y", ""}};
  const Result<std::string> merged = MergeEntityRecords(EncodeEntityRecord(base), EncodeEntityRecord(patch));
  ASSERT_TRUE(merged.ok());
  EXPECT_EQ(Decode(*merged),
            (std::vector<Property>{{"c", 1}, {"a", int64_t{5}}, {"b", true}, {"z", 9}, {"y", ""}}));
}

TEST(MergeTest, AgreesWithAMapOnRandomEntities) {
  const uint64_t seed = 5;
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  const FixedNames names({{"p2", 10}, {"p3", 11}, {"p17", 12}});
  for (int round = 0; round < 5'000; ++round) {
    const std::vector<Property> base = RandomProperties(&random, 20);
    const std::vector<Property> patch = RandomProperties(&random, 24);
    std::vector<Property> expected = base;
    for (const Property& property : patch) {
      const auto same = std::find_if(expected.begin(), expected.end(),
                                     [&](const Property& p) { return p.name == property.name; });
      if (same == expected.end()) {
        expected.push_back(property);
      } else {
        same->value = property.value;
      }
    }
    // Either half may have been written before the names had ids.
    const std::string base_content = EncodeEntityRecord(base, random() % 2 ? &names : nullptr);
    const std::string patch_content = EncodeEntityRecord(patch, random() % 2 ? &names : nullptr);
    const Result<std::string> merged = MergeEntityRecords(base_content, patch_content, &names);
    ASSERT_TRUE(merged.ok()) << merged.status().ToString();
    ASSERT_EQ(Decode(*merged, &names), expected);
    ASSERT_EQ(*merged, EncodeEntityRecord(expected, &names))
        << "a merge is what an insert would have written";
  }
}

TEST(MergeTest, TooManyPropertiesIsAnAnswerNotACrash) {
  std::vector<Property> base, patch;
  for (int i = 0; i < 200; ++i) base.push_back({"a" + std::to_string(i), i});
  for (int i = 0; i < 100; ++i) patch.push_back({"b" + std::to_string(i), i});
  EXPECT_EQ(MergeEntityRecords(EncodeEntityRecord(base), EncodeEntityRecord(patch)).code(),
            Code::kInvalidArgument);
}

TEST(MergeTest, AHalfThatIsNoRecordIsCorruption) {
  const std::string good = EncodeEntityRecord(OneOfEach());
  EXPECT_EQ(MergeEntityRecords(good, good.substr(0, good.size() - 40)).code(), Code::kCorruption);
  EXPECT_EQ(MergeEntityRecords("", good).code(), Code::kCorruption);
}

// covers: F42 F77
TEST(EntityRecordCheckTest, EveryCutIsRefused) {
  const std::string content = EncodeEntityRecord(std::vector<Property>{{"a", 1}, {"b", Guid{}}, {"c", 2.0}});
  for (size_t size = 0; size < content.size(); ++size) {
    EXPECT_EQ(EntityRecordView(content.substr(0, size)).Check().code(), Code::kCorruption) << size;
  }
}

// covers: F42 F77
TEST(EntityRecordCheckTest, AChangedByteIsRefusedOrReadsWithinBounds) {
  const FixedNames names({{"text", 7}, {"flag", 9}});
  std::string content = EncodeEntityRecord(OneOfEach(), &names);
  int refused = 0, walked = 0;
  for (size_t at = 0; at < content.size(); ++at) {
    const char kept = content[at];
    for (int value = 0; value < 256; ++value) {
      content[at] = static_cast<char>(value);
      const std::string exact = content;  // Its own heap block: a sanitizer sees one byte too far.
      const EntityRecordView view(exact, &names);
      const std::optional<size_t> billed = view.BilledSizeIfWalkable();
      ASSERT_EQ(billed.has_value(), view.IsWalkable());
      if (billed) {
        ++walked;
        ZoneCodes(exact, &names, [&](std::string_view name, PropertyType, uint64_t) {
          ASSERT_LE(name.size(), exact.size());
        });
      }
      if (!view.Check().ok()) {
        ++refused;
        continue;
      }
      ASSERT_TRUE(view.IsWalkable());
      ASSERT_EQ(*billed, view.BilledSize());
      size_t bytes = 0;
      for (size_t k = 0; k < view.property_count(); ++k) {
        const PropertyView property = view.inserted(k);
        bytes += property.raw().size();
        ASSERT_TRUE(view.Find(property.name()).has_value());
        if (const auto value_read = property.ToValue(); value_read.if_string()) {
          ASSERT_TRUE(IsValidUtf8(*value_read.if_string()));
        }
      }
      ASSERT_LE(bytes, exact.size());
    }
    content[at] = kept;
  }
  EXPECT_GT(refused, 10'000);
  EXPECT_GT(walked, 10'000);
}

// covers: F42
TEST(EntityRecordCheckTest, ACutIsWalkableOnlyWithinAValueWithoutSize) {
  const std::string content = EncodeEntityRecord(OneOfEach());
  ASSERT_TRUE(EntityRecordView(content).IsWalkable());
  for (size_t size = 0; size < content.size(); ++size) {
    const std::string cut = content.substr(0, size);  // As above.
    const EntityRecordView view(cut);
    if (!view.IsWalkable()) continue;
    // Only the last value may be shorter, where its type has no size.
    EXPECT_FALSE(CodeIsExact(view.stored(view.property_count() - 1).type())) << size;
    ZoneCodes(cut, nullptr, [](std::string_view, PropertyType, uint64_t) {});
  }
}

std::string WithByte(std::string content, size_t at, uint8_t value) {
  content[at] = static_cast<char>(value);
  return content;
}

TEST(EntityRecordCheckTest, EachRuleHasItsOwnMessage) {
  // Directory at 2, insert order at 14, cells at 16: "a" Int32, then "b" Boolean.
  const std::string content = EncodeEntityRecord(std::vector<Property>{{"a", 1}, {"b", true}});
  const auto message = [](const std::string& bytes) { return EntityRecordView(bytes).Check().ToString(); };
  EXPECT_THAT(message(content), "Ok");
  EXPECT_THAT(message(WithByte(content, 0, 2)), testing::HasSubstr("Unsupported: entity record: format 2"));
  EXPECT_THAT(message(WithByte(content, 4, 17)), testing::HasSubstr("first cell does not follow"));
  EXPECT_THAT(message(WithByte(content, 10, 255)), testing::HasSubstr("out of bounds"));
  EXPECT_THAT(message(WithByte(content, 7, 9)), testing::HasSubstr("unknown type"));
  EXPECT_THAT(message(WithByte(content, 2, 1)), testing::HasSubstr("id without a name"));
  EXPECT_THAT(message(WithByte(content, 15, 0)), testing::HasSubstr("not a permutation"));
  EXPECT_THAT(message(WithByte(content, 17, 'c')), testing::HasSubstr("not sorted by name"));
  EXPECT_THAT(message(WithByte(content, 17, 0xFF)), testing::HasSubstr("not UTF-8"));
  for (const char c : {'"', ',', '\n', '\\'})
    EXPECT_THAT(message(WithByte(content, 17, static_cast<uint8_t>(c))),
                testing::HasSubstr("what no name may"));
  EXPECT_THAT(message(WithByte(content, 16, 0)), testing::HasSubstr("name is empty"));
  EXPECT_THAT(message(WithByte(content, 22, 1)), testing::HasSubstr("Int32 out of range"));
  EXPECT_THAT(message(WithByte(content, 28, 2)), testing::HasSubstr("neither 0 nor 1"));
}

TEST(EntityRecordCheckTest, ANameBothInlineAndAsAnIdIsRefused) {
  const FixedNames other({{"b", 1}});
  const std::string content = EncodeEntityRecord(std::vector<Property>{{"a", 1}, {"b", 2}}, &other);
  const FixedNames names({{"a", 1}});  // Now id 1 means "a", which stands inline too.
  EXPECT_THAT(EntityRecordView(content, &names).Check().message(),
              testing::HasSubstr("both inline and as an id"));
}

TEST(ZoneCodesTest, GivesNameTypeAndCodeOfEachProperty) {
  const std::string content = EncodeEntityRecord(std::vector<Property>{{"s", "abc"}, {"n", 5}});
  std::vector<std::string> seen;
  ZoneCodes(content, nullptr, [&](std::string_view name, PropertyType type, uint64_t code) {
    seen.push_back(std::string(name) + " " + std::string(EdmTypeName(type)) + " " + std::to_string(code));
  });
  EXPECT_THAT(seen, ElementsAre("n Edm.Int32 " + std::to_string(OrderedCodeOfInt64(5)),
                                "s Edm.String " + std::to_string(HeadCode("abc"))));
}

}  // namespace
}  // namespace partita
