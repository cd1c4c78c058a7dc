#include "engine/batch_record.h"

#include <cstring>

#include "engine/base/given_version.h"
#include "engine/base/stored_value.h"
#include "engine/base/user_key.h"

namespace partita {

namespace {

constexpr uint8_t kBatchFormat = 1, kBatchKind = 1;
constexpr uint8_t kImportFormat = 2, kImportKind = 2;
static_assert(kImportFormat == kBatchRecordFormatMax);

uint8_t* PutVarint(uint8_t* to, uint64_t value) {
  while (value >= 0x80) {
    *to++ = static_cast<uint8_t>(value | 0x80);
    value >>= 7;
  }
  *to++ = static_cast<uint8_t>(value);
  return to;
}

uint8_t* PutBytes(uint8_t* to, std::string_view bytes) {
  to = PutVarint(to, bytes.size());
  std::memcpy(to, bytes.data(), bytes.size());
  return to + bytes.size();
}

}  // namespace

BatchRecordWriter::BatchRecordWriter(uint8_t* to, TableId table, RangeEpoch epoch)
    : begin_(to), at_(to + kBatchRecordHeaderSize) {
  std::memset(to, 0, kBatchRecordHeaderSize);
  to[0] = kBatchFormat;
  to[1] = kBatchKind;
  StoreLe32(to + 4, table.value);
  StoreLe64(to + 16, epoch.value);
}

BatchRecordWriter::BatchRecordWriter(uint8_t* to, uint64_t attempt)
    : begin_(to), at_(to + kBatchRecordHeaderSize) {
  std::memset(to, 0, kBatchRecordHeaderSize);
  to[0] = kImportFormat;
  to[1] = kImportKind;
  StoreLe64(to + 16, attempt);
}

void BatchRecordWriter::AddImported(const Entry& entry) {
  *at_++ = static_cast<uint8_t>(entry.kind);
  StoreLe64(at_, entry.version.value);
  at_ = PutBytes(at_ + 8, entry.user_key);
  at_ = PutBytes(at_, entry.value);
  ++operations_;
}

void BatchRecordWriter::Add(EntryKind kind, std::string_view user_key, std::string_view content) {
  *at_++ = static_cast<uint8_t>(kind);
  at_ = PutBytes(at_, user_key);
  at_ = PutVarint(at_, kStoredValueHeaderSize + content.size());
  WriteStoredValue(user_key, kind, content, at_);
  at_ += kStoredValueHeaderSize + content.size();
  ++operations_;
}

std::string_view BatchRecordWriter::Finish() {
  StoreLe32(begin_ + 24, operations_);
  return {reinterpret_cast<const char*>(begin_), static_cast<size_t>(at_ - begin_)};
}

Status CheckLoggedVersion(const LogRecord& record) {
  if (record.version > kVersionGivenMax) {
    return Status::Corruption("log record " + std::to_string(record.position.value) + " is of version " +
                              std::to_string(record.version.value) + ", which no clock gives");
  }
  if (record.payload.size() < kBatchRecordHeaderSize) return Status();  // Whoever opens it says so.
  const uint64_t of_batch = LoadLe64(record.payload.data() + kBatchRecordVersionOffset);
  if (of_batch == record.version.value) return Status();
  return Status::Corruption("log record " + std::to_string(record.position.value) + " is of version " +
                            std::to_string(record.version.value) + ", but its batch of version " +
                            std::to_string(of_batch));
}

Result<BatchRecordReader> BatchRecordReader::Open(const LogRecord& record) {
  PARTITA_TRY(CheckLoggedVersion(record));
  return Open(record.payload);
}

Result<BatchRecordReader> BatchRecordReader::Open(std::string_view payload) {
  if (payload.size() < kBatchRecordHeaderSize) {
    return Status::Corruption("batch record of " + std::to_string(payload.size()) +
                              " bytes is shorter than its header");
  }
  uint8_t format = static_cast<uint8_t>(payload[0]), kind = static_cast<uint8_t>(payload[1]);
  if (format > kBatchRecordFormatMax) {
    return Status::Unsupported("batch record format " + std::to_string(format) +
                               " is newer than this version reads");
  }
  const bool is_import = format == kImportFormat && kind == kImportKind;
  if (!is_import && (format != kBatchFormat || kind != kBatchKind)) {
    return Status::Corruption("batch record with format " + std::to_string(format) + " and kind " +
                              std::to_string(kind));
  }
  BatchRecordHeader header;
  header.table = TableId(LoadLe32(payload.data() + 4));
  header.version = Version(LoadLe64(payload.data() + kBatchRecordVersionOffset));
  const uint64_t under = LoadLe64(payload.data() + 16);
  if (is_import && under == 0) return Status::Corruption("imported record that names no attempt");
  if (is_import) header.attempt = under;
  if (!is_import) header.epoch = RangeEpoch(under);
  header.operations = LoadLe32(payload.data() + 24);
  // Memory is taken for so many.
  const size_t room = payload.size() - kBatchRecordHeaderSize;
  if (header.operations > room / (is_import ? kImportOperationSizeMin : kBatchOperationSizeMin)) {
    return Status::Corruption("batch record of " + std::to_string(header.operations) + " operations in " +
                              std::to_string(room) + " bytes");
  }
  return BatchRecordReader(header, payload.substr(kBatchRecordHeaderSize));
}

bool BatchRecordReader::Next(Entry* entry) {
  if (left_ == 0) {
    if (status_.ok() && !in_.AtCleanEnd()) status_ = Status::Corruption("batch record with bytes left over");
    return false;
  }
  uint8_t kind = in_.ReadU8();
  entry->version = header_.attempt == 0 ? header_.version : Version(in_.ReadLe64());
  entry->user_key = in_.ReadBytes();
  entry->value = in_.ReadBytes();
  entry->kind = static_cast<EntryKind>(kind);
  if (!in_.ok()) {
    status_ = Status::Corruption("batch record is cut short");
    return false;
  }
  if (kind != static_cast<uint8_t>(EntryKind::kPut) && kind != static_cast<uint8_t>(EntryKind::kTombstone)) {
    status_ = Status::Corruption("batch record with entry kind " + std::to_string(kind));
    return false;
  }
  if (entry->user_key.size() <= kTableIdSize || entry->value.size() < kStoredValueHeaderSize) {
    status_ = Status::Corruption("batch record with an entry too small");
    return false;
  }
  if (entry->user_key.size() > kUserKeySizeMax) {
    status_ =
        Status::Corruption("batch record with a key of " + std::to_string(entry->user_key.size()) + " bytes");
    return false;
  }
  if (entry->user_key.find('\0', kTableIdSize) == entry->user_key.npos) {
    status_ = Status::Corruption("batch record with a key without a PartitionKey");
    return false;
  }
  if (entry->version > header_.version) {
    status_ = Status::Corruption("imported record with an entry of a version above its own");
    return false;
  }
  --left_;
  return true;
}

}  // namespace partita
