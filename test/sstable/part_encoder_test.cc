#include <gtest/gtest.h>

#include <random>
#include <string>

#include "sstable/part_format.h"

// How contents are compressed: what is spent on each follows from how the last one that was looked through
// closely shrank.

namespace partita {
namespace {

constexpr size_t kContentSize = 12 * 1024;

// Shrinks to three quarters by shorter codes for its letters; nothing repeats itself.
std::string Base64Like(uint64_t seed) {
  constexpr char kLetters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::mt19937_64 random(seed);
  std::string content;
  while (content.size() < kContentSize) content.push_back(kLetters[random() % 64]);
  return content;
}

// Words of a small vocabulary, here and there a number.
std::string Prose(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string content;
  while (content.size() < kContentSize) {
    content += "customer" + std::to_string(random() % 40) + " status delivered";
    content += " amount " + std::to_string(random() % 100000) + "; ";
  }
  content.resize(kContentSize);
  return content;
}

// Names that repeat themselves, each before so many letters that do not.
std::string Fields(uint64_t seed, size_t letters) {
  const std::string values = Base64Like(seed);
  std::string content;
  for (size_t at = 0; content.size() < kContentSize; at = (at + letters) % (kContentSize - letters)) {
    content += "propertyName" + std::to_string(at % 7) + values.substr(at, letters);
  }
  content.resize(kContentSize);
  return content;
}

size_t SizeOf(PartEncoder* encoder, const std::string& content) {
  const Result<std::string_view> part = encoder->Encode(SealKind::kDataBlock, content);
  EXPECT_TRUE(part.ok()) << part.status().ToString();
  if (!part.ok()) return 0;
  std::string back(content.size(), '\0');
  EXPECT_TRUE(DecodePart(*part, reinterpret_cast<uint8_t*>(back.data())).ok());
  EXPECT_EQ(back, content);
  return part->size();
}

TEST(PartEncoderTest, WhatShrinksByItsLettersAloneIsLookedThroughFasterAndLosesLittle) {
  PartEncoder encoder(Compression::Zstd(1));
  const size_t closely = SizeOf(&encoder, Fields(1, 25));
  EXPECT_GT(closely, kContentSize / 2);
  const size_t faster = SizeOf(&encoder, Fields(1, 25));
  EXPECT_GT(faster, closely) << "was it looked through closely again?";
  EXPECT_LT(faster, closely + closely / 8);
}

// Whatever was in front, sixteen contents later each is as large as behind its like: nothing goes on by what
// only looks as if it shrank little. `Fields` shrinks to less than half, but not when looked through faster.
TEST(PartEncoderTest, AContentOfAnotherKindCostsRoomForFewThatFollow) {
  for (const bool in_between : {false, true}) {
    PartEncoder alone(Compression::Zstd(1)), mixed(Compression::Zstd(1));
    const std::string content = in_between ? Fields(1, 15) : Prose(1);
    const size_t wanted = SizeOf(&alone, content);
    EXPECT_LE(wanted, kContentSize / 2);
    SizeOf(&mixed, Base64Like(1));
    const size_t behind_letters = SizeOf(&mixed, content);
    EXPECT_GT(behind_letters, wanted);
    EXPECT_LT(behind_letters, wanted + wanted / 3);
    if (in_between) EXPECT_GT(behind_letters, kContentSize / 2);
    for (int i = 0; i < 15; ++i) SizeOf(&mixed, content);
    for (int i = 0; i < 40; ++i) EXPECT_EQ(SizeOf(&mixed, content), wanted) << i;
  }
}

// A small row beside a large one, in turns.
TEST(PartEncoderTest, SmallContentsDecideNothingAndLargeOnesAreLookedThroughClosely) {
  PartEncoder alone(Compression::Zstd(1)), mixed(Compression::Zstd(1));
  const size_t wanted = SizeOf(&alone, Prose(1));
  std::string large;
  while (large.size() < 300'000) large += Prose(large.size());
  const size_t large_wanted = SizeOf(&alone, large);
  for (uint64_t i = 0; i < 5; ++i) {
    SizeOf(&mixed, Base64Like(i).substr(0, 200));
    EXPECT_EQ(SizeOf(&mixed, Prose(1)), wanted) << i;
  }
  SizeOf(&mixed, Base64Like(1));
  EXPECT_EQ(SizeOf(&mixed, large), large_wanted);
}

// Levels that choose their own steps keep them.
TEST(PartEncoderTest, OtherLevelsGoAsTheyAre) {
  for (const int level : {-1, 3}) {
    PartEncoder alone(Compression::Zstd(level)), mixed(Compression::Zstd(level));
    SizeOf(&mixed, Base64Like(1));
    EXPECT_EQ(SizeOf(&mixed, Prose(1)), SizeOf(&alone, Prose(1))) << level;
  }
}

}  // namespace
}  // namespace partita
