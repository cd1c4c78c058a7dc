#include "sstable/data_block.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "test/sstable/table_fixture.h"

namespace partita {
namespace {

std::string Build(const std::vector<OwnedEntry>& entries) {
  DataBlockBuilder builder;
  for (const OwnedEntry& entry : entries) builder.Add(entry.view());
  std::string content;
  builder.Finish(&content);
  return content;
}

// Keys without the shape of user keys, chosen to tie on heads, to be prefixes of each other, and to
// hold zero and 0xFF bytes at the edge of the head.
std::vector<OwnedEntry> TrickyEntries(std::mt19937_64& random, size_t keys) {
  std::map<std::string, std::vector<OwnedEntry>> by_key;
  const std::string stem = RandomBytes(random, random() % 12, 3);
  while (by_key.size() < keys) {
    std::string key = stem + RandomBytes(random, random() % 14, 1 + random() % 3);
    if (random() % 4 == 0) key += RandomBytes(random, random() % 30);
    if (key.empty()) continue;
    by_key[key];
  }
  std::vector<OwnedEntry> entries;
  for (auto& [key, unused] : by_key) {
    uint64_t version = random() % 2 ? random() : 1000 + random() % 1000;
    for (size_t i = random() % 4 == 0 ? 3 : 1; i > 0 && version > 0; --i) {
      entries.push_back(random() % 5 ? Put(key, version, RandomBytes(random, random() % 20))
                                     : Tombstone(key, version));
      version -= 1 + random() % std::min<uint64_t>(version, 1000);
    }
  }
  return entries;
}

TEST(DataBlockTest, SearchAgreesWithALinearOne) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 400; ++round) {
    const std::vector<OwnedEntry> entries = TrickyEntries(random, 1 + random() % 60);
    const std::string content = Build(entries);
    Status valid = DataBlock::Validate(content);
    ASSERT_TRUE(valid.ok()) << valid.ToString();
    const DataBlock block(content);
    ASSERT_EQ(block.size(), entries.size());
    std::vector<std::string> probes{"", std::string(20, '\xff')};
    for (uint32_t i = 0; i < entries.size(); ++i) {
      ASSERT_EQ(block.Key(i), entries[i].user_key);
      ASSERT_EQ(block.version(i), entries[i].version);
      ASSERT_EQ(block.kind(i), entries[i].kind);
      ASSERT_EQ(block.value(i), entries[i].value);
      probes.push_back(entries[i].user_key);
      probes.push_back(entries[i].user_key + std::string(1, '\0'));
      probes.push_back(entries[i].user_key.substr(0, random() % (entries[i].user_key.size() + 1)));
      probes.back().append(random() % 3, '\0');
    }
    for (const std::string& probe : probes) {
      uint32_t expected = 0;
      while (expected < entries.size() && entries[expected].user_key < probe) ++expected;
      ASSERT_EQ(block.LowerBound(probe), expected);
      for (Version at_most : {kVersionMax, Version(1500), entries[random() % entries.size()].version}) {
        const Lookup want = ExpectedLookup(entries, probe, at_most);
        const Lookup got = block.Find(probe, at_most);
        ASSERT_EQ(got.state, want.state);
        ASSERT_EQ(got.version, want.version);
      }
    }
  }
}

// covers: F77
TEST(DataBlockTest, NoContentMakesReadingLeaveTheBlock) {
  std::mt19937_64 random(TestSeed());
  size_t accepted = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string content = Build(TrickyEntries(random, 1 + random() % 6));
    for (size_t changes = 1 + random() % 3; changes > 0; --changes) {
      const size_t at = random() % (random() % 2 ? content.size() : std::min<size_t>(content.size(), 80));
      content[at] = static_cast<char>(random() % 2 ? content[at] ^ (1 << (random() % 8)) : random());
    }
    if (random() % 10 == 0) content.resize(random() % content.size());
    // A buffer of exactly this size, so that a sanitizer sees one byte too far.
    std::unique_ptr<char[]> exact(new char[content.size()]);
    content.copy(exact.get(), content.size());
    const std::string_view view(exact.get(), content.size());
    if (!DataBlock::Validate(view).ok()) continue;
    ++accepted;
    const DataBlock block(view);
    size_t sum = 0;
    for (uint32_t i = 0; i < block.size(); ++i) {
      const std::string key = block.Key(i);
      sum += key.size() + block.value(i).size() + block.version(i).value;
      ASSERT_EQ(block.LowerBound(key) <= i, true);
      (void)block.Find(key, kVersionMax);
    }
    ASSERT_GE(sum, 0u);
  }
  EXPECT_GT(accepted, 100u);  // Values and versions may change freely; the seal guards those.
}

