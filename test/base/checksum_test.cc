#include "engine/base/checksum.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace partita {
namespace {

Identity SomeIdentity() {
  return {.store = StoreId(11), .file = 22, .offset = 4096, .kind = SealKind::kDataBlock, .generation = 5};
}

// On disk: these must never change.
TEST(ChecksumTest, HashesAreXxh3) {
  EXPECT_EQ(Hash64(std::string_view()), 0x2D06800538D394C2u);
  const std::vector<uint8_t> bytes = {'a', 'b', 'c'};
  EXPECT_EQ(Hash64("abc"), 0x78AF5F94892F3950u);
  EXPECT_EQ(Hash64(std::span<const uint8_t>(bytes)), Hash64("abc"));
  EXPECT_EQ(Hash64WithSeed("abc", 0), Hash64("abc"));
  EXPECT_NE(Hash64WithSeed("abc", 1), Hash64("abc"));
}

TEST(ChecksumTest, AStreamOfPiecesHashesLikeTheWhole) {
  std::string whole;
  StreamHash stream;
  EXPECT_EQ(stream.Digest(), Hash64(""));
  for (size_t size : {0u, 1u, 17u, 300u, 5000u}) {
    const std::string piece(size, static_cast<char>('a' + size % 26));
    whole += piece;
    stream.Update(piece);
    EXPECT_EQ(stream.Digest(), Hash64(whole));
  }
}

TEST(ChecksumTest, EveryFieldOfTheIdentityChangesTheMix) {
  const Identity base = SomeIdentity();
  std::set<uint64_t> mixes = {base.Mix()};
  Identity other = base;
  other.store = StoreId(12);
  mixes.insert(other.Mix());
  other = base;
  other.file = 23;
  mixes.insert(other.Mix());
  other = base;
  other.offset = 8192;
  mixes.insert(other.Mix());
  other = base;
  other.kind = SealKind::kIndexBlock;
  mixes.insert(other.Mix());
  other = base;
  other.generation = 6;
  mixes.insert(other.Mix());
  other = base;  // Swapped fields are not the same either.
  std::swap(other.file, other.offset);
  mixes.insert(other.Mix());
  EXPECT_EQ(mixes.size(), 7u);
}

TEST(ChecksumTest, ASealMatchesOnlyItsContentInItsPlace) {
  const Identity here = SomeIdentity();
  Identity elsewhere = here;
  elsewhere.offset += 4096;
  const std::string content(1000, 'x');
  const uint64_t seal = Seal(content, here);
  EXPECT_TRUE(SealMatches(content, here, seal));
  EXPECT_FALSE(SealMatches(content, elsewhere, seal));
  for (size_t bit = 0; bit < content.size() * 8; bit += 97) {
    std::string flipped = content;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(SealMatches(flipped, here, seal));
  }
  EXPECT_FALSE(SealMatches(std::string_view(content).substr(1), here, seal));
}

TEST(ChecksumTest, ACopiedBlockIsResealedWithoutReadingItAgain) {
  const Identity from = SomeIdentity();
  Identity to = from;
  to.file = 99;
  to.offset = 0;
  const uint64_t moved = Seal("content", from) ^ from.Mix() ^ to.Mix();
  EXPECT_TRUE(SealMatches("content", to, moved));
  // What was rotten before the copy stays rotten after it.
  EXPECT_FALSE(SealMatches("Content", to, moved));
}

}  // namespace
}  // namespace partita
