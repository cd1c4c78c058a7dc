#include "wal/frame_format.h"

#include <cstring>

#include "engine/base/assert.h"
#include "engine/base/coding.h"
#include "engine/base/site.h"

namespace partita {
namespace {

enum Offset : size_t {
  kSeal = 0,
  kMagic = 8,
  kFlags = 12,
  kReservedHalf = 14,
  kStore = 16,
  kShard = 24,
  kIncarnation = 28,
  kSegment = 32,
  kFirstPosition = 40,
  kPieceCount = 48,
  kPayloadSize = 52,
  kPreviousSeal = 56,
  kDurablePosition = 64,
  kVersionMax = 72,
  kVersionCeiling = 80,
  kReserved = 88,
};

bool Sane(const FrameHeader& header) {
  const bool has_pieces = header.piece_count > 0;
  if ((header.flags & ~kFrameFlagsAll) != 0) return false;
  if (!has_pieces && (header.payload_size > 0 || header.continued() || header.continues())) return false;
  if (header.seals() && has_pieces) return false;
  if ((header.flags & kFrameClosing) != 0 && !header.seals()) return false;
  if (header.payload_size < uint64_t{header.piece_count} * kPieceHeaderSize) return false;
  return header.first_position.value > 0 && header.durable_position < header.first_position;
}

}  // namespace

uint64_t SealFrame(const LogIdentity& owner, uint64_t offset, const FrameHeader& header,
                   std::span<uint8_t> frame) {
  PARTITA_ASSERT(frame.size() == FrameSize(header.payload_size));
  PARTITA_ASSERT(frame.size() <= kFrameSizeMax);
  PARTITA_ASSERT(offset % kPageSize == 0 && offset >= kPageSize);
  PARTITA_ASSERT(Sane(header));
  uint8_t* to = frame.data();
  const size_t used = kFrameHeaderSize + header.payload_size;
  std::memset(to, 0, kFrameHeaderSize);
  std::memset(to + used, 0, frame.size() - used);
  StoreLe32(to + kMagic, kFrameMagic);
  StoreLe16(to + kFlags, header.flags);
  StoreLe64(to + kStore, owner.store.value);
  StoreLe32(to + kShard, owner.shard.value);
  StoreLe32(to + kIncarnation, header.incarnation.value);
  StoreLe64(to + kSegment, header.segment.value);
  StoreLe64(to + kFirstPosition, header.first_position.value);
  StoreLe32(to + kPieceCount, header.piece_count);
  StoreLe32(to + kPayloadSize, header.payload_size);
  StoreLe64(to + kPreviousSeal, header.previous_seal);
  StoreLe64(to + kDurablePosition, header.durable_position.value);
  StoreLe64(to + Offset::kVersionMax, header.version_max.value);
  StoreLe64(to + kVersionCeiling, header.version_ceiling.value);
  const std::string_view content(reinterpret_cast<const char*>(to) + kMagic, used - kMagic);
  const uint64_t seal =
      Seal(content, owner.At(SealKind::kLogFrame, header.segment, header.incarnation, offset));
  StoreLe64(to + kSeal, seal);
  return seal;
}

FrameCheck ParseFrame(const LogIdentity& owner, uint64_t offset, std::string_view bytes, ParsedFrame* out) {
  PARTITA_ASSERT(bytes.size() >= kPageSize);
  const char* from = bytes.data();
  if (LoadLe32(from + kMagic) != kFrameMagic) return FrameCheck::kBad;
  if (LoadLe64(from + kStore) != owner.store.value) return FrameCheck::kBad;
  if (LoadLe32(from + kShard) != owner.shard.value) return FrameCheck::kBad;
  FrameHeader& header = out->header;
  header.payload_size = LoadLe32(from + kPayloadSize);
  if (header.payload_size > kFrameSizeMax - kFrameHeaderSize) return FrameCheck::kBad;
  out->size = FrameSize(header.payload_size);
  if (out->size > bytes.size()) return FrameCheck::kShort;
  header.incarnation = Incarnation{LoadLe32(from + kIncarnation)};
  header.segment = SegmentId{LoadLe64(from + kSegment)};
  out->seal = LoadLe64(from + kSeal);
  const std::string_view content = bytes.substr(kMagic, kFrameHeaderSize - kMagic + header.payload_size);
  const Identity identity = owner.At(SealKind::kLogFrame, header.segment, header.incarnation, offset);
  if (SiteIsOn("wal.frame.check") && !SealMatches(content, identity, out->seal)) return FrameCheck::kBad;
  header.flags = LoadLe16(from + kFlags);
  header.first_position = LogPosition{LoadLe64(from + kFirstPosition)};
  header.piece_count = LoadLe32(from + kPieceCount);
  header.previous_seal = LoadLe64(from + kPreviousSeal);
  header.durable_position = LogPosition{LoadLe64(from + kDurablePosition)};
  header.version_max = Version{LoadLe64(from + Offset::kVersionMax)};
  header.version_ceiling = Version{LoadLe64(from + kVersionCeiling)};
  out->payload = bytes.substr(kFrameHeaderSize, header.payload_size);
  const bool reserved_zero = LoadLe16(from + kReservedHalf) == 0 && LoadLe64(from + kReserved) == 0 &&
                             LoadLe64(from + kReserved + 8) == 0 && LoadLe64(from + kReserved + 16) == 0;
  return reserved_zero && Sane(header) ? FrameCheck::kValid : FrameCheck::kBad;
}

bool LooksLikeFrameOf(const LogIdentity& owner, SegmentId segment, Incarnation incarnation,
                      std::string_view page) {
  const char* from = page.data();
  return page.size() >= kFrameHeaderSize && LoadLe32(from + kMagic) == kFrameMagic &&
         LoadLe64(from + kStore) == owner.store.value && LoadLe32(from + kShard) == owner.shard.value &&
         LoadLe64(from + kSegment) == segment.value && LoadLe32(from + kIncarnation) == incarnation.value;
}

bool PieceReader::Next(FramePiece* piece) {
  if (rest_.empty()) return false;
  if (rest_.size() < kPieceHeaderSize) {
    ok_ = false;
    return false;
  }
  const uint32_t size = LoadLe32(rest_.data());
  piece->version = Version{LoadLe64(rest_.data() + 4)};
  rest_.remove_prefix(kPieceHeaderSize);
  if (size > rest_.size()) {
    ok_ = false;
    return false;
  }
  piece->bytes = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return true;
}

void EncodePieceHeader(uint32_t size, Version version, uint8_t* to) {
  StoreLe32(to, size);
  StoreLe64(to + 4, version.value);
}

}  // namespace partita
