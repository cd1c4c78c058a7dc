#include "sstable/fuse_filter.h"

#include <gtest/gtest.h>

#include <random>
#include <unordered_set>

#include "sstable/key_hash.h"
#include "test/sstable/table_fixture.h"

namespace partita {
namespace {

constexpr FilterWidth kWidths[] = {FilterWidth::k8Bits, FilterWidth::k16Bits};

FuseFilter Load(std::string content, uint64_t keys) {
  FuseFilter filter;
  Status status = filter.Load(std::move(content), keys);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return filter;
}

// covers: M28
TEST(FuseFilterTest, NoKeyThatWasGivenIsDenied) {
  std::mt19937_64 random(TestSeed());
  for (size_t count : {1, 2, 3, 4, 5, 7, 10, 16, 33, 100, 257, 1000, 5000, 100'000}) {
    for (int round = 0; round < (count < 1000 ? 50 : 2); ++round) {
      std::vector<uint64_t> hashes(count);
      for (uint64_t& hash : hashes) hash = random();
      for (const FilterWidth width : kWidths) {
        std::vector<uint64_t> given = hashes;
        const std::string content = BuildFuseFilter(&given, width);
        ASSERT_FALSE(content.empty());
        const FuseFilter filter = Load(content, count);
        for (uint64_t hash : hashes) ASSERT_TRUE(filter.MayContain(hash)) << count;
      }
    }
  }
}

// covers: M28
TEST(FuseFilterTest, RepeatedHashesAreFine) {
  std::mt19937_64 random(TestSeed());
  for (size_t distinct : {1, 2, 50, 3000}) {
    std::vector<uint64_t> hashes;
    for (size_t i = 0; i < distinct; ++i) hashes.insert(hashes.end(), 1 + random() % 4, random());
    for (const FilterWidth width : kWidths) {
      std::vector<uint64_t> given = hashes;
      const FuseFilter filter = Load(BuildFuseFilter(&given, width), hashes.size());
      for (uint64_t hash : hashes) ASSERT_TRUE(filter.MayContain(hash));
    }
  }
}

TEST(FuseFilterTest, OneInTwoHundredAndFiftySixOtherKeysPasses) {
  std::mt19937_64 random(TestSeed());
  std::vector<uint64_t> hashes(50'000);
  for (uint64_t& hash : hashes) hash = random();
  const std::string content = BuildFuseFilter(&hashes, FilterWidth::k8Bits);
  EXPECT_LT(static_cast<double>(content.size()) * 8 / 50'000, 9.9);  // Bits a key.
  const FuseFilter filter = Load(content, 50'000);
  size_t passed = 0;
  for (int i = 0; i < 1'000'000; ++i) passed += filter.MayContain(random());
  EXPECT_GT(passed, 3000u);
  EXPECT_LT(passed, 4900u);  // 3906 expected.

  const std::string wide_content = BuildFuseFilter(&hashes, FilterWidth::k16Bits);
  EXPECT_LT(static_cast<double>(wide_content.size()) * 8 / 50'000, 19.8);
  const FuseFilter wide = Load(wide_content, 50'000);
  passed = 0;
  for (int i = 0; i < 1'000'000; ++i) passed += wide.MayContain(random());
  EXPECT_LT(passed, 60u);  // 15 expected.
}

TEST(FuseFilterTest, TheFilterOfNoKeysDeniesEverything) {
  std::vector<uint64_t> none;
  const FuseFilter filter = Load(BuildFuseFilter(&none, FilterWidth::k16Bits), 0);
  EXPECT_FALSE(filter.MayContain(1));
}

// covers: F45 F77
TEST(FuseFilterTest, WhatIsNoFilterIsRefusedAndMeansMaybe) {
  std::mt19937_64 random(TestSeed());
  std::vector<uint64_t> hashes{1, 2, 3};
  std::string good[2];
  for (const FilterWidth width : kWidths) good[static_cast<size_t>(width)] = BuildFuseFilter(&hashes, width);
  for (size_t round = 0; round < 10'000; ++round) {
    std::string bad = good[round % 2];
    bad[random() % kFuseFilterHeaderSize] = static_cast<char>(random());
    if (random() % 3 == 0) bad.resize(random() % (bad.size() + 1));
    FuseFilter filter;
    if (filter.Load(bad, hashes.size()).ok()) {
      (void)filter.MayContain(random());  // Within bounds, whatever it answers.
    } else {
      EXPECT_TRUE(filter.MayContain(random()));
    }
  }
}

// covers: F45
TEST(FuseFilterTest, AFilterOfOtherKeysThanThereAreIsRefusedAndMeansMaybe) {
  std::vector<uint64_t> none, some{1, 2, 3};
  const std::string empty = BuildFuseFilter(&none, FilterWidth::k8Bits);
  const std::string of_three = BuildFuseFilter(&some, FilterWidth::k8Bits);
  FuseFilter filter;
  EXPECT_EQ(filter.Load(empty, 3).code(), Code::kCorruption);
  EXPECT_TRUE(filter.MayContain(1));
  EXPECT_EQ(filter.Load(of_three, 2).code(), Code::kCorruption);
  EXPECT_EQ(filter.Load(of_three, 0).code(), Code::kCorruption);
  EXPECT_TRUE(filter.MayContain(4));
  EXPECT_TRUE(filter.Load(of_three, 4).ok());  // Two of them may have the same hash.
}

TEST(KeyHashTest, PartitionsAreToldApartAndBrokenKeysAreHashedWhole) {
  const std::string a1 = Key("a", "1"), a2 = Key("a", "2"), b1 = Key("b", "1"), empty_row = Key("a", "");
  EXPECT_EQ(HashKey(a1).partition, HashKey(a2).partition);
  EXPECT_EQ(HashKey(a1).partition, HashKey(empty_row).partition);
  EXPECT_EQ(HashKey(a1).partition, HashPartitionPrefix(PartitionPrefix(a2)));
  EXPECT_NE(HashKey(a1).partition, HashKey(b1).partition);
  EXPECT_NE(HashKey(a1).key, HashKey(a2).key);
  EXPECT_EQ(PartitionPrefixOrAll("abc"), "abc");
  EXPECT_EQ(PartitionPrefixOrAll("abcdefg"), "abcdefg");
}

}  // namespace
}  // namespace partita
