#include "bench/load/row_generator.h"

#include <gtest/gtest.h>
#include <zstd.h>

#include <vector>

namespace partita::bench {
namespace {

TEST(RowGeneratorTest, KeysSortByIndex) {
  for (uint64_t index = 0; index < 1000; ++index) {
    const RowKeys low = KeysOf(index), high = KeysOf(index + 1);
    EXPECT_LT(std::make_pair(low.partition(), low.row()), std::make_pair(high.partition(), high.row()))
        << index;
  }
}

TEST(RowGeneratorTest, AMissingKeySortsBetweenTwoRows) {
  const RowKeys row = KeysOf(41), missing = KeysOf(41, /*missing=*/true), next = KeysOf(42);
  EXPECT_EQ(missing.partition(), row.partition());
  EXPECT_LT(row.row(), missing.row());
  EXPECT_LT(missing.row(), next.row());
}

TEST(ValueGeneratorTest, AValueChecksForItsOwnRowOnly) {
  const ValueGenerator values(1024, 1);
  std::string value;
  for (uint64_t generation = 0; generation < 50; ++generation) {
    values.Fill(7, generation, &value);
    EXPECT_EQ(value.size(), 1024u);
    EXPECT_TRUE(values.Check(7, value));
    EXPECT_FALSE(values.Check(8, value));
  }
}

TEST(ValueGeneratorTest, ADamagedValueDoesNotCheck) {
  const ValueGenerator values(100, 1);
  std::string value;
  values.Fill(7, 0, &value);
  for (size_t at = 0; at < value.size(); ++at) {
    value[at] = static_cast<char>(value[at] ^ 1);
    EXPECT_FALSE(values.Check(7, value)) << at;
    value[at] = static_cast<char>(value[at] ^ 1);
  }
  EXPECT_FALSE(values.Check(7, std::string_view(value).substr(1)));
}

double CompressedShare(size_t value_size, size_t block_size) {
  const ValueGenerator values(value_size, 1);
  std::string block, value;
  for (uint64_t index = 0; block.size() < block_size; ++index) {
    values.Fill(index, 0, &value);
    block += value;
  }
  std::vector<char> output(ZSTD_compressBound(block.size()));
  return static_cast<double>(ZSTD_compress(output.data(), output.size(), block.data(), block.size(), 3)) /
         static_cast<double>(block.size());
}

TEST(ValueGeneratorTest, ZstdLeavesAboutHalf) {
  EXPECT_NEAR(CompressedShare(1024, 16384), 0.5, 0.1);
  EXPECT_NEAR(CompressedShare(1024, 4096), 0.55, 0.1);
  EXPECT_NEAR(CompressedShare(100, 16384), 0.5, 0.15);
}

TEST(PermutationTest, VisitsEachPositionOnce) {
  for (uint64_t size : {1, 2, 3, 100, 1000, 65536, 65537}) {
    const Permutation permutation(size, 3);
    std::vector<bool> seen(size, false);
    for (uint64_t position = 0; position < size; ++position) {
      const uint64_t value = permutation.At(position);
      ASSERT_LT(value, size);
      ASSERT_FALSE(seen[value]) << "size " << size << ", twice " << value;
      seen[value] = true;
    }
  }
}

TEST(PermutationTest, ShufflesNeighboursApart) {
  const Permutation permutation(1'000'000, 3);
  uint64_t close = 0;
  for (uint64_t position = 0; position < 10'000; ++position) {
    const uint64_t a = permutation.At(position), b = permutation.At(position + 1);
    if (std::max(a, b) - std::min(a, b) < 1000) ++close;
  }
  EXPECT_LT(close, 100u);  // 20 expected of a random order.
}

}  // namespace
}  // namespace partita::bench
