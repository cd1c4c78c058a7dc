#pragma once
#include <cstdint>
#include <span>

#include "engine/base/aligned_buffer.h"
#include "engine/base/log_store.h"
#include "engine/base/result.h"
#include "wal/frame_format.h"

namespace partita {

// How far a span of records was put into frames.
struct RecordCursor {
  size_t index = 0;  // The record in work; the span's size when all are done.
  size_t byte = 0;   // Bytes of its payload that are in frames already.
};

// Where the next frame goes, and what it chains to.
struct FrameCursor {
  uint64_t offset = 0;
  uint64_t previous_seal = 0;
};

// What is the same in every frame of one call.
struct FrameStamp {
  SegmentId segment;
  Incarnation incarnation;
  LogPosition durable_position;
  Version version_max;  // Before the records; each frame adds its own.
  Version version_ceiling;
  uint16_t last_flags = 0;  // Of the frame that ends the last record.
};

struct GatheredFrames {
  std::span<const uint8_t> bytes;  // Contiguous frames; valid until the next Gather.
  RecordCursor records;            // After them.
  FrameCursor frames;              // After them.
  Version version_max;
};

// Packs records into sealed frames in one aligned buffer, ready to be written. Belongs to the
// holder of the flush token. The buffer grows with need up to kGatherBytesMax, and stays.
class FrameGatherer {
 public:
  static constexpr size_t kGatherBytesMax = 4u << 20;

  FrameGatherer(const LogIdentity& owner, uint32_t frame_size_max)
      : owner_(owner), frame_size_max_(frame_size_max) {}

  // Takes as many records, from `at` on, as fit before `segment_end` and into the buffer; always
  // something. kResourceExhausted when the buffer cannot be had.
  // REQUIRES: at.index < records.size(), and frames.offset + kPageSize <= segment_end.
  Result<GatheredFrames> Gather(std::span<const LogRecord> records, RecordCursor at, FrameCursor frames,
                                uint64_t segment_end, const FrameStamp& stamp);

  // A frame without pieces: an idle seal, or a carrier of the ceiling.
  Result<GatheredFrames> Mark(LogPosition next_position, FrameCursor frames, const FrameStamp& stamp);

 private:
  Status Reserve(size_t size);
  // Fills `room` bytes at most with one frame's payload; returns its header, unfinished.
  FrameHeader FillPayload(std::span<const LogRecord> records, RecordCursor* at, size_t room, uint8_t* to);
  static size_t BytesNeeded(std::span<const LogRecord> records, RecordCursor at);

  const LogIdentity owner_;
  const uint32_t frame_size_max_;
  AlignedBuffer buffer_;
};

}  // namespace partita
