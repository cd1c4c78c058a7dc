#include <gtest/gtest.h>

#include "engine/base/deleted_keys.h"
#include "sstable/data_block.h"
#include "sstable/footer_format.h"
#include "sstable/fuse_filter.h"
#include "sstable/index_record.h"
#include "sstable/properties.h"
#include "test/sstable/table_fixture.h"

// Fixed inputs, exact bytes: a change of a format shows here as a diff. When a change is meant, the
// format's version byte rises with it.

namespace partita {
namespace {

std::string Hex(std::string_view bytes) {
  std::string hex;
  for (char byte : bytes) {
    char text[3];
    std::snprintf(text, sizeof text, "%02x", static_cast<unsigned char>(byte));
    hex += text;
  }
  return hex;
}

TableInfo GoldenInfo() {
  TableInfo info;
  info.id = ObjectId(300);
  info.file_size = 0;
  info.entry_count = 3;
  info.tombstone_count = 1;
  info.raw_bytes = 77;
  info.smallest = "aa";
  info.largest = "zz";
  info.version_min = Version(5);
  info.version_max = Version(1000);
  return info;
}

TEST(FormatGoldenTest, DataBlock) {
  DataBlockBuilder builder;
  builder.Add(
      {.user_key = "tab-alpha", .version = Version(0x105), .kind = EntryKind::kPut, .value = "VALUE1"});
  builder.Add(
      {.user_key = "tab-alpha", .version = Version(0x100), .kind = EntryKind::kTombstone, .value = "T"});
  builder.Add(
      {.user_key = "tab-beta-and-more", .version = Version(0x1FF), .kind = EntryKind::kPut, .value = "v2"});
  std::string content;
  builder.Finish(&content);
  EXPECT_EQ(Hex(content),
            "0300000004000000050000000900000000010000000000000100000000000000616c706861000000616c706861000000"
            "626574612d616e64000000000500000000000500000000000d007461622d2d6d6f72650500ff06000000070000000900"
            "000001820156414c554531547632");
}

TEST(FormatGoldenTest, StoredPart) {
  PartEncoder encoder(Codec::kStored);
  const std::string_view part = encoder.Encode(SealKind::kDataBlock, "content");
  EXPECT_EQ(Hex(part), "00000000000000001f000000070000000000000001040000636f6e74656e74");
}

TEST(FormatGoldenTest, SealOfAPart) {
  PartEncoder encoder(Codec::kStored);
  const std::string_view part = encoder.Encode(SealKind::kDataBlock, "content");
  std::string seal(8, '\0');
  StoreLe64(seal.data(),
            PartContentHash(part) ^ PartIdentity(kTestStore, ObjectId(7), 4096, SealKind::kDataBlock).Mix());
  EXPECT_EQ(Hex(seal), "aba28a423204755e");
}

TEST(FormatGoldenTest, Footer) {
  Footer footer;
  footer.top_index = {1, 2, 3};
  footer.properties = {4, 5, 6};
  footer.key_filter = {7, 8, 9};
  footer.partition_filter = {10, 11, 12};
  footer.index_begin = 13;
  footer.index_end = 14;
  footer.entry_count = 15;
  footer.tombstone_count = 16;
  footer.version_max = Version(17);
  footer.file_size = 8192;
  std::string bytes;
  AppendFooter(&bytes, footer, kTestStore, ObjectId(7));
  EXPECT_EQ(Hex(bytes),
            "010000000000000002000000030000000400000000000000050000000600000007000000000000000800000009000000"
            "0a000000000000000b0000000c0000000d000000000000000e000000000000000f000000000000001000000000000000"
            "11000000000000000020000000000000020000007054626c6a09a74b23a0f980");
  Footer read;
  ASSERT_TRUE(DecodeFooter(bytes, 8192, kTestStore, ObjectId(7), &read).ok());
  EXPECT_EQ(read, footer);
}

TEST(FormatGoldenTest, IndexRecordWithZoneMap) {
  std::string record;
  AppendIndexRecord(&record, {4096, 1000, 2000}, 12);
  ZoneMap map;
  map.version_min = Version(5);
  map.version_max = Version(9);
  map.tombstones = 2;
  map.zones.push_back({.property = 3, .absent = true, .types = 0x0102, .least = 7, .greatest = 0xFF00});
  AppendZoneMap(&record, map);
  const std::string golden =
      "0010000000000000e8030000d00700000c00000005000000000000000900000000000000020000000103010201070000"
      "000000000000ff000000000000";
  EXPECT_EQ(Hex(record), golden);
  EXPECT_EQ(IndexRecordHandle(record), (PartHandle{4096, 1000, 2000}));
  EXPECT_EQ(IndexRecordEntryCount(record), 12u);
  EXPECT_EQ(*IndexRecordZones(record), map);
  EXPECT_TRUE(IndexRecordZoneView(record).valid());
  EXPECT_EQ(IndexRecordKeySum(record), std::nullopt) << "as in files of format 1";

  AppendLe64(&record, 0x0102030405060708);
  EXPECT_EQ(Hex(record), golden + "0807060504030201");
  EXPECT_EQ(*IndexRecordZones(record), map);
  EXPECT_TRUE(IndexRecordZoneView(record).valid());
  EXPECT_EQ(IndexRecordZoneView(record).version_max(), Version(9));
  EXPECT_EQ(IndexRecordKeySum(record), 0x0102030405060708u);
  for (size_t size = kIndexRecordHeaderSize; size < record.size(); ++size) {
    if (size == record.size() - kKeySumSize) continue;
    EXPECT_FALSE(IndexRecordZones(record.substr(0, size)).ok()) << size;
    EXPECT_FALSE(IndexRecordZoneView(record.substr(0, size)).valid()) << size;
    EXPECT_EQ(IndexRecordKeySum(record.substr(0, size)), std::nullopt) << size;
  }
  EXPECT_FALSE(IndexRecordZones(record + 'x').ok());
  EXPECT_EQ(KeySumTerm(Key("p", "r"), KeySumSeed(kTestStore)), 5929374155366914518u);
}

TEST(FormatGoldenTest, FuseFilter) {
  std::vector<uint64_t> hashes{1, 2, 3};
  EXPECT_EQ(
      Hex(BuildFuseFilter(&hashes, FilterWidth::k8Bits)),
      "ea2eaba4f166a09c08000000010000000300000000000000000000000000000000470000000000000000005c00001800");
}

TEST(FormatGoldenTest, TableInfoAndFileReference) {
  FileMeta meta;
  meta.level = 2;
  meta.lower = "ab";
  meta.upper = "yy";
  meta.info = GoldenInfo();
  std::string bytes;
  AppendFileMeta(&bytes, meta);
  EXPECT_EQ(Hex(bytes), "02026162027979ac020003014d026161027a7a05e807");
}

TEST(FormatGoldenTest, Properties) {
  TableProperties p;
  p.info = GoldenInfo();
  p.key_count = 2;
  p.partition_count = 1;
  p.data_blocks = 1;
  p.index_blocks = 1;
  p.data_bytes = 500;
  p.padding_bytes = 12;
  p.codec = 1;
  p.level = -1;
  p.zone_properties = {"Size"};
  p.zones.version_min = Version(5);
  p.zones.version_max = Version(1000);
  p.zones.zones.push_back({.property = 0, .absent = false, .types = 2, .least = 1, .greatest = 2});
  std::string bytes;
  AppendProperties(&bytes, p);
  EXPECT_EQ(Hex(bytes),
            "ac020003014d026161027a7a05e80702010101f4030c017f010453697a650500000000000000e8030000000000000000"
            "0000010000020001000000000000000200000000000000");
  Result<TableProperties> read = DecodeProperties(bytes);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, p);
}

TEST(FormatGoldenTest, WholeFile) {
  MemoryObjectStore store;
  std::vector<OwnedEntry> entries;
  for (uint64_t i = 0; i < 50; ++i) {
    entries.push_back(Put(Key("partition" + std::to_string(i / 10), "row" + std::to_string(i % 10)), 1000 + i,
                          std::string(100, 'v')));
  }
  ASSERT_TRUE(
      WriteTable(store, ObjectId(7), entries, {.codec = Codec::kStored, .block_size = 2048, .zones = {}})
          .ok());
  const std::string& bytes = store.bytes(ObjectId(7));
  EXPECT_EQ(bytes.size(), 8192u);
  char hash[17];
  std::snprintf(hash, sizeof hash, "%016llx", static_cast<unsigned long long>(Hash64(bytes)));
  EXPECT_STREQ(hash, "d592d08ed1b53836");
}

}  // namespace
}  // namespace partita
