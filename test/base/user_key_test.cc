#include "engine/base/user_key.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace partita {
namespace {

std::string Utf8(char32_t c) {
  std::string out;
  auto tail = [&](unsigned shift) { out.push_back(static_cast<char>(0x80 | (c >> shift & 0x3F))); };
  if (c < 0x80) {
    out.push_back(static_cast<char>(c));
  } else if (c < 0x800) {
    out.push_back(static_cast<char>(0xC0 | c >> 6));
    tail(0);
  } else if (c < 0x10000) {
    out.push_back(static_cast<char>(0xE0 | c >> 12));
    tail(6);
    tail(0);
  } else {
    out.push_back(static_cast<char>(0xF0 | c >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
  return out;
}

std::u16string Utf16(const std::u32string& text) {
  std::u16string out;
  for (char32_t c : text) {
    if (c < 0x10000) {
      out.push_back(static_cast<char16_t>(c));
    } else {
      out.push_back(static_cast<char16_t>(0xD800 + ((c - 0x10000) >> 10)));
      out.push_back(static_cast<char16_t>(0xDC00 + ((c - 0x10000) & 0x3FF)));
    }
  }
  return out;
}

std::string Utf8(const std::u32string& text) {
  std::string out;
  for (char32_t c : text) out += Utf8(c);
  return out;
}

// Characters from every width, close to the borders where the two orders could differ.
char32_t RandomCharacter(std::mt19937_64& random) {
  struct Interval {
    char32_t first, last;
  };
  static constexpr Interval kIntervals[] = {
      {0x20, 0x7F},       {0x80, 0x9F},       {0x7F0, 0x80F},       {0xD7F0, 0xD7FF},
      {0xE000, 0xE010},   {0xE000, 0xFFFF},   {0xEFF0, 0xF010},     {0xFFF0, 0xFFFF},
      {0x10000, 0x1000F}, {0x1F600, 0x1F60F}, {0x10FFF0, 0x10FFFF}, {0x10000, 0x10FFFF},
  };
  const Interval& interval = kIntervals[random() % std::size(kIntervals)];
  return interval.first + static_cast<char32_t>(random() % (interval.last - interval.first + 1));
}

int Sign(int order) { return (order > 0) - (order < 0); }

TEST(OrderedTextTest, OrderByBytesIsOrderByUtf16CodeUnits) {
  const uint64_t seed = 20261120;
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  auto text = [&](std::u32string start) {
    for (size_t size = random() % 6; size > 0; --size) start.push_back(RandomCharacter(random));
    return start;
  };
  for (int i = 0; i < 200'000; ++i) {
    const std::u32string shared = text(U"");
    const std::u32string a = text(shared);
    const std::u32string b = text(shared);
    const int wanted = Sign(Utf16(a).compare(Utf16(b)));
    const int got = Sign(OrderedText(Utf8(a)).compare(OrderedText(Utf8(b))));
    ASSERT_EQ(got, wanted) << Utf8(a) << " against " << Utf8(b);
  }
}

TEST(OrderedTextTest, EveryCharacterComesBackAndSortsInItsPlace) {
  std::string previous_ordered;
  std::u16string previous_units;
  auto visit = [&](char32_t c) {
    const std::string utf8 = Utf8(c);
    const std::string ordered = OrderedText(utf8);
    ASSERT_EQ(ordered.size(), utf8.size());
    ASSERT_EQ(Utf8FromOrdered(ordered), utf8);
    const std::u16string units = Utf16({c});
    if (!previous_ordered.empty()) {
      ASSERT_EQ(previous_ordered < ordered, previous_units < units) << static_cast<uint32_t>(c);
    }
    previous_ordered = ordered;
    previous_units = units;
  };
  for (char32_t c = 1; c <= 0x10FFFF; ++c) {
    if (c == 0xD800) c = 0xE000;
    visit(c);
  }
}

TEST(OrderedTextTest, AppendingLeavesWhatWasThereAlone) {
  std::string out = "\xEE\x80\x80";
  AppendOrderedText(&out, "\xEE\x80\x80");
  EXPECT_EQ(out, "\xEE\x80\x80\xF5\x80\x80");
  AppendUtf8(&out, "\xF6\xBF\xBF");
  EXPECT_EQ(out, "\xEE\x80\x80\xF5\x80\x80\xEF\xBF\xBF");
}

// The orderings of the recorded key vectors (o1 to o7).
TEST(UserKeyTest, RecordedOrderingsHold) {
  const std::vector<std::vector<std::u32string>> orderings = {
      {U"", U"0", U"00", U"1", U"10", U"100", U"2", U"9"},
      {U" ", U"A", U"B", U"Z", U"_", U"a", U"b", U"z"},
      {U"a", U"a ", U"a!", U"aa", U"ab", U"b"},
      {U"a-b", U"a.b", U"aB", U"ab"},
      {U"z", U"\u00e9", U"\u6771"},
      {U"\u6771", U"\U0001F600", U"\uff5e"},
      {U"\ud7ff", U"\U00010000", U"\U0010FFFF", U"\ue000", U"\uffff"},
  };
  for (const auto& sorted : orderings) {
    for (size_t i = 1; i < sorted.size(); ++i) {
      const std::string lower = OrderedText(Utf8(sorted[i - 1]));
      const std::string upper = OrderedText(Utf8(sorted[i]));
      // As RowKeys, and as PartitionKeys whatever the RowKeys are.
      EXPECT_LT(EncodeUserKey(TableId(1), "p", lower), EncodeUserKey(TableId(1), "p", upper));
      EXPECT_LT(EncodeUserKey(TableId(1), lower, "\xFF"), EncodeUserKey(TableId(1), upper, ""));
    }
  }
}

TEST(UserKeyTest, HasExactlyTheseBytes) {
  EXPECT_EQ(EncodeUserKey(TableId(0x01020304), "pk", "row"), std::string("\x01\x02\x03\x04pk\0row", 10));
  EXPECT_EQ(EncodeUserKey(TableId(1), "", ""), std::string("\0\0\0\1\0", 5));
}

TEST(UserKeyTest, DecodesWhatWasEncoded) {
  for (auto [partition, row] : {std::pair("", ""), {"p", ""}, {"", "r"}, {"a b", "\xF5\x80\x80"}}) {
    const std::string key = EncodeUserKey(TableId(0xFFFFFFFF), partition, row);
    Result<UserKeyParts> parts = DecodeUserKey(key);
    ASSERT_TRUE(parts.ok());
    EXPECT_EQ(parts->table, TableId(0xFFFFFFFF));
    EXPECT_EQ(parts->partition_key, partition);
    EXPECT_EQ(parts->row_key, row);
    EXPECT_EQ(PartitionPrefix(key), EncodeUserKey(TableId(0xFFFFFFFF), partition, ""));
  }
}

TEST(UserKeyTest, BytesThatAreNoUserKeyAreCorruption) {
  for (const std::string& bytes : {std::string(), std::string("abc"), std::string("\0\0\0\1", 4),
                                   std::string("\0\0\0\1pk", 6), std::string("\0\0\0\1p\0r\0", 8)}) {
    EXPECT_EQ(DecodeUserKey(bytes).code(), Code::kCorruption) << bytes.size();
  }
}

TEST(UserKeyTest, OrdersByTableThenPartitionThenRow) {
  const std::vector<std::string> sorted = {
      EncodeUserKey(TableId(1), "", ""),      EncodeUserKey(TableId(1), "", "z"),
      EncodeUserKey(TableId(1), "a", ""),     EncodeUserKey(TableId(1), "a", "b"),
      EncodeUserKey(TableId(1), "a\x01", ""), EncodeUserKey(TableId(1), "ab", "a"),
      EncodeUserKey(TableId(2), "", ""),      EncodeUserKey(TableId(255), "a", ""),
      EncodeUserKey(TableId(256), "", ""),
  };
  for (size_t i = 1; i < sorted.size(); ++i) EXPECT_LT(sorted[i - 1], sorted[i]) << i;
}

TEST(UserKeyTest, TableBoundsEncloseExactlyTheTable) {
  const std::string lower = TableLowerBound(TableId(0x12FF));
  const std::string upper = TableUpperBound(TableId(0x12FF));
  EXPECT_LE(lower, EncodeUserKey(TableId(0x12FF), "", ""));
  EXPECT_LT(EncodeUserKey(TableId(0x12FF), "\xF6\xBF\xBF", "\xF6\xBF\xBF"), upper);
  EXPECT_LT(EncodeUserKey(TableId(0x12FE), "\xFF", "\xFF"), lower);
  EXPECT_LE(upper, EncodeUserKey(TableId(0x1300), "", ""));
  EXPECT_EQ(TableUpperBound(TableId(0xFFFFFFFF)), "");
}

TEST(UserKeyTest, PrefixSuccessorIsTheFirstStringBeyondThePrefix) {
  EXPECT_EQ(PrefixSuccessor("abc"), "abd");
  EXPECT_EQ(PrefixSuccessor("ab\xFF\xFF"), "ac");
  EXPECT_EQ(PrefixSuccessor("\xFF\xFF"), "");
  EXPECT_EQ(PrefixSuccessor(""), "");
  EXPECT_EQ(PrefixSuccessor(std::string("a\0", 2)), "a\x01");
}

TEST(UserKeyTest, AnEmptyUpperEndIsBehindAllKeys) {
  EXPECT_TRUE(IsInKeyRange("b", "b", "c"));
  EXPECT_FALSE(IsInKeyRange("c", "b", "c"));
  EXPECT_FALSE(IsInKeyRange("a", "b", ""));
  EXPECT_TRUE(IsInKeyRange("\xFF", "b", ""));
  EXPECT_EQ(NearerEnd("b", "c"), "b");
  EXPECT_EQ(NearerEnd("c", "b"), "b");
  EXPECT_EQ(NearerEnd("", "b"), "b");
  EXPECT_EQ(NearerEnd("b", ""), "b");
  EXPECT_EQ(NearerEnd("", ""), "");
  EXPECT_TRUE(KeyRangesOverlap("a", "c", "b", ""));
  EXPECT_FALSE(KeyRangesOverlap("a", "b", "b", ""));
}

}  // namespace
}  // namespace partita
