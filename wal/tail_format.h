#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "engine/base/aligned_buffer.h"
#include "wal/log_identity.h"

namespace partita {

// The tail of a log is one file of two halves, mapped; it has no header. Each half is a run of
// records from its first byte on, each at a multiple of 8 bytes; bytes that are no record of this
// place and incarnation are passed over. All integers are little-endian.
//
//   offset  size  field
//        0     8  seal          XXH3-64 over bytes [8, 40 + payload_size), XOR Identity(store, 0,
//                               offset in the file, kLogTail, shard << 32 | incarnation)
//        8     4  magic         "PTLT"
//       12     4  payload_size
//       16     8  position
//       24     8  version
//       32     4  incarnation
//       36     4  shard
//       40     n  payload
//            ...  padding       up to the next multiple of 8; not looked at
//
// Which incarnation counts is said by the newest segment in effect, not by the tail: recovery has
// copied to a segment what the tail of the life before held. Records may leave out positions that
// segments hold. Behind the newest record may stand older ones of the same incarnation, from the
// half's use before: their positions are lower, and segments hold them flushed, so that reading
// them too does no harm.
//
// A process killed amid the copying of a record leaves a bad seal: it was not acknowledged, and has
// no later ones behind it. Records behind a position that neither tail nor segments have are of no
// use (F12): a bad one of them, or a loss of power, took away what was in front of them.
inline constexpr uint32_t kTailMagic = 0x544c'5450;  // "PTLT"
inline constexpr size_t kTailRecordHeaderSize = 40;
inline constexpr size_t kTailAlignment = 8;

struct TailRecord {
  LogPosition position;
  Version version;
  std::string_view payload;
};

inline constexpr uint64_t TailRecordSize(uint64_t payload_size) {
  return AlignUp(kTailRecordHeaderSize + payload_size, kTailAlignment);
}

// Writes a record to `to`, the seal last. REQUIRES: to.size() >= TailRecordSize(payload size).
void EncodeTailRecord(const LogIdentity& owner, Incarnation incarnation, uint64_t offset,
                      const TailRecord& record, std::span<uint8_t> to);

// True when a record of this owner and incarnation stands at `offset`, where `bytes` begin.
bool DecodeTailRecord(const LogIdentity& owner, Incarnation incarnation, uint64_t offset,
                      std::string_view bytes, TailRecord* out);

// How large a record's content would be where `bytes` begin, at most what there is: so much may be hashed to
// know that it is none.
uint64_t TailContentAt(std::string_view bytes);

// Where behind `offset` in a half the next record may begin; its size: nowhere.
uint64_t NextTailRecord(std::string_view half, uint64_t offset);

// Of the record of this owner that stands at `offset`, if any.
std::optional<Incarnation> IncarnationOfTailRecord(const LogIdentity& owner, uint64_t offset,
                                                   std::string_view bytes);

}  // namespace partita
