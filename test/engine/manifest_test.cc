#include "engine/manifest.h"

#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include "engine/base/given_version.h"
#include "engine/base/hex.h"
#include "engine/base/user_key.h"
#include "sstable/data_block.h"
#include "test/support/former_manifest.h"

namespace partita {
namespace {

TEST(ManifestKeyTest, SaysOfWhichLayoutAndShardItIs) {
  for (const uint32_t layout : {1u, 7u, kLayoutMax}) {
    for (const uint32_t shard : {0u, 9u, kShardCountMax - 1}) {
      const std::string key = ManifestKey(layout, ShardId(shard));
      const std::optional<ShardOfLayout> read = ParseManifestKey(key);
      ASSERT_TRUE(read.has_value()) << key;
      EXPECT_EQ(read->layout, layout);
      EXPECT_EQ(read->shard, ShardId(shard));
      const std::optional<ShardOfLayout> log = ParseLogDirectory(LogDirectory(layout, ShardId(shard)));
      ASSERT_TRUE(log.has_value());
      EXPECT_EQ(log->layout, layout);
      EXPECT_EQ(log->shard, ShardId(shard));
      EXPECT_FALSE(ParseLogDirectory(key).has_value());
    }
  }
}

TEST(ManifestKeyTest, OtherNamesAreNoManifests) {
  for (const char* name : {"", "catalog", "shard-", "shard-1", "shard-1-", "shard--1", "shard-1-0x",
                           "shard-1-256", "shard-4294967296-0", "shard-1048577-0", "shard-0-0", "log-1-0"}) {
    EXPECT_FALSE(ParseManifestKey(name).has_value()) << name;
  }
}

TableInfo InfoOf(uint64_t id, const std::string& smallest, const std::string& largest) {
  TableInfo info;
  info.id = ObjectId(id);
  info.file_size = 1000 + id;
  info.entry_count = 10 * id;
  info.smallest = smallest;
  info.largest = largest;
  info.version_max = Version(id);
  return info;
}

// So many ranges that refer to each of so many files, whose keys are as long as keys get.
Manifest OfManyRanges(uint32_t ranges, uint32_t files) {
  Manifest manifest;
  manifest.shard = ShardId(3);
  manifest.layout = 2;
  manifest.replay_from = LogPosition(77);
  manifest.version_ceiling = Version(88);
  manifest.log_segment = 9;
  for (uint32_t range = 1; range <= ranges; ++range) {
    for (uint32_t file = 1; file <= files; ++file) {
      manifest.files.push_back({file % 7, TableLowerBound(TableId(range)), TableUpperBound(TableId(range)),
                                InfoOf(file, std::string(4096, 'a'), std::string(4096, 'z'))});
    }
  }
  manifest.prepared.attempt = 5;
  manifest.prepared.files.push_back({0, "m", "", InfoOf(1, std::string(4096, 'a'), std::string(4096, 'z'))});
  manifest.prepared.files.push_back({1, "", "n", InfoOf(900, "b", "c")});
  return manifest;
}

void ExpectSame(const Manifest& a, const Manifest& b) {
  EXPECT_EQ(a.shard, b.shard);
  EXPECT_EQ(a.layout, b.layout);
  EXPECT_EQ(a.replay_from, b.replay_from);
  EXPECT_EQ(a.version_ceiling, b.version_ceiling);
  EXPECT_EQ(a.log_segment, b.log_segment);
  EXPECT_EQ(a.files, b.files);
  EXPECT_EQ(a.prepared.attempt, b.prepared.attempt);
  EXPECT_EQ(a.prepared.files, b.prepared.files);
}

TEST(ManifestTest, FilesAndBoundsAreWrittenOnceHoweverManyRangesReferToThem) {
  const Manifest manifest = OfManyRanges(500, 20);
  const std::string bytes = EncodeManifest(manifest);
  EXPECT_LT(bytes.size(), 500 * 20 * 8 + 22 * 8300u);
  const Result<Manifest> read = DecodeManifest(bytes);
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  ExpectSame(*read, manifest);
  EXPECT_EQ(&*read->files[0].info, &*read->files[20].info);  // Nor are they in memory.
  ExpectSame(*DecodeManifest(EncodeManifest(Manifest())), Manifest());
  // Just behind the longest key.
  Manifest longest;
  longest.files.push_back({6, "", std::string(kUserKeySizeMax, 'k') + '\0', InfoOf(1, "a", "b")});
  ExpectSame(*DecodeManifest(EncodeManifest(longest)), longest);
}

TEST(ManifestTest, TheBytesOfFormat5AreAsTheyWereWritten) {
  Manifest manifest;
  manifest.shard = ShardId(3);
  manifest.layout = 2;
  manifest.replay_from = LogPosition(0x4d);
  manifest.version_ceiling = Version(0x0102030405060708);
  manifest.log_segment = 9;
  TableInfo wide = InfoOf(300, "car", "cow");
  wide.tombstone_count = 1;
  wide.raw_bytes = 200;
  wide.version_min = Version(2);
  manifest.files.push_back({0, "ca", "cat", wide});
  manifest.files.push_back({0, "cat", "", wide});
  manifest.files.push_back({6, "ca", "cat", InfoOf(7, "cab", "cap")});
  manifest.prepared.attempt = 0x0a0b;
  manifest.prepared.files.push_back({2, "d", "", InfoOf(5, "d", "e")});
  const std::string expected =
      "0500"
      "03000000"          // Shard.
      "02000000"          // Layout.
      "4d00000000000000"  // Replay from.
      "0807060504030201"  // Version ceiling.
      "0900000000000000"  // Log segment.
      "04"                // Bounds: shared with the one before, and the rest.
      "0000"              // "".
      "00026361"          // "ca".
      "020174"            // "cat".
      "000164"            // "d".
      "03"                // Tables, as references come to them.
      "ac02940ab81701c8010363617203636f7702ac02"
      "07ef0746000003636162036361700007"
      "05ed07320000016401650005"
      "03"  // References: level, table, lower, upper.
      "00000102"
      "00000200"
      "06010102"
      "0b0a000000000000"  // Attempt.
      "01"                // Prepared.
      "02020300";
  const std::string bytes = EncodeManifest(manifest);
  std::string hex;
  AppendHex(&hex, bytes);
  EXPECT_EQ(hex, expected);
  ExpectSame(*DecodeManifest(bytes), manifest);
}

// covers: F66
TEST(ManifestTest, FormatsWithWholeReferencesAreStillRead) {
  const Manifest manifest = OfManyRanges(3, 2);
  for (uint16_t format = 1; format <= 4; ++format) {
    Manifest expected = manifest;
    if (format < 2) expected.log_segment = 0;
    if (format < 3) expected.prepared = {};
    const std::string bytes = EncodeFormerManifest(manifest, format);
    const Result<Manifest> read = DecodeManifest(bytes);
    ASSERT_TRUE(read.ok()) << format << ": " << read.status().ToString();
    ExpectSame(*read, expected);
  }
}

// covers: F77
TEST(ManifestTest, WhatNamesWhatIsNotThereIsRefused) {
  Manifest manifest;
  manifest.files.push_back({6, "b", "f", InfoOf(4, "c", "d")});
  const std::string good = EncodeManifest(manifest);
  ASSERT_TRUE(DecodeManifest(good).ok());
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_EQ(DecodeManifest(good.substr(0, size)).code(), Code::kCorruption) << size;
  // The reference: level, table, lower, upper, in front of an attempt of 8 bytes and no prepared files.
  const size_t reference = good.size() - 9 - 4;
  const auto message_with = [&](size_t at, char value) {
    std::string bad = good;
    bad[reference + at] = value;
    return DecodeManifest(bad).status().message();
  };
  EXPECT_THAT(message_with(0, 7), testing::HasSubstr("file 0 is on an unknown level"));
  EXPECT_THAT(message_with(1, 1), testing::HasSubstr("file 0 names a table or a bound that is not there"));
  EXPECT_THAT(message_with(2, 2), testing::HasSubstr("file 0 names a table or a bound that is not there"));
  EXPECT_THAT(message_with(3, 9), testing::HasSubstr("file 0 names a table or a bound that is not there"));
  // The bounds are "b" and "f", the second behind its two lengths.
  std::string falls = good;
  falls[34 + 1 + 3 + 2] = 'a';
  EXPECT_THAT(DecodeManifest(falls).status().message(), testing::HasSubstr("bound 1 does not rise"));
  std::string shares_too_much = good;
  shares_too_much[34 + 1] = 3;  // Of the first bound, behind the header and the number of bounds.
  EXPECT_THAT(DecodeManifest(shares_too_much).status().message(),
              testing::HasSubstr("bound 0 shares more than there is"));
}

// covers: F43 F77
TEST(ManifestTest, WhatHoldsNoKeyIsRefusedWhicheverFormatSaysIt) {
  const auto message_of = [](const FileMeta& file, uint16_t format) {
    Manifest manifest;
    manifest.files.push_back(file);
    const std::string bytes = format < 5 ? EncodeFormerManifest(manifest, format) : EncodeManifest(manifest);
    return DecodeManifest(bytes).status().message();
  };
  for (uint16_t format = 1; format <= 5; ++format) {
    EXPECT_EQ(message_of({6, "b", "f", InfoOf(4, "c", "c")}, format), "");
    EXPECT_THAT(message_of({6, "b", "f", InfoOf(4, "d", "c")}, format),
                testing::HasSubstr("file 0 is of a table that ends before it begins"));
    EXPECT_THAT(message_of({6, "f", "f", InfoOf(4, "c", "h")}, format),
                testing::HasSubstr("file 0 has bounds without a key"));
    EXPECT_THAT(message_of({6, "f", "e", InfoOf(4, "c", "h")}, format),
                testing::HasSubstr("file 0 has bounds without a key"));
  }
}

// covers: F77
TEST(ManifestTest, ACeilingThatNoClockGivesIsRefused) {
  Manifest manifest;
  manifest.version_ceiling = kVersionGivenMax;
  EXPECT_TRUE(DecodeManifest(EncodeManifest(manifest)).ok());
  ++manifest.version_ceiling.value;
  EXPECT_EQ(DecodeManifest(EncodeManifest(manifest)).code(), Code::kCorruption);
}

}  // namespace
}  // namespace partita
