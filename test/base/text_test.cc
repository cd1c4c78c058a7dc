#include "engine/base/text.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "engine/base/user_key.h"

namespace partita {
namespace {

std::string RandomText(std::mt19937_64* random, size_t characters) {
  std::string text;
  for (size_t i = 0; i < characters; ++i) {
    static constexpr char32_t kLimits[] = {0x7F, 0x7FF, 0xFFFF, 0x10FFFF};
    char32_t character = (*random)() % (kLimits[(*random)() % 4] + 1);
    if (character >= 0xD800 && character <= 0xDFFF) character = 0xE000 + character % 0x1000;
    AppendUtf8Character(&text, character);
  }
  return text;
}

// The slow truth: UTF-16 code units.
std::u16string ToUtf16(std::string_view text) {
  std::u16string out;
  for (size_t at = 0; at < text.size();) {
    const DecodedCharacter decoded = DecodeUtf8(text, at).value();
    at += decoded.size;
    if (decoded.character < 0x10000) {
      out.push_back(static_cast<char16_t>(decoded.character));
    } else {
      out.push_back(static_cast<char16_t>(0xD7C0 + (decoded.character >> 10)));
      out.push_back(static_cast<char16_t>(0xDC00 + (decoded.character & 0x3FF)));
    }
  }
  return out;
}

TEST(TextTest, EveryScalarValueSurvivesEncodingAndDecoding) {
  for (char32_t character = 0; character <= 0x10FFFF; ++character) {
    if (character >= 0xD800 && character <= 0xDFFF) continue;
    std::string text;
    AppendUtf8Character(&text, character);
    const std::optional<DecodedCharacter> decoded = DecodeUtf8(text, 0);
    ASSERT_TRUE(decoded.has_value()) << static_cast<uint32_t>(character);
    ASSERT_EQ(decoded->character, character);
    ASSERT_EQ(decoded->size, text.size());
    ASSERT_EQ(Utf16Units(text), character < 0x10000 ? 1u : 2u);
    ASSERT_TRUE(IsValidOrderedText(OrderedText(text)));
  }
}

TEST(TextTest, IllFormedSequencesAreRefusedWhereTheyStart) {
  const std::string bad[] = {"\x80",         "\xBF",         "\xC0\x80",         "\xC1\xBF",
                             "\xC2",         "\xC2\x41",     "\xE0\x9F\xBF",     "\xE2\x82",
                             "\xED\xA0\x80", "\xED\xBF\xBF", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80",
                             "\xF5\x80\x80", "\xF6\x80\x80", "\xF7\x80\x80\x80", "\xFF",
                             "\xE2\x28\xA1", "\xF0\x9F\x98"};
  for (const std::string& bytes : bad) {
    for (size_t lead : {0, 1, 7, 8, 9, 31}) {
      const std::string text = std::string(lead, 'a') + bytes + "tail after it";
      EXPECT_EQ(Utf8ErrorOffset(text), lead) << testing::PrintToString(bytes);
      EXPECT_FALSE(IsValidUtf8(text));
    }
  }
}

TEST(TextTest, OneCharacterAmongAsciiIsFoundWhereverItStands) {
  for (size_t size = 0; size < 100; ++size) {
    const std::string ascii(size, 'a');
    ASSERT_EQ(Utf16Units(ascii), size);
    ASSERT_TRUE(IsValidUtf8(ascii));
    for (size_t at = 0; at <= size; ++at) {
      for (const std::string character : {"\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"}) {
        std::string text = ascii;
        text.insert(at, character);
        ASSERT_EQ(Utf16Units(text), size + (character.size() == 4 ? 2 : 1)) << size << " " << at;
        ASSERT_EQ(Utf8ErrorOffset(text), text.size()) << size << " " << at;
      }
      std::string broken = ascii;
      broken.insert(at, "\xBF");
      ASSERT_EQ(Utf8ErrorOffset(broken), at) << size;
    }
  }
}

TEST(TextTest, OrderedTextRefusesTheBytesItReplaces) {
  EXPECT_TRUE(IsValidOrderedText("\xF5\x80\x80"));
  EXPECT_TRUE(IsValidOrderedText("\xF6\xBF\xBF"));
  EXPECT_FALSE(IsValidOrderedText("\xEE\x80\x80"));
  EXPECT_FALSE(IsValidOrderedText("\xEF\xBF\xBF"));
  EXPECT_FALSE(IsValidOrderedText("\xF7\x80\x80"));
  EXPECT_TRUE(IsValidOrderedText("plain ascii, longer than eight"));
}

TEST(TextTest, UnitsAndOrderAgreeWithUtf16) {
  const uint64_t seed = 20260101;
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  std::string previous;
  for (int round = 0; round < 20'000; ++round) {
    const std::string text = RandomText(&random, random() % 12);
    ASSERT_TRUE(IsValidUtf8(text));
    ASSERT_EQ(Utf16Units(text), ToUtf16(text).size());
    ASSERT_EQ(Utf16Units(OrderedText(text)), ToUtf16(text).size());
    ASSERT_EQ(OrderedText(text) < OrderedText(previous), ToUtf16(text) < ToUtf16(previous));
    std::string ordered(text.size(), '\0');
    CopyAsOrderedText(ordered.data(), text);
    ASSERT_EQ(ordered, OrderedText(text));
    std::string back(text.size(), '\0');
    CopyAsUtf8(back.data(), ordered);
    ASSERT_EQ(back, text);
    previous = text;
  }
}

TEST(TextTest, APrefixNeverCutsACharacter) {
  const std::string text = "a\xC3\xBC\xE6\x9D\xB1\xF0\x9F\x98\x80z";  // 1, 2, 3 and 4 bytes.
  EXPECT_EQ(Utf16Prefix(text, 0), "");
  EXPECT_EQ(Utf16Prefix(text, 3), text.substr(0, 6));
  EXPECT_EQ(Utf16Prefix(text, 4), text.substr(0, 6));  // Half of the pair does not fit.
  EXPECT_EQ(Utf16Prefix(text, 5), text.substr(0, 10));
  EXPECT_EQ(Utf16Prefix(text, 99), text);
}

TEST(TextTest, RandomBytesAreValidExactlyWhenTheyDecodeToTheirEnd) {
  const uint64_t seed = 77;
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  int valid = 0;
  for (int round = 0; round < 100'000; ++round) {
    std::string bytes;
    for (size_t i = random() % 5; i > 0; --i)
      bytes.push_back(static_cast<char>(random() | (random() & 0x80)));
    size_t at = 0;
    while (at < bytes.size()) {
      const std::optional<DecodedCharacter> decoded = DecodeUtf8(bytes, at);
      if (!decoded) break;
      at += decoded->size;
    }
    ASSERT_EQ(Utf8ErrorOffset(bytes), at) << testing::PrintToString(bytes);
    valid += at == bytes.size();
  }
  EXPECT_GT(valid, 1000);
}

}  // namespace
}  // namespace partita
