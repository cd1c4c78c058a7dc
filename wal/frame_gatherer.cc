#include "wal/frame_gatherer.h"

#include <algorithm>
#include <cstring>

#include "engine/base/assert.h"

namespace partita {

Status FrameGatherer::Reserve(size_t size) {
  if (buffer_.size() >= size) return Status();
  AlignedBuffer larger(size);
  if (larger.data() == nullptr) {
    return Status::ResourceExhausted("no memory for " + std::to_string(size) + " bytes of log frames");
  }
  buffer_ = std::move(larger);
  return Status();
}

size_t FrameGatherer::BytesNeeded(std::span<const LogRecord> records, RecordCursor at) {
  size_t needed = 2 * kPageSize;
  for (size_t i = at.index; i < records.size() && needed < kGatherBytesMax; ++i) {
    needed += records[i].payload.size() + kPieceHeaderSize;
    needed += records[i].payload.size() > kLogRecordLoneSize ? 2 * kPageSize : 0;
  }
  needed += needed / 16;  // Frame headers and padding.
  return std::min<size_t>(AlignUp(needed, 16 * kPageSize), kGatherBytesMax);
}

FrameHeader FrameGatherer::FillPayload(std::span<const LogRecord> records, RecordCursor* at, size_t room,
                                       uint8_t* to) {
  FrameHeader header;
  header.first_position = records[at->index].position;
  if (at->byte > 0) header.flags |= kFrameContinues;
  while (at->index < records.size()) {
    const LogRecord& record = records[at->index];
    const bool lone = record.payload.size() > kLogRecordLoneSize;
    if (lone && header.piece_count > 0) break;
    const size_t left = record.payload.size() - at->byte;
    if (room < kPieceHeaderSize + (left > 0 ? 1 : 0)) break;
    const size_t take = std::min(left, room - kPieceHeaderSize);
    EncodePieceHeader(static_cast<uint32_t>(take), record.version, to + header.payload_size);
    if (take > 0) {
      std::memcpy(to + header.payload_size + kPieceHeaderSize, record.payload.data() + at->byte, take);
    }
    room -= kPieceHeaderSize + take;
    header.payload_size += static_cast<uint32_t>(kPieceHeaderSize + take);
    header.piece_count++;
    header.version_max = std::max(header.version_max, record.version);
    if (take < left) {
      at->byte += take;
      header.flags |= kFrameContinued;
      break;
    }
    *at = {at->index + 1, 0};
    if (lone) break;
  }
  return header;
}

Result<GatheredFrames> FrameGatherer::Gather(std::span<const LogRecord> records, RecordCursor at,
                                             FrameCursor frames, uint64_t segment_end,
                                             const FrameStamp& stamp) {
  PARTITA_ASSERT(at.index < records.size());
  PARTITA_ASSERT(frames.offset + kPageSize <= segment_end);
  PARTITA_TRY(Reserve(BytesNeeded(records, at)));
  GatheredFrames out{.bytes = {}, .records = at, .frames = frames, .version_max = stamp.version_max};
  size_t filled = 0;
  while (out.records.index < records.size()) {
    const uint64_t room =
        std::min<uint64_t>({frame_size_max_, buffer_.size() - filled, segment_end - out.frames.offset});
    if (room < kPageSize) break;
    uint8_t* to = buffer_.data() + filled;
    FrameHeader header = FillPayload(records, &out.records, room - kFrameHeaderSize, to + kFrameHeaderSize);
    out.version_max = std::max(out.version_max, header.version_max);
    header.segment = stamp.segment;
    header.incarnation = stamp.incarnation;
    header.previous_seal = out.frames.previous_seal;
    header.durable_position = stamp.durable_position;
    header.version_max = out.version_max;
    header.version_ceiling = stamp.version_ceiling;
    if (out.records.index == records.size()) header.flags |= stamp.last_flags;
    const size_t size = FrameSize(header.payload_size);
    out.frames.previous_seal = SealFrame(owner_, out.frames.offset, header, {to, size});
    out.frames.offset += size;
    filled += size;
  }
  PARTITA_ASSERT(filled > 0);
  out.bytes = {buffer_.data(), filled};
  return out;
}

Result<GatheredFrames> FrameGatherer::Mark(LogPosition next_position, FrameCursor frames,
                                           const FrameStamp& stamp) {
  PARTITA_TRY(Reserve(kPageSize));
  FrameHeader header;
  header.flags = stamp.last_flags;
  header.segment = stamp.segment;
  header.incarnation = stamp.incarnation;
  header.first_position = next_position;
  header.previous_seal = frames.previous_seal;
  header.durable_position = stamp.durable_position;
  header.version_max = stamp.version_max;
  header.version_ceiling = stamp.version_ceiling;
  GatheredFrames out{.bytes = {buffer_.data(), kPageSize},
                     .records = {},
                     .frames = frames,
                     .version_max = stamp.version_max};
  out.frames.previous_seal = SealFrame(owner_, frames.offset, header, {buffer_.data(), kPageSize});
  out.frames.offset += kPageSize;
  return out;
}

}  // namespace partita
