#include <gtest/gtest.h>
#include <zstd.h>

#include <random>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/coding.h"
#include "sstable/part_format.h"

namespace partita {
namespace {

// Nothing repeats itself.
std::string Letters(size_t size) {
  constexpr char kLetters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::mt19937_64 random(size);
  std::string content;
  while (content.size() < size) content.push_back(kLetters[random() % 64]);
  return content;
}

// Words of a small vocabulary, here and there a number.
std::string Prose(size_t size) {
  std::mt19937_64 random(size);
  std::string content;
  while (content.size() < size) {
    content += "customer" + std::to_string(random() % 40) + " status delivered";
    content += " amount " + std::to_string(random() % 100000) + "; ";
  }
  content.resize(size);
  return content;
}

Codec CodecOf(std::string_view part) { return static_cast<Codec>(part[22]); }

Result<std::string> Decoded(std::string_view part) {
  std::string content(LoadLe32(part.data() + 12), '\0');
  Status decoded = DecodePart(part, reinterpret_cast<uint8_t*>(content.data()));
  if (!decoded.ok()) return decoded;
  return content;
}

std::string LargeProsePart() {
  PartEncoder encoder(Codec::kLz4);
  return std::string(encoder.Encode(SealKind::kDataBlock, Prose(20'000)));
}

// The same content as tables had it that were written before LZ4.
std::string AsZstd(std::string_view part, std::string_view content) {
  std::string payload(ZSTD_compressBound(content.size()), '\0');
  payload.resize(ZSTD_compress(payload.data(), payload.size(), content.data(), content.size(), 1));
  std::string zstd = std::string(part.substr(0, kPartHeaderSize)) + payload;
  StoreLe32(zstd.data() + 8, static_cast<uint32_t>(zstd.size()));
  zstd[22] = static_cast<char>(Codec::kZstd);
  return zstd;
}

// Made before the decompressor that the thread keeps, so it ends after it.
struct DecodesAtItsEnd {
  std::string part;
  Result<std::string>* content = nullptr;
  ~DecodesAtItsEnd() {
    if (content == nullptr) return;
    // In what the decompressor had, if it is gone: there it writes to nobody's memory.
    const std::vector<std::string> others(8, std::string(90'000, 'x'));
    *content = Decoded(part);
    for (const std::string& other : others) EXPECT_EQ(other, std::string(90'000, 'x'));
  }
};

TEST(PartEncoderTest, AThreadMayReadOldTablesAtItsVeryEnd) {
  Result<std::string> content = Status::Corruption("not read");
  std::thread([&] {
    thread_local DecodesAtItsEnd last;
    last.part = AsZstd(LargeProsePart(), Prose(20'000));
    last.content = &content;
    EXPECT_TRUE(Decoded(last.part).ok());
  }).join();
  ASSERT_TRUE(content.ok()) << content.status().ToString();
  EXPECT_EQ(*content, Prose(20'000));
}

TEST(PartEncoderTest, WhatRepeatsItselfShrinksAndComesBack) {
  PartEncoder encoder(Codec::kLz4);
  for (const size_t size : {100u, 4'096u, 20'000u, 3'000'000u}) {
    const std::string content = Prose(size);
    const std::string_view part = encoder.Encode(SealKind::kDataBlock, content);
    EXPECT_EQ(CodecOf(part), Codec::kLz4);
    EXPECT_LT(part.size(), kPartHeaderSize + size - size / 8);
    const Result<std::string> back = Decoded(part);
    ASSERT_TRUE(back.ok()) << back.status().ToString();
    EXPECT_EQ(*back, content);
  }
}

TEST(PartEncoderTest, WhatGainsLittleIsStoredAsItIs) {
  PartEncoder encoder(Codec::kLz4), plain(Codec::kStored);
  for (const std::string& content : {std::string("x"), Letters(12'000)}) {
    const std::string_view part = encoder.Encode(SealKind::kIndexBlock, content);
    EXPECT_EQ(CodecOf(part), Codec::kStored);
    EXPECT_EQ(part, plain.Encode(SealKind::kIndexBlock, content));
    EXPECT_EQ(*Decoded(part), content);
  }
}

TEST(PartEncoderTest, PartsOfFormerVersionsAreRead) {
  const std::string part = AsZstd(LargeProsePart(), Prose(20'000));
  ASSERT_LT(part.size(), 10'000u);
  const Result<std::string> back = Decoded(part);
  ASSERT_TRUE(back.ok()) << back.status().ToString();
  EXPECT_EQ(*back, Prose(20'000));
}

// covers: F42
TEST(PartEncoderTest, WhatDoesNotDecodeToItsSizeIsCorrupt) {
  const std::string lz4 = LargeProsePart();
  for (const std::string& good : {lz4, AsZstd(lz4, Prose(20'000))}) {
    for (const uint32_t wrong_size : {19'999u, 20'001u, 1u}) {
      std::string bad = good;
      StoreLe32(bad.data() + 12, wrong_size);
      EXPECT_EQ(Decoded(bad).code(), Code::kCorruption) << wrong_size;
    }
    EXPECT_EQ(Decoded(good.substr(0, good.size() - 7)).code(), Code::kCorruption);
    std::mt19937_64 random(7);
    for (int i = 0; i < 2'000; ++i) {  // Whatever comes of it stays within its bounds.
      std::string bad = good;
      for (int k = 0; k < 4; ++k) {
        bad[kPartHeaderSize + random() % (bad.size() - kPartHeaderSize)] = static_cast<char>(random());
      }
      (void)Decoded(bad);
    }
  }
}

TEST(PartEncoderTest, TheFrontOfAContentIsDecodedAlone) {
  const std::string content = Prose(20'000);
  PartEncoder lz4(Codec::kLz4), stored(Codec::kStored);
  for (PartEncoder* encoder : {&lz4, &stored}) {
    const std::string part(encoder->Encode(SealKind::kDataBlock, content));
    for (size_t size : {size_t{1}, size_t{511}, size_t{512}, size_t{12'345}, content.size()}) {
      std::string front(size, '\0');
      ASSERT_TRUE(DecodeFront(part, size, reinterpret_cast<uint8_t*>(front.data()))) << size;
      EXPECT_EQ(front, content.substr(0, size));
    }
  }
  std::string front(500, '\0');
  const std::string part = LargeProsePart();
  auto* const out = reinterpret_cast<uint8_t*>(front.data());
  EXPECT_FALSE(DecodeFront(AsZstd(part, content), front.size(), out)) << "that takes all of it";
  EXPECT_FALSE(DecodeFront(part.substr(0, kPartHeaderSize + 20), front.size(), out)) << "it ends before";
}

}  // namespace
}  // namespace partita
