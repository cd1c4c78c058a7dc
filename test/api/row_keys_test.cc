#include "api/row_keys.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>
#include <vector>

namespace partita {
namespace {

TEST(RowKeysTest, AKeyStandsOnceWhetherKeysRiseOrNot) {
  RowKeys rising;
  EXPECT_TRUE(rising.Add(""));
  EXPECT_TRUE(rising.Add("a"));
  EXPECT_FALSE(rising.Add("a"));
  EXPECT_FALSE(rising.Add(""));
  EXPECT_TRUE(rising.Add("aa"));
  EXPECT_EQ(rising.size(), 3u);
  EXPECT_EQ(rising.at(0), "");
  EXPECT_EQ(rising.at(2), "aa");
}

TEST(RowKeysTest, AgreesWithASetOnKeysInAnyOrder) {
  std::mt19937_64 random(20261122);
  int refused = 0;
  for (int round = 0; round < 500; ++round) {
    RowKeys keys;
    std::set<std::string> oracle;
    std::vector<std::string> added;
    const size_t rising_first = random() % 20;  // A change of order anywhere must forget none before it.
    for (size_t i = 0; i < 40; ++i) {
      std::string key = i < rising_first ? std::string(i + 1, 'k') : std::string(random() % 40, 'k');
      const bool is_new = oracle.insert(key).second;
      ASSERT_EQ(keys.Add(key), is_new);
      if (is_new) added.push_back(std::move(key));
      refused += is_new ? 0 : 1;
    }
    ASSERT_EQ(keys.size(), added.size());
    for (size_t i = 0; i < added.size(); ++i) ASSERT_EQ(keys.at(i), added[i]);
  }
  EXPECT_GT(refused, 1'000);
}

}  // namespace
}  // namespace partita
