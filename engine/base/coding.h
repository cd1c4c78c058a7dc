#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace partita {

// Fixed-width integers at any alignment; formats are little-endian, keys big-endian.
template <typename T>
inline T LoadAs(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "formats are read by plain loads");

inline uint16_t LoadLe16(const void* from) { return LoadAs<uint16_t>(from); }
inline uint32_t LoadLe32(const void* from) { return LoadAs<uint32_t>(from); }
inline uint64_t LoadLe64(const void* from) { return LoadAs<uint64_t>(from); }
inline void StoreLe16(void* to, uint16_t value) { std::memcpy(to, &value, sizeof value); }
inline void StoreLe32(void* to, uint32_t value) { std::memcpy(to, &value, sizeof value); }
inline void StoreLe64(void* to, uint64_t value) { std::memcpy(to, &value, sizeof value); }

inline uint32_t LoadBe32(const void* from) { return __builtin_bswap32(LoadAs<uint32_t>(from)); }
inline uint64_t LoadBe64(const void* from) { return __builtin_bswap64(LoadAs<uint64_t>(from)); }
inline void StoreBe32(void* to, uint32_t value) { StoreLe32(to, __builtin_bswap32(value)); }
inline void StoreBe64(void* to, uint64_t value) { StoreLe64(to, __builtin_bswap64(value)); }

inline void AppendLe16(std::string* out, uint16_t v) { out->append(reinterpret_cast<const char*>(&v), 2); }
inline void AppendLe32(std::string* out, uint32_t v) { out->append(reinterpret_cast<const char*>(&v), 4); }
inline void AppendLe64(std::string* out, uint64_t v) { out->append(reinterpret_cast<const char*>(&v), 8); }

// LEB128; at most 10 bytes.
void AppendVarint(std::string* out, uint64_t value);
// Length as varint, then the bytes.
void AppendBytes(std::string* out, std::string_view bytes);

// Reads fields off the front of untrusted bytes; the first failed read makes ok() false and every
// later one return zero or empty. Lengths are checked before anything is touched (F42).
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  bool ok() const { return ok_; }
  bool empty() const { return bytes_.empty(); }
  size_t remaining() const { return bytes_.size(); }
  // True when everything was read and nothing failed.
  bool AtCleanEnd() const { return ok_ && bytes_.empty(); }

  uint8_t ReadU8();
  uint16_t ReadLe16();
  uint32_t ReadLe32();
  uint64_t ReadLe64();
  uint64_t ReadVarint();
  std::string_view ReadRaw(size_t size);
  std::string_view ReadBytes();  // As AppendBytes wrote them.

 private:
  std::string_view bytes_;
  bool ok_ = true;
};

}  // namespace partita
