#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "engine/base/aligned_buffer.h"
#include "engine/base/result.h"
#include "wal/log_identity.h"

namespace partita {

// A log segment is a file of fixed size, zero-written once (F57), then used again and again: a
// header page, then frames (frame_format.h). The file's name says nothing; who it is says the
// header, which is rewritten and flushed before the first frame of its new life is written. All
// integers are little-endian.
//
//   offset  size  field
//        0     8  seal             XXH3-64 over bytes [8, 4096), XOR Identity(store, segment, 0,
//                                  kLogSegmentHeader, shard << 32 | incarnation)
//        8     8  magic            "PTLOGSEG"
//       16     2  format           kLogFormat; also that of the frames behind it
//       18     2  flags            below
//       20     4  shard
//       24     8  store
//       32     8  segment          rising; 0: prepared (zero-written), not in use
//       40     4  incarnation      the life of the log that writes it
//       44     4  reserved         zero
//       48     8  segment_size     bytes of the file; in use, more than this header
//       56     8  first_position   of the first record that begins here, or goes on here. What
//                                  earlier segments hold from there on is void (but for the
//                                  beginning of a record that goes on here)
//       64     8  version_ceiling  no version above it was exposed before this segment (F18)
//       72     8  previous_segment 0: this is the first of the log
//       80     8  previous_seal    of the last frame of the previous segment that counts, or of its
//                                  header when none does: the chain of hashes runs across segments
//       88  4008  reserved         zero, checked on read
//
// Flags:
//   kSegmentContinues     the first piece goes on with the record that the previous segment ends in
//   kSegmentAwaitsEffect  holds a copy of records whose other copy still counts: the segment is in
//                         effect only once a frame of it, or of the next such segment, says so
//                         (kFrameTakesEffect). Why: a process killed amid the copying must find
//                         them where they were (F21, F28)
//
// A crash between: the header is old or torn -> the file is not in the chain; the header is new and
// the frames are of an older life -> their identity fails, the segment is empty.
//
// Reader: a bad seal is torn or damaged, decided by log_recoverer.h. A newer format -> kUnsupported,
// before anything is written (F66). Another store or shard -> kCorruption, refused (F66).
inline constexpr uint64_t kSegmentMagic = 0x4745'5347'4f4c'5450;  // "PTLOGSEG"
inline constexpr uint16_t kLogFormat = 1;
inline constexpr uint64_t kSegmentHeaderSize = kPageSize;

inline constexpr uint16_t kSegmentContinues = 1;
inline constexpr uint16_t kSegmentAwaitsEffect = 2;
inline constexpr uint16_t kSegmentFlagsAll = kSegmentContinues | kSegmentAwaitsEffect;

// Where in the log a segment begins.
struct SegmentBegin {
  LogPosition first_position;
  bool continues = false;  // kSegmentContinues.

  // The segment, or one in front of it, holds the beginning of that record (F34).
  bool HoldsBeginOf(LogPosition record) const {
    return first_position < record || (first_position == record && !continues);
  }
};

struct SegmentHeader {
  uint16_t flags = 0;
  SegmentId segment;
  Incarnation incarnation;
  uint64_t segment_size = 0;
  LogPosition first_position;
  Version version_ceiling;
  SegmentId previous_segment;
  uint64_t previous_seal = 0;

  bool in_use() const { return segment.value != 0; }
  bool continues() const { return (flags & kSegmentContinues) != 0; }
  bool awaits_effect() const { return (flags & kSegmentAwaitsEffect) != 0; }
  SegmentBegin begin() const { return {first_position, continues()}; }
};

struct SealedHeader {
  SegmentHeader header;
  LogIdentity owner;  // As the header says; its seal agrees.
  uint64_t seal = 0;
};

// Writes the header page and returns its seal. REQUIRES: page.size() == kSegmentHeaderSize.
uint64_t EncodeSegmentHeader(const LogIdentity& owner, const SegmentHeader& header, std::span<uint8_t> page);

// kCorruption when the page is no valid header (the message says what is wrong, not where);
// kUnsupported for a newer format. The owner is not compared with anyone's.
// REQUIRES: page.size() == kSegmentHeaderSize.
Result<SealedHeader> DecodeSegmentHeader(std::string_view page);

}  // namespace partita
