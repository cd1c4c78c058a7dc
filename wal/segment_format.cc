#include "wal/segment_format.h"

#include <cstring>
#include <string>

#include "engine/base/coding.h"
#include "engine/base/site.h"

namespace partita {
namespace {

enum Offset : size_t {
  kSeal = 0,
  kMagic = 8,
  kFormat = 16,
  kFlags = 18,
  kShard = 20,
  kStore = 24,
  kSegment = 32,
  kIncarnation = 40,
  kReservedWord = 44,
  kSegmentSize = 48,
  kFirstPosition = 56,
  kVersionCeiling = 64,
  kPreviousSegment = 72,
  kPreviousSeal = 80,
  kReserved = 88,
};

}  // namespace

uint64_t EncodeSegmentHeader(const LogIdentity& owner, const SegmentHeader& header, std::span<uint8_t> page) {
  PARTITA_ASSERT(page.size() == kSegmentHeaderSize);
  PARTITA_ASSERT((header.flags & ~kSegmentFlagsAll) == 0);
  uint8_t* to = page.data();
  std::memset(to, 0, page.size());
  StoreLe64(to + kMagic, kSegmentMagic);
  StoreLe16(to + kFormat, kLogFormat);
  StoreLe16(to + kFlags, header.flags);
  StoreLe32(to + kShard, owner.shard.value);
  StoreLe64(to + kStore, owner.store.value);
  StoreLe64(to + kSegment, header.segment.value);
  StoreLe32(to + kIncarnation, header.incarnation.value);
  StoreLe64(to + kSegmentSize, header.segment_size);
  StoreLe64(to + kFirstPosition, header.first_position.value);
  StoreLe64(to + kVersionCeiling, header.version_ceiling.value);
  StoreLe64(to + kPreviousSegment, header.previous_segment.value);
  StoreLe64(to + kPreviousSeal, header.previous_seal);
  const std::string_view content(reinterpret_cast<const char*>(to) + kMagic, page.size() - kMagic);
  const uint64_t seal =
      Seal(content, owner.At(SealKind::kLogSegmentHeader, header.segment, header.incarnation, 0));
  StoreLe64(to + kSeal, seal);
  return seal;
}

Result<SealedHeader> DecodeSegmentHeader(std::string_view page) {
  PARTITA_ASSERT(page.size() == kSegmentHeaderSize);
  const char* from = page.data();
  if (LoadLe64(from + kMagic) != kSegmentMagic) return Status::Corruption("no log segment header");
  const uint16_t format = LoadLe16(from + kFormat);
  if (format > kLogFormat) {
    return Status::Unsupported("log format " + std::to_string(format) + " is newer than " +
                               std::to_string(kLogFormat) + ", the newest known here (F66)");
  }
  SealedHeader out;
  out.seal = LoadLe64(from + kSeal);
  out.owner = {StoreId{LoadLe64(from + kStore)}, ShardId{LoadLe32(from + kShard)}};
  out.header.segment = SegmentId{LoadLe64(from + kSegment)};
  out.header.incarnation = Incarnation{LoadLe32(from + kIncarnation)};
  const Identity identity =
      out.owner.At(SealKind::kLogSegmentHeader, out.header.segment, out.header.incarnation, 0);
  if (SiteIsOn("wal.segment.check") && !SealMatches(page.substr(kMagic), identity, out.seal)) {
    return Status::Corruption("the segment header fails its seal");
  }
  out.header.flags = LoadLe16(from + kFlags);
  out.header.segment_size = LoadLe64(from + kSegmentSize);
  out.header.first_position = LogPosition{LoadLe64(from + kFirstPosition)};
  out.header.version_ceiling = Version{LoadLe64(from + kVersionCeiling)};
  out.header.previous_segment = SegmentId{LoadLe64(from + kPreviousSegment)};
  out.header.previous_seal = LoadLe64(from + kPreviousSeal);
  const bool reserved_zero = LoadLe32(from + kReservedWord) == 0 &&
                             page.find_first_not_of('\0', kReserved) == std::string_view::npos;
  const bool sane = format == kLogFormat && (out.header.flags & ~kSegmentFlagsAll) == 0 && reserved_zero &&
                    out.header.segment_size % kPageSize == 0 &&
                    (!out.header.in_use() ||
                     (out.header.segment_size > kSegmentHeaderSize && out.header.first_position.value > 0 &&
                      out.header.previous_segment < out.header.segment));
  if (!sane) return Status::Corruption("the segment header is sealed but has a field out of bounds");
  return out;
}

}  // namespace partita
