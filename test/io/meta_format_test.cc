#include "engine/io/meta_format.h"

#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

// covers: F40 F41 F42 F66
namespace partita {
namespace {

using testing::HasSubstr;

constexpr StoreId kSealStore{0x1122334455667788};

std::string Hex(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (unsigned char c : bytes) {
    text += kDigits[c >> 4];
    text += kDigits[c & 15];
  }
  return text;
}

TEST(MetaFormatTest, TheBytesAreAsDrawn) {
  EXPECT_EQ(Hex(EncodeMeta("catalog", kSealStore, 3, "value")),
            "504d5441"          // magic
            "0100"              // format
            "0000"              // reserved
            "8877665544332211"  // store
            "0300000000000000"  // generation
            "0500000000000000"  // length
            "947f0882b3536c85"  // seal
            "76616c7565");
}

TEST(MetaFormatTest, WhatWasEncodedIsDecoded) {
  for (size_t size : {0u, 1u, 100'000u}) {
    const std::string value(size, 'v');
    auto record = DecodeMeta("k", "meta/k", EncodeMeta("k", kSealStore, 7, value));
    ASSERT_TRUE(record.ok()) << record.status().ToString();
    EXPECT_EQ(record->store, kSealStore);
    EXPECT_EQ(record->value.generation, 7u);
    EXPECT_EQ(record->value.bytes, value);
  }
}

TEST(MetaFormatTest, EveryFlippedBitIsFound) {
  const std::string good = EncodeMeta("k", kSealStore, 7, "some value");
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] ^= static_cast<char>(1 << (bit % 8));
    auto record = DecodeMeta("k", "meta/k", bad);
    ASSERT_FALSE(record.ok()) << "bit " << bit;
    const bool in_format = bit / 8 == 4 || bit / 8 == 5;
    if (!in_format) EXPECT_EQ(record.code(), Code::kCorruption) << "bit " << bit;
    EXPECT_THAT(record.status().message(), HasSubstr("meta/k"));
  }
}

TEST(MetaFormatTest, EveryTruncationAndExtensionIsFound) {
  const std::string good = EncodeMeta("k", kSealStore, 7, "some value");
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_EQ(DecodeMeta("k", "meta/k", good.substr(0, size)).code(), Code::kCorruption) << size;
  }
  EXPECT_EQ(DecodeMeta("k", "meta/k", good + '\0').code(), Code::kCorruption);
}

TEST(MetaFormatTest, OneKeysFileUnderAnotherNameIsFound) {
  auto record = DecodeMeta("other", "meta/other", EncodeMeta("k", kSealStore, 7, "value"));
  ASSERT_EQ(record.code(), Code::kCorruption);
  EXPECT_THAT(record.status().message(), HasSubstr("\"meta/other\", offset 32: the seal does not match"));
}

TEST(MetaFormatTest, ANewerFormatIsUnsupportedAndSaysSo) {
  std::string newer = EncodeMeta("k", kSealStore, 7, "value");
  newer[4] = static_cast<char>(kMetaFormat + 1);
  auto record = DecodeMeta("k", "meta/k", newer);
  ASSERT_EQ(record.code(), Code::kUnsupported);
  EXPECT_THAT(record.status().message(), HasSubstr("\"meta/k\" has format 2"));
}

}  // namespace
}  // namespace partita
