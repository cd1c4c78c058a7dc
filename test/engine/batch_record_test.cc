#include "engine/batch_record.h"

#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include <string>

#include "engine/base/hex.h"
#include "engine/base/stored_value.h"
#include "engine/base/user_key.h"

namespace partita {
namespace {

// Records of batches and of imports. covers: F42 F66

using testing::HasSubstr;

constexpr uint64_t kAttempt = (uint64_t{3} << 32) | 9;

std::string StoredValueOf(const std::string& key, EntryKind kind, const std::string& content) {
  std::string value(kStoredValueHeaderSize + content.size(), '\0');
  WriteStoredValue(key, kind, content, reinterpret_cast<uint8_t*>(value.data()));
  return value;
}

TEST(BatchRecordTest, ABatchHasExactlyTheseBytesAndComesBack) {
  const std::string put = EncodeUserKey(TableId(7), "p", "r1"), gone = EncodeUserKey(TableId(7), "p", "r2");
  std::string bytes(200, '?');
  uint8_t* const memory = reinterpret_cast<uint8_t*>(bytes.data());
  BatchRecordWriter writer(memory, TableId(7), RangeEpoch(0x0a0b));
  writer.Add(EntryKind::kPut, put, "content");
  writer.Add(EntryKind::kTombstone, gone, "");
  SetBatchVersion(memory, Version(0x0102030405060708));
  const std::string_view payload = writer.Finish();
  const std::string put_value = StoredValueOf(put, EntryKind::kPut, "content");
  const std::string gone_value = StoredValueOf(gone, EntryKind::kTombstone, "");
  std::string expected =
      "01"                  // Format.
      "01"                  // Kind.
      "0000"                // Zero.
      "07000000"            // Table.
      "0807060504030201"    // Version.
      "0b0a000000000000"    // Epoch.
      "02000000"            // Operations.
      "01"                  // Put.
      "080000000770007231"  // Key.
      "0b";                 // Size of the stored value.
  AppendHex(&expected, put_value);
  expected +=
      "02"                  // Tombstone.
      "080000000770007232"  // Key.
      "04";                 // Size of the stored value.
  AppendHex(&expected, gone_value);
  std::string hex;
  AppendHex(&hex, payload);
  EXPECT_EQ(hex, expected);

  Result<BatchRecordReader> reader = BatchRecordReader::Open(payload);
  ASSERT_TRUE(reader.ok()) << reader.status().ToString();
  EXPECT_EQ(reader->header().table, TableId(7));
  EXPECT_EQ(reader->header().version, Version(0x0102030405060708));
  EXPECT_EQ(reader->header().epoch, RangeEpoch(0x0a0b));
  EXPECT_EQ(reader->header().attempt, 0u);
  Entry entry;
  ASSERT_TRUE(reader->Next(&entry));
  EXPECT_EQ(entry.user_key, put);
  EXPECT_EQ(entry.value, put_value);
  EXPECT_EQ(entry.version, Version(0x0102030405060708));
  ASSERT_TRUE(reader->Next(&entry));
  EXPECT_EQ(entry.user_key, gone);
  EXPECT_EQ(entry.kind, EntryKind::kTombstone);
  EXPECT_FALSE(reader->Next(&entry));
  EXPECT_TRUE(reader->status().ok()) << reader->status().ToString();
}

// It would enter the memtable, and each flush of that then fail.
TEST(BatchRecordTest, AKeyLongerThanATableTakesIsRefused) {
  for (const size_t size : {kUserKeySizeMax, kUserKeySizeMax + 1}) {
    const std::string key = EncodeUserKey(TableId(7), "p", std::string(size - kTableIdSize - 2, 'r'));
    ASSERT_EQ(key.size(), size);
    std::string bytes(kBatchRecordHeaderSize + kBatchOperationOverheadMax + key.size(), '\0');
    BatchRecordWriter writer(reinterpret_cast<uint8_t*>(bytes.data()), TableId(7), RangeEpoch(1));
    writer.Add(EntryKind::kPut, key, "");
    Result<BatchRecordReader> reader = BatchRecordReader::Open(writer.Finish());
    ASSERT_TRUE(reader.ok()) << reader.status().ToString();
    Entry entry;
    EXPECT_EQ(reader->Next(&entry), size == kUserKeySizeMax);
    EXPECT_EQ(reader->status().code(), size == kUserKeySizeMax ? Code::kOk : Code::kCorruption);
  }
}

// Recovery takes memory for each before it reads the first. covers: F42 F77
TEST(BatchRecordTest, MoreOperationsThanItsBytesHoldAreRefused) {
  const std::string key = EncodeUserKey(TableId(7), "", "");  // The smallest.
  std::string bytes(kBatchRecordHeaderSize + 2 * (kBatchOperationOverheadMax + key.size()), '\0');
  BatchRecordWriter writer(reinterpret_cast<uint8_t*>(bytes.data()), TableId(7), RangeEpoch(1));
  for (int i = 0; i < 2; ++i) writer.Add(EntryKind::kTombstone, key, "");
  bytes.resize(writer.Finish().size());
  EXPECT_EQ(bytes.size(), kBatchRecordHeaderSize + 2 * kBatchOperationSizeMin);
  EXPECT_TRUE(BatchRecordReader::Open(bytes).ok());
  for (const uint32_t operations : {3u, UINT32_MAX}) {
    StoreLe32(bytes.data() + 24, operations);
    EXPECT_EQ(BatchRecordReader::Open(bytes).code(), Code::kCorruption);
  }
}

class ImportTest : public testing::Test {
 protected:
  ImportTest() {
    const std::string put = EncodeUserKey(TableId(1), "p", "r1"), gone = EncodeUserKey(TableId(1), "p", "r2");
    keys_ = {put, gone};
    values_ = {StoredValueOf(put, EntryKind::kPut, "content"),
               StoredValueOf(gone, EntryKind::kTombstone, "")};
    bytes_.resize(kBatchRecordHeaderSize);
    for (int i = 0; i < 2; ++i) {
      bytes_.resize(bytes_.size() + kImportOperationOverheadMax + keys_[i].size() + values_[i].size());
    }
    BatchRecordWriter writer(memory(), kAttempt);
    writer.AddImported({keys_[0], Version(500), EntryKind::kPut, values_[0]});
    writer.AddImported({keys_[1], Version(400), EntryKind::kTombstone, values_[1]});
    SetBatchVersion(memory(), Version(501));
    bytes_.resize(writer.Finish().size());
  }
  uint8_t* memory() { return reinterpret_cast<uint8_t*>(bytes_.data()); }
  // Why it cannot be read, or ok.
  Status Read() {
    Result<BatchRecordReader> reader = BatchRecordReader::Open(bytes_);
    if (!reader.ok()) return reader.status();
    Entry entry;
    while (reader->Next(&entry)) {
    }
    return reader->status();
  }

