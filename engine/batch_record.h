#pragma once
#include <cstdint>
#include <string_view>

#include "engine/base/coding.h"
#include "engine/base/entry.h"
#include "engine/base/ids.h"
#include "engine/base/result.h"

namespace partita {

// The payload of a log record: one atomic batch, as decided. It is built once, in the memory of
// the memtable it goes to, and the memtable's entries point into it; the log writes the same
// bytes. (Seals and identity are the log's.)
//
//   offset  size  field
//        0     1  format   kBatchRecordFormat
//        1     1  kind     1 = batch
//        2     2  zero
//        4     4  table id
//        8     8  version  of every entry; stored when the batch is decided
//       16     8  range epoch it was decided under
//       24     4  operation count
//       28     n  operations: u8 entry kind · varint key size · user key · varint value size ·
//                 stored value (stored_value.h)
inline constexpr uint8_t kBatchRecordFormat = 1;
inline constexpr uint8_t kBatchRecordKind = 1;
inline constexpr size_t kBatchRecordHeaderSize = 28;
inline constexpr size_t kBatchRecordVersionOffset = 8;
// Of one operation beside key and content: kind, two varints, the stored value's header.
inline constexpr size_t kBatchOperationOverheadMax = 1 + 5 + 5 + 4;

struct BatchRecordHeader {
  TableId table;
  Version version;
  RangeEpoch epoch;
  uint32_t operations = 0;
};

// Writes header and operations front to back into memory of at least
// kBatchRecordHeaderSize + sum(kBatchOperationOverheadMax + key + content) bytes.
class BatchRecordWriter {
 public:
  BatchRecordWriter(uint8_t* to, TableId table, RangeEpoch epoch);
  void Add(EntryKind kind, std::string_view user_key, std::string_view content);
  // The whole payload.
  std::string_view Finish();

 private:
  uint8_t* begin_;
  uint8_t* at_;
  uint32_t operations_ = 0;
};

// Sets the version of a finished payload.
inline void SetBatchVersion(uint8_t* payload, Version version) {
  StoreLe64(payload + kBatchRecordVersionOffset, version.value);
}

// Reads a payload; every length is checked. Entries' views point into it.
class BatchRecordReader {
 public:
  // kCorruption naming the field, kUnsupported for a newer format.
  static Result<BatchRecordReader> Open(std::string_view payload);

  const BatchRecordHeader& header() const { return header_; }

  // The next entry; false at the end or on an error: see status().
  bool Next(Entry* entry);
  const Status& status() const { return status_; }

 private:
  BatchRecordReader(BatchRecordHeader header, std::string_view operations)
      : header_(header), in_(operations), left_(header.operations) {}

  BatchRecordHeader header_;
  ByteReader in_;
  uint32_t left_;
  Status status_;
};

}  // namespace partita
