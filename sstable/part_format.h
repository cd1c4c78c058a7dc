#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/checksum.h"
#include "engine/base/ids.h"
#include "engine/base/result.h"

struct ZSTD_CCtx_s;

namespace partita {

// A table file is a sequence of parts, closed by a footer (footer_format.h). Every byte that is
// not padding lies in a part, so every byte that can change an answer is under a seal (F40):
//
//   data block*  index block*  key filter  partition filter  properties  top index  (padding)  footer
//
// Each part is on disk as follows. All integers are little-endian.
//
//   offset  size  field
//        0     8  seal          XXH3-64 over bytes [8, stored_size), XOR Identity(store, object, offset,
//        kind) 8     4  stored_size   the whole part, this header included
//       12     4  content_size  bytes after decompression
//       16     4  dictionary    0: none; others are refused as kUnsupported
//       20     1  format        kPartFormat
//       21     1  kind          SealKind
//       22     1  codec         0 stored, 1 zstd
//       23     1  reserved      zero, checked on read
//       24     n  payload       the content, as the codec says
//
// Why the seal covers the bytes as stored: they are checked before anything is decompressed (F42),
// and a block that compaction passes through keeps its content hash, so its new seal comes from the
// old one (`seal ^ old.Mix() ^ new.Mix()`) and the check survives the copy. For that the header
// holds nothing that depends on the place.
// Why the sizes are repeated here although every reference to a part carries stored_size: the
// writer's and the reader's view of the same fact are compared (STYLE 4).
//
// Padding between parts is zero and means nothing; it is not verified.
//
// Reader: bad seal -> read once more past all caches (F52), then kCorruption: a data block harms
// its keys, a filter means "maybe" (F45), everything else harms the file (F48). Format or codec
// above ours, under a good seal -> kUnsupported (F66).
inline constexpr size_t kPartHeaderSize = 8 + 4 + 4 + 4 + 1 + 1 + 1 + 1;
static_assert(kPartHeaderSize == 24);
inline constexpr uint8_t kPartFormat = 1;
// Larger parts are refused before memory is taken for them (F77). Values reach 16 MiB.
inline constexpr uint32_t kPartContentMax = 256u << 20;

enum class Codec : uint8_t { kStored = 0, kZstd = 1 };

// How a table's parts are compressed. A part that would gain less than 12 % is stored as it is.
struct Compression {
  Codec codec = Codec::kStored;
  int level = 0;  // For zstd: -7..19.

  static Compression None() { return {}; }
  static Compression Zstd(int level) { return {Codec::kZstd, level}; }
  friend bool operator==(const Compression&, const Compression&) = default;
};

// Where a part lies.
struct PartHandle {
  uint64_t offset = 0;
  uint32_t stored_size = 0;
  uint32_t content_size = 0;

  uint64_t end() const { return offset + stored_size; }
  friend bool operator==(const PartHandle&, const PartHandle&) = default;
};

// A part's identity in its file (F41).
inline Identity PartIdentity(StoreId store, ObjectId object, uint64_t offset, SealKind kind) {
  return Identity{.store = store, .file = object.value, .offset = offset, .kind = kind};
}

// Compresses contents and builds parts. Keeps a compressor's memory; one user at a time. How well a content
// is compressed follows from those in front of it.
class PartEncoder {
 public:
  explicit PartEncoder(Compression compression);
  ~PartEncoder();
  PartEncoder(const PartEncoder&) = delete;
  PartEncoder& operator=(const PartEncoder&) = delete;

  // The part for `content`, all but its seal (zero), valid until the next call. Its place is not
  // known before its size is. kResourceExhausted when the compressor gets no memory.
  Result<std::string_view> Encode(SealKind kind, std::string_view content);

 private:
  size_t Compress(std::string_view content, char* to, size_t room);

  Compression compression_;
  ZSTD_CCtx_s* context_ = nullptr;
  bool may_step_faster_ = false;
  bool steps_faster_ = false;  // As the context is set.
  uint32_t stepped_left_ = 0;  // So many more contents are looked through faster.
  std::string part_;
};

// The hash that a part's seal is made of. REQUIRES: part.size() >= kPartHeaderSize.
inline uint64_t PartContentHash(std::string_view part) { return Hash64(part.substr(8)); }

// Checks `part` (the bytes of `handle`) without parsing anything before its seal is proved (F42).
// On ok the header is trustworthy. kCorruption says what was expected; kUnsupported for a newer
// format. The caller adds file and offset.
Status CheckPart(std::string_view part, const PartHandle& handle, const Identity& identity);

// Decodes a checked part into `content`, which has handle.content_size bytes. kCorruption when the
// payload does not decode to exactly that.
Status DecodePart(std::string_view part, uint8_t* content);

}  // namespace partita
