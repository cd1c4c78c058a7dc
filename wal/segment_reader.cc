#include "wal/segment_reader.h"

#include <algorithm>

#include "engine/base/assert.h"
#include "engine/base/coding.h"
#include "engine/base/executor.h"
#include "engine/base/site.h"

namespace partita {
namespace {

constexpr uint64_t kWindowSize = 2 * kFrameSizeMax;

std::string_view View(const AlignedBuffer& buffer, size_t size) { return buffer.view(0, size); }

}  // namespace

SegmentReader::SegmentReader(File& file, const SealedHeader& header)
    : file_(file), header_(header), end_(header.header.segment_size), last_seal_(header.seal) {}

Task<Result<SealedHeader>> SegmentReader::ReadHeader(File& file) {
  AlignedBuffer page(kSegmentHeaderSize);
  if (page.data() == nullptr) co_return Status::ResourceExhausted("no memory to read " + file.path());
  PARTITA_CO_ASSIGN(const size_t size, co_await file.ReadAt(0, page.span()));
  if (size < kSegmentHeaderSize) co_return Status::Corruption("the file ends within the segment header");
  co_return DecodeSegmentHeader(View(page, size));
}

Task<Result<bool>> SegmentReader::ReadFirstFrame(File& file, const LogIdentity& owner, FrameHeader* out) {
  const LogIdentity owner_copy = owner;
  uint64_t wanted = kPageSize;
  while (true) {
    AlignedBuffer buffer(wanted);
    if (buffer.data() == nullptr) co_return Status::ResourceExhausted("no memory to read " + file.path());
    PARTITA_CO_ASSIGN(const size_t size, co_await file.ReadAt(kSegmentHeaderSize, buffer.span()));
    if (size < wanted) co_return false;
    ParsedFrame frame;
    switch (ParseFrame(owner_copy, kSegmentHeaderSize, View(buffer, size), &frame)) {
      case FrameCheck::kValid:
        *out = frame.header;
        co_return true;
      case FrameCheck::kBad:
        co_return false;
      case FrameCheck::kShort:
        if (frame.size <= wanted) co_return false;
        wanted = frame.size;
    }
  }
}

Task<Result<std::string_view>> SegmentReader::Load(uint64_t offset, uint64_t size) {
  size = std::min(size, end_ > offset ? end_ - offset : 0);
  if (offset < window_offset_ || offset + size > window_offset_ + window_size_) {
    if (window_.data() == nullptr) {
      window_ = AlignedBuffer(std::min(kWindowSize, AlignUp(end_, kPageSize)));
      if (window_.data() == nullptr) co_return Status::ResourceExhausted("no memory to read " + file_.path());
    }
    window_size_ = 0;
    window_offset_ = offset;
    const uint64_t want = std::min<uint64_t>(window_.size(), end_ - offset);
    PARTITA_CO_ASSIGN(const size_t got, co_await file_.ReadAt(offset, window_.span().first(want)));
    window_size_ = AlignDown(got, kPageSize);
    size = std::min(size, window_size_);
  }
  co_return window_.view(offset - window_offset_, size);
}

Task<Result<FrameCheck>> SegmentReader::Parse(uint64_t offset, ParsedFrame* frame) {
  PARTITA_CO_ASSIGN(std::string_view bytes, co_await Load(offset, kPageSize));
  if (bytes.size() < kPageSize) co_return FrameCheck::kBad;
  FrameCheck check = ParseFrame(header_.owner, offset, bytes, frame);
  if (check == FrameCheck::kShort) {
    const uint64_t wanted = frame->size;
    PARTITA_CO_ASSIGN(bytes, co_await Load(offset, wanted));
    if (bytes.size() < wanted) co_return FrameCheck::kBad;
    check = ParseFrame(header_.owner, offset, bytes, frame);
  }
  co_return check;
}

bool SegmentReader::IsOfThisSegment(const FrameHeader& frame) const {
  return frame.segment == header_.header.segment && frame.incarnation == header_.header.incarnation;
}

Task<Result<bool>> SegmentReader::Next(ParsedFrame* frame) {
  co_await YieldIfDue();
  PARTITA_CO_ASSIGN(const FrameCheck check, co_await Parse(offset_, frame));
  if (check != FrameCheck::kValid || !IsOfThisSegment(frame->header)) co_return false;
  if (SiteIsOn("wal.chain.check") && frame->header.previous_seal != last_seal_) {
    co_return Status::Corruption(file_.path() + ", offset " + std::to_string(offset_) +
                                 ": the frame is valid but does not chain to the one before it (F30)");
  }
  offset_ += frame->size;
  last_seal_ = frame->seal;
  co_return true;
}

Task<Result<FramesBeyond>> SegmentReader::ScanBeyond(FrameVisitor each) {
  FramesBeyond out;
  out.end = offset_;
  for (uint64_t at = offset_; at + kPageSize <= end_; at += kPageSize) {
    co_await YieldIfDue();
    ParsedFrame frame;
    PARTITA_CO_ASSIGN(const FrameCheck check, co_await Parse(at, &frame));
    if (check == FrameCheck::kBad) {
      // Not valid, but it may say in the clear that it was to be a frame of this segment.
      PARTITA_CO_ASSIGN(const std::string_view page, co_await Load(at, kPageSize));
      if (page.size() < kPageSize) break;
      if (LooksLikeFrameOf(header_.owner, header_.header.segment, header_.header.incarnation, page)) {
        out.end = at + kPageSize;
      }
      continue;
    }
    if (check != FrameCheck::kValid || !IsOfThisSegment(frame.header)) continue;
    if (each) each(at, frame);
    out.any = true;
    out.end = at + frame.size;
    if (frame.header.durable_position >= out.durable_max) {
      out.durable_max = frame.header.durable_position;
      out.durable_at = at;
    }
  }
  co_return out;
}

Task<Status> SegmentReader::Reload() {
  window_size_ = 0;
  window_offset_ = 0;
  co_return co_await file_.DropCache();
}

Status RecordAssembler::Feed(const ParsedFrame& frame, const LogReplaySink& sink) {
  const FrameHeader& header = frame.header;
  if (header.first_position != next_) {
    return Status::Corruption("the frame begins at position " + std::to_string(header.first_position.value) +
                              ", expected " + std::to_string(next_.value) + " (F34)");
  }
  const bool may_go_on = partial_ || headless_;
  if (header.piece_count > 0 && header.continues() != may_go_on) {
    if (header.continues())
      return Status::Corruption("the frame goes on with a record that has no beginning");
    if (partial_) return Status::Corruption("the frame does not go on with the record begun before it");
    headless_ = false;
  }
  if (header.piece_count == 0 && partial_)
    return Status::Corruption("a record is broken off by an empty frame");
  PieceReader pieces(frame.payload);
  FramePiece piece;
  uint32_t count = 0;
  while (pieces.Next(&piece)) {
    if (++count > header.piece_count) break;
    const bool ends = count < header.piece_count || !header.continued();
    PARTITA_TRY(Take(piece, ends, sink));
  }
  if (!pieces.ok() || count != header.piece_count) {
    return Status::Corruption("the frame is sealed but its pieces are malformed");
  }
  return Status();
}

Status RecordAssembler::Take(const FramePiece& piece, bool ends, const LogReplaySink& sink) {
  const bool wanted = !headless_ && next_ >= from_;
  if (partial_ && wanted) {
    if (piece.version != partial_version_) return Status::Corruption("pieces of a record differ in version");
    if (partial_bytes_.size() + piece.bytes.size() > kLogRecordSizeMax) {
      return Status::Corruption("a record is larger than any may be");
    }
  }
  if (!ends) {
    if (wanted) partial_bytes_.append(piece.bytes);
    partial_version_ = piece.version;
    partial_ = true;
    return Status();
  }
  Status status;
  if (wanted) {
    LogRecord record{next_, piece.version, piece.bytes};
    if (partial_) {
      partial_bytes_.append(piece.bytes);
      record.payload = partial_bytes_;
    }
    if (delivered_ == 0) first_delivered_ = next_;
    delivered_++;
    status = sink(record);
  }
  headless_ = false;
  DropPartial();
  next_.value++;
  return status;
}

void RecordAssembler::DropPartial() {
  partial_ = false;
  if (partial_bytes_.capacity() > kFrameSizeMax) {
    partial_bytes_ = std::string();
  } else {
    partial_bytes_.clear();
  }
}

}  // namespace partita