// covers: F77
TEST(DataBlockTest, EntriesAreUserKeysWithStoredValues) {
  const auto valid = [](const std::vector<OwnedEntry>& entries) {
    const std::string content = Build(entries);
    EXPECT_TRUE(DataBlock::Validate(content).ok());
    return DataBlock(content).ValidateEntities().ok();
  };
  const auto put = [](std::string key) { return Put(std::move(key), 5, "v"); };
  const std::string table("\0\0\0\1", 4), end(1, '\0');
  // The zero byte in the common prefix, among the first eight bytes behind it, and further on.
  EXPECT_TRUE(valid({put(Key("p", "a")), put(Key("p", "b"))}));
  EXPECT_TRUE(valid({put(Key("p", "")), put(Key("q", ""))}));
  EXPECT_TRUE(valid({put(Key("a-long-partition", "r")), put(Key("b-long-partition", "r"))}));
  EXPECT_TRUE(valid({put(Key("", ""))}));
  EXPECT_TRUE(valid(
      {put(EncodeUserKey(TableId(0x01020304), "", "")), put(EncodeUserKey(TableId(0xA1020304), "p", ""))}));
  for (const std::string& bad : {std::string(), table, table + "p", table + "a-long-partition",
                                 std::string("abc") + end, "abcd" + std::string(20, 'x')}) {
    EXPECT_FALSE(valid({put(bad)})) << bad;
    std::vector<OwnedEntry> two = {put(bad), put(Key("q", "1")), put("zzzzzz" + end)};
    std::sort(two.begin(), two.end(), InternalOrder);
    EXPECT_FALSE(valid(two)) << bad;
  }
  OwnedEntry no_checksum = put(Key("p", "b"));
  no_checksum.value.resize(3);
  EXPECT_FALSE(valid({put(Key("p", "a")), no_checksum}));
  EXPECT_FALSE(valid({no_checksum, put(Key("p", "c"))}));
}

// A merge could not write it again, and each step over a block's keys copies what they share. covers: F77
TEST(DataBlockTest, NoKeyIsLongerThanATableTakes) {
  const std::string longest = Key("p", std::string(kUserKeySizeMax - Key("p", "").size(), 'r'));
  ASSERT_EQ(longest.size(), kUserKeySizeMax);
  for (const bool alone : {true, false}) {  // Alone, all of it is prefix.
    std::vector<OwnedEntry> entries = {Put(longest, 5, "v")};
    if (!alone) entries.push_back(Put(Key("q", ""), 5, "v"));
    std::string content = Build(entries);
    EXPECT_TRUE(DataBlock::Validate(content).ok());
    const size_t shared = LoadLe32(content.data() + 4);
    const size_t slot = kDataBlockHeaderSize + 8 * entries.size();
    if (alone) {
      ASSERT_EQ(shared, longest.size());
      content.insert(slot + kSlotSize, "x");
      StoreLe32(content.data() + 4, static_cast<uint32_t>(shared + 1));
    } else {
      const size_t end_of_suffix = slot + kSlotSize * entries.size() + shared + longest.size() - shared - 8;
      content.insert(end_of_suffix, "x");
      StoreLe32(content.data() + 8, LoadLe32(content.data() + 8) + 1);
      StoreLe16(content.data() + slot + 4, static_cast<uint16_t>(longest.size() - shared + 1));
    }
    const Status refused = DataBlock::Validate(content);
    EXPECT_EQ(refused.code(), Code::kCorruption);
    EXPECT_NE(refused.message().find("too long"), std::string::npos) << refused.message();
  }
}

TEST(DataBlockTest, TheEstimateOfItsSizeIsItsSize) {
  std::mt19937_64 random(TestSeed());
  DataBlockBuilder builder;
  for (int i = 0; i < 100; ++i) {
    const std::string key = Key("partition-one", "row-" + std::to_string(10000 + i));
    const OwnedEntry entry = Put(key, 1000 + random() % 100000, RandomBytes(random, random() % 300));
    EXPECT_LE(builder.content_size() + entry.value.size(),
              builder.content_size_with(key.size(), entry.value.size()));
    builder.Add(entry.view());
    if (i == 0) continue;
  }
  const size_t estimate = builder.content_size();
  std::string content;
  builder.Finish(&content);
  EXPECT_EQ(estimate, content.size());
  EXPECT_TRUE(builder.empty());
}

}  // namespace
}  // namespace partita
