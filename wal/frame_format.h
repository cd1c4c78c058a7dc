#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "engine/base/aligned_buffer.h"
#include "wal/log_identity.h"

namespace partita {

// Frames follow a segment's header, each at a multiple of 4 KiB, each written once in the life of
// its segment. All integers are little-endian.
//
//   offset  size  field
//        0     8  seal             XXH3-64 over bytes [8, 112 + payload_size), XOR Identity(store,
//                                  segment, offset, kLogFrame, shard << 32 | incarnation)
//        8     4  magic            "PTLF"
//       12     2  flags            below
//       14     2  reserved         zero
//       16     8  store
//       24     4  shard
//       28     4  incarnation
//       32     8  segment
//       40     8  first_position   of the record that the first piece belongs to; of the next
//                                  record to come when there is no piece
//       48     4  piece_count
//       52     4  payload_size     bytes of pieces
//       56     8  previous_seal    of the frame before, or of the segment's header (F30)
//       64     8  durable_position everything up to here was known flushed when this was written:
//                                  the watermark that tells a torn tail from damage (F31, F32)
//       72     8  version_max      highest version of any record in the log so far (F18)
//       80     8  version_ceiling  no version above it was exposed without a record (F18)
//       88    24  reserved         zero, checked on read
//      112     n  payload          pieces, back to back
//            ...  padding          zero, up to the next multiple of 4 KiB; not looked at
//
// A piece is a record, or a part of one:
//        0     4  size             bytes that follow the version
//        4     8  version          of the record; the same in each of its pieces
//       12  size  bytes
//
// The format's version is that of the segment header. The place of a frame is in its seal, not in
// its fields: the reader knows where it reads.
//
// Flags:
//   kFrameContinues    the first piece goes on with the record that the frame before ends in
//   kFrameContinued    the last piece is not the end of its record, which exists only from the
//                      frame that ends it on
//   kFrameSeal         the idle seal: no pieces, only the watermark
//   kFrameClosing      with kFrameSeal: a clean close, nothing follows
//   kFrameTakesEffect  from this frame on the segments that await it are in effect
inline constexpr uint32_t kFrameMagic = 0x464c'5450;  // "PTLF"
inline constexpr size_t kFrameHeaderSize = 112;
inline constexpr size_t kPieceHeaderSize = 4 + 8;
inline constexpr size_t kFrameSizeMax = 1u << 20;            // On disk, padding included.
inline constexpr uint64_t kLogRecordSizeMax = 128ull << 20;  // Payload of one record.
inline constexpr uint64_t kLogRecordLoneSize = 4ull << 20;   // Above it a record shares no frame.

inline constexpr uint16_t kFrameContinues = 1;
inline constexpr uint16_t kFrameContinued = 2;
inline constexpr uint16_t kFrameSeal = 4;
inline constexpr uint16_t kFrameClosing = 8;
inline constexpr uint16_t kFrameTakesEffect = 16;
inline constexpr uint16_t kFrameFlagsAll =
    kFrameContinues | kFrameContinued | kFrameSeal | kFrameClosing | kFrameTakesEffect;

inline constexpr uint64_t FrameSize(uint64_t payload_size) {
  return AlignUp(kFrameHeaderSize + payload_size, kPageSize);
}
static_assert(kFrameHeaderSize + kPieceHeaderSize < kPageSize, "each frame has room for some payload");
static_assert(kFrameSizeMax % kPageSize == 0);

struct FrameHeader {
  uint16_t flags = 0;
  Incarnation incarnation;
  SegmentId segment;
  LogPosition first_position;
  uint32_t piece_count = 0;
  uint32_t payload_size = 0;
  uint64_t previous_seal = 0;
  LogPosition durable_position;
  Version version_max;
  Version version_ceiling;

  bool continues() const { return (flags & kFrameContinues) != 0; }
  bool continued() const { return (flags & kFrameContinued) != 0; }
  bool seals() const { return (flags & kFrameSeal) != 0; }
  bool closes() const { return (flags & kFrameClosing) != 0; }
  bool takes_effect() const { return (flags & kFrameTakesEffect) != 0; }
  // The record after the last one that ends in this frame.
  LogPosition next_position() const {
    return LogPosition{first_position.value + piece_count - (continued() ? 1 : 0)};
  }
};

// Writes the header before a payload that stands in place, zeroes the padding, and returns the
// seal. REQUIRES: frame.size() == FrameSize(header.payload_size).
uint64_t SealFrame(const LogIdentity& owner, uint64_t offset, const FrameHeader& header,
                   std::span<uint8_t> frame);

enum class FrameCheck : uint8_t {
  kValid,  // Sealed for this place by this store and shard; segment and incarnation as it says.
  kShort,  // May be valid, but more than bytes.size() is needed: see ParsedFrame::size.
  kBad,
};

struct ParsedFrame {
  FrameHeader header;
  uint64_t seal = 0;
  uint64_t size = 0;         // On disk.
  std::string_view payload;  // A view into the bytes parsed.
};

// Verifies the frame at `offset` of a segment. Nothing in it is used before its seal and bounds
// were checked (F42). REQUIRES: bytes.size() >= kPageSize.
FrameCheck ParseFrame(const LogIdentity& owner, uint64_t offset, std::string_view bytes, ParsedFrame* out);

// True when the page claims, unverified, to begin a frame of this segment: to tell what was torn
// from what an older life left.
bool LooksLikeFrameOf(const LogIdentity& owner, SegmentId segment, Incarnation incarnation,
                      std::string_view page);

struct FramePiece {
  Version version;
  std::string_view bytes;
};

// Walks the pieces of a verified frame.
class PieceReader {
 public:
  explicit PieceReader(std::string_view payload) : rest_(payload) {}
  // False at the end, or when the rest is no piece: then ok() is false.
  bool Next(FramePiece* piece);
  bool ok() const { return ok_; }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

// Writes a piece's header. REQUIRES: room for kPieceHeaderSize.
void EncodePieceHeader(uint32_t size, Version version, uint8_t* to);

}  // namespace partita
