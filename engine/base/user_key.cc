#include "engine/base/user_key.h"

#include "engine/base/assert.h"
#include "engine/base/coding.h"

namespace partita {

void AppendOrderedText(std::string* out, std::string_view utf8) {
  size_t start = out->size();
  out->append(utf8);
  for (size_t i = start; i < out->size(); ++i) {
    uint8_t byte = static_cast<uint8_t>((*out)[i]);
    if (byte == 0xEE) (*out)[i] = static_cast<char>(0xF5);
    if (byte == 0xEF) (*out)[i] = static_cast<char>(0xF6);
  }
}

void AppendUtf8(std::string* out, std::string_view ordered) {
  size_t start = out->size();
  out->append(ordered);
  for (size_t i = start; i < out->size(); ++i) {
    uint8_t byte = static_cast<uint8_t>((*out)[i]);
    if (byte == 0xF5) (*out)[i] = static_cast<char>(0xEE);
    if (byte == 0xF6) (*out)[i] = static_cast<char>(0xEF);
  }
}

std::string OrderedText(std::string_view utf8) {
  std::string out;
  AppendOrderedText(&out, utf8);
  return out;
}

std::string Utf8FromOrdered(std::string_view ordered) {
  std::string out;
  AppendUtf8(&out, ordered);
  return out;
}

void AppendUserKey(std::string* out, TableId table, std::string_view partition_key,
                   std::string_view row_key) {
  PARTITA_DEBUG_ASSERT(partition_key.find('\0') == partition_key.npos);
  PARTITA_DEBUG_ASSERT(row_key.find('\0') == row_key.npos);
  char id[kTableIdSize];
  StoreBe32(id, table.value);
  out->append(id, sizeof id);
  out->append(partition_key);
  out->push_back('\0');
  out->append(row_key);
}

std::string EncodeUserKey(TableId table, std::string_view partition_key, std::string_view row_key) {
  std::string key;
  key.reserve(kTableIdSize + partition_key.size() + 1 + row_key.size());
  AppendUserKey(&key, table, partition_key, row_key);
  return key;
}

Result<UserKeyParts> DecodeUserKey(std::string_view user_key) {
  if (user_key.size() <= kTableIdSize) return Status::Corruption("user key shorter than its table id");
  size_t separator = user_key.find('\0', kTableIdSize);
  if (separator == user_key.npos) return Status::Corruption("user key without a separator");
  UserKeyParts parts;
  parts.table = TableId(LoadBe32(user_key.data()));
  parts.partition_key = user_key.substr(kTableIdSize, separator - kTableIdSize);
  parts.row_key = user_key.substr(separator + 1);
  if (parts.row_key.find('\0') != parts.row_key.npos) {
    return Status::Corruption("user key with a zero byte in its RowKey");
  }
  return parts;
}

std::string_view PartitionPrefix(std::string_view user_key) {
  PARTITA_ASSERT(user_key.size() > kTableIdSize);
  size_t separator = user_key.find('\0', kTableIdSize);
  PARTITA_ASSERT(separator != user_key.npos);
  return user_key.substr(0, separator + 1);
}

std::string TableLowerBound(TableId table) {
  std::string key(kTableIdSize, '\0');
  StoreBe32(key.data(), table.value);
  return key;
}

std::string TableUpperBound(TableId table) { return PrefixSuccessor(TableLowerBound(table)); }

std::string PrefixSuccessor(std::string_view prefix) {
  std::string bound(prefix);
  while (!bound.empty() && static_cast<uint8_t>(bound.back()) == 0xFF) bound.pop_back();
  if (!bound.empty()) bound.back() = static_cast<char>(static_cast<uint8_t>(bound.back()) + 1);
  return bound;
}

}  // namespace partita