  std::vector<std::string> keys_, values_;
  std::string bytes_;
};

TEST_F(ImportTest, EntriesKeepTheirVersions) {
  Result<BatchRecordReader> reader = BatchRecordReader::Open(bytes_);
  ASSERT_TRUE(reader.ok()) << reader.status().ToString();
  EXPECT_EQ(reader->header().attempt, kAttempt);
  EXPECT_EQ(reader->header().version, Version(501));
  EXPECT_EQ(reader->header().operations, 2u);
  Entry entry;
  ASSERT_TRUE(reader->Next(&entry));
  EXPECT_EQ(entry.user_key, keys_[0]);
  EXPECT_EQ(entry.value, values_[0]);
  EXPECT_EQ(entry.version, Version(500));
  EXPECT_EQ(entry.kind, EntryKind::kPut);
  ASSERT_TRUE(reader->Next(&entry));
  EXPECT_EQ(entry.user_key, keys_[1]);
  EXPECT_EQ(entry.version, Version(400));
  EXPECT_EQ(entry.kind, EntryKind::kTombstone);
  EXPECT_FALSE(reader->Next(&entry));
  EXPECT_TRUE(reader->status().ok()) << reader->status().ToString();
}

TEST_F(ImportTest, CountsWhereItsAttemptBroughtTheRange) {
  const BatchRecordHeader imported = BatchRecordReader::Open(bytes_)->header();
  EXPECT_TRUE(imported.CountsIn(kAttempt));
  EXPECT_FALSE(imported.CountsIn(kAttempt + 1));
  EXPECT_FALSE(imported.CountsIn(0));
  std::string batch(kBatchRecordHeaderSize, '\0');
  BatchRecordWriter(reinterpret_cast<uint8_t*>(batch.data()), TableId(1), RangeEpoch(5)).Finish();
  EXPECT_TRUE(BatchRecordReader::Open(batch)->header().CountsIn(0));
  EXPECT_TRUE(BatchRecordReader::Open(batch)->header().CountsIn(kAttempt));
}

TEST_F(ImportTest, WhatCannotBeIsRefused) {
  ASSERT_TRUE(Read().ok());
  SetBatchVersion(memory(), Version(499));
  EXPECT_THAT(Read().message(), HasSubstr("version above its own"));
  SetBatchVersion(memory(), Version(501));
  const std::string whole = bytes_;
  for (size_t size = 0; size < whole.size(); ++size) {
    bytes_ = whole.substr(0, size);
    EXPECT_EQ(Read().code(), Code::kCorruption) << size;
  }
  bytes_ = whole + "x";
  EXPECT_EQ(Read().code(), Code::kCorruption);
  bytes_ = whole;
  StoreLe64(memory() + 16, 0);
  EXPECT_THAT(Read().message(), HasSubstr("no attempt"));
  bytes_ = whole;
  bytes_[bytes_.find(keys_[0]) + kTableIdSize + 1] = 'x';  // What ends its PartitionKey.
  EXPECT_THAT(Read().message(), HasSubstr("a key without a PartitionKey"));
  bytes_ = whole;
  bytes_[0] = 1;  // The format of a batch.
  EXPECT_EQ(Read().code(), Code::kCorruption);
  bytes_[0] = 3;
  EXPECT_EQ(Read().code(), Code::kUnsupported);
}

}  // namespace
}  // namespace partita
