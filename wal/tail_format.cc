#include "wal/tail_format.h"

#include <algorithm>
#include <cstring>

#include "engine/base/assert.h"
#include "engine/base/coding.h"
#include "engine/base/site.h"

namespace partita {
namespace {

enum Offset : size_t {
  kSeal = 0,
  kMagic = 8,
  kPayloadSize = 12,
  kPosition = 16,
  kVersion = 24,
  kIncarnation = 32,
  kShard = 36,
};

}  // namespace

void EncodeTailRecord(const LogIdentity& owner, Incarnation incarnation, uint64_t offset,
                      const TailRecord& record, std::span<uint8_t> to) {
  PARTITA_ASSERT(to.size() >= TailRecordSize(record.payload.size()));
  uint8_t* at = to.data();
  StoreLe32(at + kMagic, kTailMagic);
  StoreLe32(at + kPayloadSize, static_cast<uint32_t>(record.payload.size()));
  StoreLe64(at + kPosition, record.position.value);
  StoreLe64(at + kVersion, record.version.value);
  StoreLe32(at + kIncarnation, incarnation.value);
  StoreLe32(at + kShard, owner.shard.value);
  std::memcpy(at + kTailRecordHeaderSize, record.payload.data(), record.payload.size());
  const std::string_view content(reinterpret_cast<const char*>(at) + kMagic,
                                 kTailRecordHeaderSize - kMagic + record.payload.size());
  StoreLe64(at + kSeal, Seal(content, owner.At(SealKind::kLogTail, SegmentId{0}, incarnation, offset)));
}

bool DecodeTailRecord(const LogIdentity& owner, Incarnation incarnation, uint64_t offset,
                      std::string_view bytes, TailRecord* out) {
  if (bytes.size() < kTailRecordHeaderSize) return false;
  const char* from = bytes.data();
  if (LoadLe32(from + kMagic) != kTailMagic) return false;
  if (LoadLe32(from + kIncarnation) != incarnation.value) return false;
  if (LoadLe32(from + kShard) != owner.shard.value) return false;
  const uint32_t payload_size = LoadLe32(from + kPayloadSize);
  if (payload_size > bytes.size() - kTailRecordHeaderSize) return false;
  const std::string_view content = bytes.substr(kMagic, kTailRecordHeaderSize - kMagic + payload_size);
  const Identity identity = owner.At(SealKind::kLogTail, SegmentId{0}, incarnation, offset);
  if (SiteIsOn("wal.tail.check") && !SealMatches(content, identity, LoadLe64(from + kSeal))) return false;
  out->position = LogPosition{LoadLe64(from + kPosition)};
  out->version = Version{LoadLe64(from + kVersion)};
  out->payload = bytes.substr(kTailRecordHeaderSize, payload_size);
  return true;
}

uint64_t TailContentAt(std::string_view bytes) {
  if (bytes.size() < kTailRecordHeaderSize) return 0;
  return std::min<uint64_t>(LoadLe32(bytes.data() + kPayloadSize), bytes.size());
}

uint64_t NextTailRecord(std::string_view half, uint64_t offset) {
  char magic[sizeof(kTailMagic)];
  StoreLe32(magic, kTailMagic);
  size_t at = offset + kMagic;
  do {
    at = half.find(std::string_view(magic, sizeof(magic)), at + 1);
    if (at == std::string_view::npos) return half.size();
  } while ((at - kMagic) % kTailAlignment != 0);
  return at - kMagic;
}

std::optional<Incarnation> IncarnationOfTailRecord(const LogIdentity& owner, uint64_t offset,
                                                   std::string_view bytes) {
  if (bytes.size() < kTailRecordHeaderSize) return std::nullopt;
  const Incarnation incarnation{LoadLe32(bytes.data() + kIncarnation)};
  TailRecord record;
  if (!DecodeTailRecord(owner, incarnation, offset, bytes, &record)) return std::nullopt;
  return incarnation;
}

}  // namespace partita
