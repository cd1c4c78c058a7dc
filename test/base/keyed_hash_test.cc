#include "engine/base/keyed_hash.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "engine/base/hex.h"

namespace partita {
namespace {

// As `openssl mac -macopt size:16 SIPHASH` has it.
TEST(KeyedHashTest, HashesAreSipHash) {
  const Hash128 key{0x0706050403020100, 0x0f0e0d0c0b0a0908};
  const auto hash = [&key](size_t size) {
    std::string bytes;
    for (size_t i = 0; i < size; ++i) bytes.push_back(static_cast<char>(i));
    const Hash128 words = KeyedHash(bytes, key);
    std::string hex;
    AppendHex(&hex, {reinterpret_cast<const char*>(&words), sizeof words});
    return hex;
  };
  EXPECT_EQ(hash(0), "a3817f04ba25a8e66df67214c7550293");
  EXPECT_EQ(hash(1), "da87c1d86b99af44347659119b22fc45");
  EXPECT_EQ(hash(8), "3b62a9ba6258f5610f83e264f31497b4");
  EXPECT_EQ(hash(15), "5493e99933b0a8117e08ec0f97cfc3d9");
}

// By what XXH3 is broken: in two stripes of 64 bytes the top bit of one word each, which its sums do not see.
TEST(KeyedHashTest, PairsThatAreOneToOtherHashesAreTwo) {
  std::string first(1'100, 'k');
  const uint32_t word = 0x6b6b6b6b ^ 0x060a0410;
  std::memcpy(first.data() + 12 * 64, &word, sizeof word);
  std::string second = first;
  second[7] ^= static_cast<char>(0x80);
  second[12 * 64 + 7] ^= static_cast<char>(0x80);
  for (int i = 0; i < 1'000; ++i) {
    const Hash128 key = SecretHashKey();
    ASSERT_FALSE(KeyedHash(first, key) == KeyedHash(second, key));
  }
}

TEST(KeyedHashTest, NoTwoSecretsAreAlike) { EXPECT_FALSE(SecretHashKey() == SecretHashKey()); }

}  // namespace
}  // namespace partita
