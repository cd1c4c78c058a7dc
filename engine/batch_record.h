#pragma once
#include <cstdint>
#include <string_view>

#include "engine/base/coding.h"
#include "engine/base/entry.h"
#include "engine/base/ids.h"
#include "engine/base/log_store.h"
#include "engine/base/result.h"

namespace partita {

// The payload of a log record: one atomic batch, as decided. It is built once, in the memory of
// the memtable it goes to, and the memtable's entries point into it; the log writes the same
// bytes. (Seals and identity are the log's.)
//
//   offset  size  field
//        0     1  format   1; of an import 2
//        1     1  kind     1 = batch, 2 = import
//        2     2  zero
//        4     4  table id
//        8     8  version  of every entry; stored when the batch is decided
//       16     8  range epoch it was decided under
//       24     4  operation count
//       28     n  operations: u8 entry kind · varint key size · user key · varint value size ·
//                 stored value (stored_value.h)
//
// An import holds entries that a range brings along which moves to this shard (store_ranges.cc). It counts
// if, and as far as, the catalog has ranges here that came by its attempt. It has no table id, the attempt in
// place of the epoch, and in each operation, behind the entry kind, a u64 with the entry's own version, below
// the record's.
inline constexpr uint8_t kBatchRecordFormatMax = 2;
inline constexpr size_t kBatchRecordHeaderSize = 28;
inline constexpr size_t kBatchRecordVersionOffset = 8;
// Of one operation beside key and content: kind, two varints, the stored value's header.
inline constexpr size_t kBatchOperationOverheadMax = 1 + 5 + 5 + 4;
// Of an imported one, beside key and stored value.
inline constexpr size_t kImportOperationOverheadMax = 1 + 8 + 5 + 5;
// Of a whole one: kind, two varints, a table id with one byte more, the stored value's header. An imported
// one has its version, too.
inline constexpr size_t kBatchOperationSizeMin = 1 + 1 + 5 + 1 + 4;
inline constexpr size_t kImportOperationSizeMin = kBatchOperationSizeMin + 8;

struct BatchRecordHeader {
  TableId table;
  Version version;
  RangeEpoch epoch;
  uint32_t operations = 0;
  uint64_t attempt = 0;  // Of an import; 0: a batch.

  // Whether it counts in a range that it lies in, of the shard whose log it is in.
  bool CountsIn(uint64_t move_attempt) const { return attempt == 0 || attempt == move_attempt; }
};

// Writes header and operations front to back into memory of at least
// kBatchRecordHeaderSize + sum(kBatchOperationOverheadMax + key + content) bytes.
class BatchRecordWriter {
 public:
  BatchRecordWriter(uint8_t* to, TableId table, RangeEpoch epoch);
  // An import. Its entries take kImportOperationOverheadMax + key + stored value each.
  BatchRecordWriter(uint8_t* to, uint64_t attempt);
  void Add(EntryKind kind, std::string_view user_key, std::string_view content);
  // To an import, with its version and its value as stored.
  void AddImported(const Entry& entry);
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

// The log keeps a record's version beside the payload, too: the clock goes by the one, readers by the other.
// kCorruption when they differ, or are none that a clock gives: memory changed them before they were sealed.
// Asked before a record goes to the log, and of what comes from there.
Status CheckLoggedVersion(const LogRecord& record);

// Reads a payload; every length is checked. Entries' views point into it.
class BatchRecordReader {
 public:
  // kCorruption naming the field, kUnsupported for a newer format.
  static Result<BatchRecordReader> Open(std::string_view payload);
  // Of what the log holds. kCorruption also as CheckLoggedVersion says.
  static Result<BatchRecordReader> Open(const LogRecord& record);

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
