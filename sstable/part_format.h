#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/assert.h"
#include "engine/base/checksum.h"
#include "engine/base/ids.h"
#include "engine/base/result.h"

namespace partita {

// A table file is a sequence of parts, closed by a footer (footer_format.h). Every byte that is
// not padding lies in a part, so every byte that can change an answer is under a seal (F40):
//
//   data block*  index block*  key filter  partition filter  properties  top index  (padding)  footer
//
// Each part is on disk as follows. All integers are little-endian.
//
//   offset  size  field
//        0     8  seal          XXH3-64 over bytes [8, stored_size), XOR Identity(store, object,
//                               offset, kind)
//        8     4  stored_size   the whole part, this header included
//       12     4  content_size  bytes after decompression
//       16     4  dictionary    0: none; others are refused as kUnsupported
//       20     1  format        kPartFormat
//       21     1  kind          SealKind
//       22     1  codec         0 stored, 1 zstd (of former versions), 2 LZ4
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

// How a part is compressed. zstd is only read: tables have it that were written before 2026-11-27.
enum class Codec : uint8_t { kStored = 0, kZstd = 1, kLz4 = 2 };

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

// Compresses contents and builds parts; one user at a time.
class PartEncoder {
 public:
  // REQUIRES: not kZstd.
  explicit PartEncoder(Codec codec) : codec_(codec) { PARTITA_ASSERT(codec != Codec::kZstd); }

  // The part for `content`, all but its seal (zero), valid until the next call; stored as it is when it would
  // gain less than 12 %. Its place is not known before its size is. REQUIRES: 1..kPartContentMax bytes.
  std::string_view Encode(SealKind kind, std::string_view content);

 private:
  const Codec codec_;
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

// Decodes the first `size` bytes of a checked part's content alone. False where that is no less work than all
// of it (zstd), or the payload is bad: DecodePart says why. REQUIRES: size <= handle.content_size.
bool DecodeFront(std::string_view part, size_t size, uint8_t* content);

}  // namespace partita
