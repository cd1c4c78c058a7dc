#include "engine/batch_record.h"

#include <cstring>

#include "engine/base/stored_value.h"
#include "engine/base/user_key.h"

namespace partita {

namespace {
uint8_t* PutVarint(uint8_t* to, uint64_t value) {
  while (value >= 0x80) {
    *to++ = static_cast<uint8_t>(value | 0x80);
    value >>= 7;
  }
  *to++ = static_cast<uint8_t>(value);
  return to;
}
}  // namespace

BatchRecordWriter::BatchRecordWriter(uint8_t* to, TableId table, RangeEpoch epoch)
    : begin_(to), at_(to + kBatchRecordHeaderSize) {
  std::memset(to, 0, kBatchRecordHeaderSize);
  to[0] = kBatchRecordFormat;
  to[1] = kBatchRecordKind;
  StoreLe32(to + 4, table.value);
  StoreLe64(to + 16, epoch.value);
}

void BatchRecordWriter::Add(EntryKind kind, std::string_view user_key, std::string_view content) {
  *at_++ = static_cast<uint8_t>(kind);
  at_ = PutVarint(at_, user_key.size());
  std::memcpy(at_, user_key.data(), user_key.size());
  at_ += user_key.size();
  at_ = PutVarint(at_, kStoredValueHeaderSize + content.size());
  WriteStoredValue(user_key, kind, content, at_);
  at_ += kStoredValueHeaderSize + content.size();
  ++operations_;
}

std::string_view BatchRecordWriter::Finish() {
  StoreLe32(begin_ + 24, operations_);
  return {reinterpret_cast<const char*>(begin_), static_cast<size_t>(at_ - begin_)};
}

Result<BatchRecordReader> BatchRecordReader::Open(std::string_view payload) {
  if (payload.size() < kBatchRecordHeaderSize) {
    return Status::Corruption("batch record of " + std::to_string(payload.size()) +
                              " bytes is shorter than its header");
  }
  uint8_t format = static_cast<uint8_t>(payload[0]);
  if (format > kBatchRecordFormat) {
    return Status::Unsupported("batch record format " + std::to_string(format) +
                               " is newer than this version reads");
  }
  if (format != kBatchRecordFormat || payload[1] != kBatchRecordKind) {
    return Status::Corruption("batch record with format " + std::to_string(format) + " and kind " +
                              std::to_string(static_cast<int>(payload[1])));
  }
  BatchRecordHeader header;
  header.table = TableId(LoadLe32(payload.data() + 4));
  header.version = Version(LoadLe64(payload.data() + kBatchRecordVersionOffset));
  header.epoch = RangeEpoch(LoadLe64(payload.data() + 16));
  header.operations = LoadLe32(payload.data() + 24);
  return BatchRecordReader(header, payload.substr(kBatchRecordHeaderSize));
}

bool BatchRecordReader::Next(Entry* entry) {
  if (left_ == 0) {
    if (status_.ok() && !in_.AtCleanEnd()) status_ = Status::Corruption("batch record with bytes left over");
    return false;
  }
  uint8_t kind = in_.ReadU8();
  entry->user_key = in_.ReadBytes();
  entry->value = in_.ReadBytes();
  entry->version = header_.version;
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
  --left_;
  return true;
}

}  // namespace partita
