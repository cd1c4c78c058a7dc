#include "wal/log_inspect.h"

#include "wal/segment_pool.h"
#include "wal/segment_reader.h"

namespace partita {
namespace {

void AddFlag(uint16_t flags, uint16_t flag, const char* name, std::vector<std::string>* out) {
  if ((flags & flag) != 0) out->push_back(name);
}

InspectedFrame Describe(uint64_t offset, const ParsedFrame& frame, bool in_chain) {
  InspectedFrame out;
  out.offset = offset;
  out.size = frame.size;
  out.payload_size = frame.header.payload_size;
  out.pieces = frame.header.piece_count;
  out.first_position = frame.header.first_position;
  out.durable_position = frame.header.durable_position;
  out.version_max = frame.header.version_max;
  out.version_ceiling = frame.header.version_ceiling;
  AddFlag(frame.header.flags, kFrameContinues, "continues", &out.flags);
  AddFlag(frame.header.flags, kFrameContinued, "continued", &out.flags);
  AddFlag(frame.header.flags, kFrameSeal, "seal", &out.flags);
  AddFlag(frame.header.flags, kFrameClosing, "closing", &out.flags);
  AddFlag(frame.header.flags, kFrameTakesEffect, "takes-effect", &out.flags);
  out.in_chain = in_chain;
  return out;
}

void DescribeHeader(const SealedHeader& sealed, InspectedSegment* out) {
  const SegmentHeader& header = sealed.header;
  out->header_valid = true;
  out->store = sealed.owner.store;
  out->shard = sealed.owner.shard;
  out->segment = header.segment;
  out->incarnation = header.incarnation;
  out->segment_size = header.segment_size;
  out->begin = header.begin();
  out->version_ceiling = header.version_ceiling;
  out->previous_segment = header.previous_segment;
  out->previous_seal = header.previous_seal;
  out->seals = {sealed.seal};
  AddFlag(header.flags, kSegmentContinues, "continues", &out->flags);
  AddFlag(header.flags, kSegmentAwaitsEffect, "awaits-effect", &out->flags);
  out->in_effect = !header.awaits_effect();
}

void DescribeEnd(const FramesBeyond& beyond, LogPosition next, InspectedSegment* out) {
  out->damaged = beyond.any && beyond.durable_max >= next;
  if (out->damaged) {
    out->end_reason = "damaged: the frame at offset " + std::to_string(beyond.durable_at) +
                      " says that position " + std::to_string(beyond.durable_max.value) +
                      " was flushed, but position " + std::to_string(next.value) +
                      " is not here (unless the next segment begins there)";
  } else if (beyond.end > out->end_offset) {
    out->end_reason = "a torn tail of " + std::to_string(beyond.end - out->end_offset) +
                      " bytes, of which none is known to have been flushed";
  } else {
    out->end_reason = "nothing of this segment follows";
  }
}

}  // namespace

Task<Result<InspectedSegment>> InspectSegment(FileSystem& files, std::string path,
                                              std::function<void(const InspectedFrame&)> each_frame) {
  PARTITA_CO_ASSIGN(std::unique_ptr<File> file, co_await SegmentPool::OpenFile(files, path, OpenMode::kRead));
  InspectedSegment out;
  auto header = co_await SegmentReader::ReadHeader(*file);
  if (!header.ok()) {
    if (header.code() != Code::kCorruption) co_return header.status().WithContext(path);
    out.header_problem = header.status().message();
    co_return out;
  }
  DescribeHeader(header.value(), &out);
  PARTITA_CO_ASSIGN(const uint64_t size, co_await file->Size());
  if (header->header.in_use() && size < out.segment_size) {
    out.size_problem = "the file has " + std::to_string(size) + " bytes, though its header says " +
                       std::to_string(out.segment_size) + " (F35)";
  }
  SegmentReader reader(*file, header.value());
  LogPosition next = out.begin.first_position;
  ParsedFrame frame;
  while (out.segment.value != 0) {
    const uint64_t offset = reader.offset();
    auto found = co_await reader.Next(&frame);
    if (!found.ok() && found.code() != Code::kCorruption) co_return found.status();
    if (!found.ok() || !found.value()) break;
    if (each_frame) each_frame(Describe(offset, frame, /*in_chain=*/true));
    out.in_effect = out.in_effect || frame.header.takes_effect();
    out.frames++;
    out.seals.push_back(frame.seal);
    out.records_ended += frame.header.next_position().value - frame.header.first_position.value;
    out.durable_position = std::max(out.durable_position, frame.header.durable_position);
    next = frame.header.next_position();
  }
  out.end_offset = reader.offset();
  out.last_position = LogPosition{next.value > out.begin.first_position.value ? next.value - 1 : 0};
  SegmentReader::FrameVisitor visit = [&](uint64_t offset, const ParsedFrame& beyond) {
    out.frames_beyond++;
    out.durable_position = std::max(out.durable_position, beyond.header.durable_position);
    if (each_frame) each_frame(Describe(offset, beyond, /*in_chain=*/false));
  };
  PARTITA_CO_ASSIGN(const FramesBeyond beyond, co_await reader.ScanBeyond(std::move(visit)));
  DescribeEnd(beyond, next, &out);
  out.in_effect = out.in_effect || out.damaged;  // What proves the damage was written once it was.
  co_return out;
}

}  // namespace partita
