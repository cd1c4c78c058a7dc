#include "engine/base/stored_value.h"

#include <gtest/gtest.h>

namespace partita {
namespace {

Entry EntryOf(std::string_view key, EntryKind kind, std::string_view value) {
  return {key, Version(1), kind, value};
}

TEST(StoredValueTest, IsIntactAndGivesItsContentBack) {
  for (std::string content : {std::string(), std::string("x"), std::string(100'000, 'y')}) {
    const std::string value = MakeStoredValue("key", EntryKind::kPut, content);
    EXPECT_EQ(value.size(), kStoredValueHeaderSize + content.size());
    EXPECT_EQ(StoredValueContent(value), content);
    EXPECT_TRUE(StoredValueIntact(EntryOf("key", EntryKind::kPut, value)));
  }
}

// On disk: must never change.
TEST(StoredValueTest, ChecksumIsGolden) {
  EXPECT_EQ(StoredValueChecksum("key", EntryKind::kPut, "content"), 0x6F683192u);
  EXPECT_EQ(StoredValueChecksum("key", EntryKind::kTombstone, ""), 0x77A8A4B8u);
}

TEST(StoredValueTest, AnyFlippedBitIsFound) {
  const std::string key = "some key";
  const std::string value = MakeStoredValue(key, EntryKind::kPut, "some content of an entity");
  for (size_t bit = 0; bit < value.size() * 8; ++bit) {
    std::string flipped = value;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(StoredValueIntact(EntryOf(key, EntryKind::kPut, flipped))) << bit;
  }
  for (size_t bit = 0; bit < key.size() * 8; ++bit) {
    std::string flipped = key;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(StoredValueIntact(EntryOf(flipped, EntryKind::kPut, value))) << bit;
  }
}

TEST(StoredValueTest, AValueUnderAnotherKeyOrKindOrOfAnotherLengthIsNotIntact) {
  const std::string value = MakeStoredValue("key", EntryKind::kPut, "content");
  EXPECT_FALSE(StoredValueIntact(EntryOf("keY", EntryKind::kPut, value)));
  EXPECT_FALSE(StoredValueIntact(EntryOf("key", EntryKind::kTombstone, value)));
  EXPECT_FALSE(StoredValueIntact(EntryOf("key", EntryKind::kPut, value.substr(0, value.size() - 1))));
  EXPECT_FALSE(StoredValueIntact(EntryOf("key", EntryKind::kPut, value + std::string(1, '\0'))));
  EXPECT_FALSE(StoredValueIntact(EntryOf("key", EntryKind::kPut, "abc")));
  EXPECT_FALSE(StoredValueIntact(EntryOf("key", EntryKind::kPut, "")));
  // Bytes that moved from the key to the content.
  const std::string moved = MakeStoredValue("ke", EntryKind::kPut, "ycontent");
  EXPECT_NE(moved.substr(0, kStoredValueHeaderSize), value.substr(0, kStoredValueHeaderSize));
}

TEST(StoredValueTest, TheVersionIsNotPartOfTheChecksum) {
  const std::string value = MakeStoredValue("key", EntryKind::kPut, "content");
  Entry entry = EntryOf("key", EntryKind::kPut, value);
  entry.version = Version(12345);
  EXPECT_TRUE(StoredValueIntact(entry));
}

}  // namespace
}  // namespace partita
