#include "engine/base/coding.h"

namespace partita {

void AppendVarint(std::string* out, uint64_t value) {
  while (value >= 0x80) {
    out->push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out->push_back(static_cast<char>(value));
}

void AppendBytes(std::string* out, std::string_view bytes) {
  AppendVarint(out, bytes.size());
  out->append(bytes);
}

std::string_view ByteReader::ReadRaw(size_t size) {
  if (!ok_ || size > bytes_.size()) {
    ok_ = false;
    return {};
  }
  std::string_view result = bytes_.substr(0, size);
  bytes_.remove_prefix(size);
  return result;
}

uint8_t ByteReader::ReadU8() {
  std::string_view raw = ReadRaw(1);
  return ok_ ? static_cast<uint8_t>(raw[0]) : 0;
}
uint16_t ByteReader::ReadLe16() {
  std::string_view raw = ReadRaw(2);
  return ok_ ? LoadLe16(raw.data()) : 0;
}
uint32_t ByteReader::ReadLe32() {
  std::string_view raw = ReadRaw(4);
  return ok_ ? LoadLe32(raw.data()) : 0;
}
uint64_t ByteReader::ReadLe64() {
  std::string_view raw = ReadRaw(8);
  return ok_ ? LoadLe64(raw.data()) : 0;
}

uint64_t ByteReader::ReadVarint() {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    uint8_t byte = ReadU8();
    if (!ok_) return 0;
    if (shift == 63 && byte > 1) break;
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return value;
  }
  ok_ = false;
  return 0;
}

std::string_view ByteReader::ReadBytes() {
  uint64_t size = ReadVarint();
  if (!ok_ || size > bytes_.size()) {
    ok_ = false;
    return {};
  }
  return ReadRaw(static_cast<size_t>(size));
}

}  // namespace partita
