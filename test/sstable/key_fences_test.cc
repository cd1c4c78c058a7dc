#include "sstable/key_fences.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace partita {
namespace {

size_t CountUpTo(const std::vector<std::string>& keys, const std::string& key) {
  const auto key_at = [&](size_t i) -> std::string_view { return keys[i]; };
  return KeyFences(keys.size(), key_at).CountUpTo(key, [&](size_t i) { return keys[i] <= key; });
}

size_t Expected(const std::vector<std::string>& keys, const std::string& key) {
  return static_cast<size_t>(std::upper_bound(keys.begin(), keys.end(), key) - keys.begin());
}

TEST(KeyFencesTest, OfNoKeyAllAreBehind) {
  EXPECT_EQ(CountUpTo({}, ""), 0u);
  EXPECT_EQ(CountUpTo({}, "a"), 0u);
}

TEST(KeyFencesTest, AKeyIsFoundByWhatFollowsTheSharedPrefix) {
  const std::vector<std::string> keys{"table/k", "table/m", "table/x"};
  for (const char* key :
       {"", "a", "table", "table/", "table/a", "table/k", "table/l", "table/x", "table/z", "u"})
    EXPECT_EQ(CountUpTo(keys, key), Expected(keys, key)) << key;
}

// Their heads are equal, and so is that of what is sought.
TEST(KeyFencesTest, KeysWithEqualHeadsAreToldApart) {
  using namespace std::string_literals;
  const std::vector<std::string> keys{"a"s,         "a\0"s,       "a\0\0"s,     "b1234567"s, "b1234567\0"s,
                                      "b12345678"s, "b12345679"s, "b1234567a"s, "c"s};
  for (const std::string& key : keys) {
    EXPECT_EQ(CountUpTo(keys, key), Expected(keys, key)) << key;
    EXPECT_EQ(CountUpTo(keys, key + '\0'), Expected(keys, key + '\0')) << key;
    EXPECT_EQ(CountUpTo(keys, key.substr(0, key.size() - 1)), Expected(keys, key.substr(0, key.size() - 1)))
        << key;
  }
}

TEST(KeyFencesTest, AnyKeysAreFoundAsASearchAmongThemFindsThem) {
  std::mt19937_64 random(7);
  const auto draw = [&] {
    // Few letters, zeros and high bytes among them: many share heads, or are prefixes of others.
    std::string key;
    for (size_t size = random() % 14; size > 0; --size) key += "\0a\xff"[random() % 3];
    return key;
  };
  for (int round = 0; round < 300; ++round) {
    std::set<std::string> sorted;
    const std::string prefix = random() % 2 == 0 ? "" : draw();
    for (size_t count = random() % 40; count > 0; --count) sorted.insert(prefix + draw());
    const std::vector<std::string> keys(sorted.begin(), sorted.end());
    for (int i = 0; i < 100; ++i) {
      const std::string key = random() % 3 == 0 ? draw() : prefix + draw();
      ASSERT_EQ(CountUpTo(keys, key), Expected(keys, key)) << "round " << round;
    }
  }
}

}  // namespace
}  // namespace partita
