#include "wal/segment_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/base/assert.h"
#include "engine/base/coding.h"
#include "engine/base/executor.h"
#include "engine/base/overlapped.h"
#include "engine/base/site.h"

namespace partita {
namespace {

constexpr uint64_t kWindowSize = 1u << 20;
static_assert(kWindowSize >= kFrameSizeMax);
// In front of a window that is read ahead: the beginning of a frame that ends in it.
constexpr uint64_t kCarryMax = kFrameSizeMax;

std::string_view View(const AlignedBuffer& buffer, size_t size) { return buffer.view(0, size); }

}  // namespace

// Some pages of a segment behind those that are looked at.
class SegmentReader::PagesAhead final : public Overlapped {
 public:
  PagesAhead(File& file, uint64_t offset, AlignedBuffer buffer, size_t size)
      : file_(file), offset_(offset), buffer_(std::move(buffer)), size_(size) {}

  uint64_t offset() const { return offset_; }
  // REQUIRES, all: Arrive has returned ok.
  uint64_t bytes_read() const { return AlignDown(bytes_read_, kPageSize); }
  AlignedBuffer TakeBuffer() { return std::move(buffer_); }

 private:
  Task<Status> Perform() override {
    PARTITA_CO_ASSIGN(bytes_read_, co_await file_.ReadAt(offset_, buffer_.span().subspan(kCarryMax, size_)));
    co_return Status();
  }

  File& file_;
  const uint64_t offset_;
  AlignedBuffer buffer_;
  const size_t size_;
  size_t bytes_read_ = 0;
};

SegmentReader::SegmentReader(File& file, const SealedHeader& header, TaskGroup* ahead)
    : file_(file),
      header_(header),
      end_(header.header.segment_size),
      last_seal_(header.seal),
      ahead_group_(ahead) {}
SegmentReader::~SegmentReader() = default;

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
  if (size == 0) co_return std::string_view();
  if (offset < window_offset_ || offset + size > window_end()) {
    PARTITA_CO_TRY(co_await MoveWindow(offset));
    size = std::min(size, window_size_);
  }
  co_return window_.view(window_at_ + (offset - window_offset_), size);
}

// To begin at `offset`.
Task<Status> SegmentReader::MoveWindow(uint64_t offset) {
  PARTITA_ASSERT(offset < end_);
  PARTITA_CO_ASSIGN(const bool taken, co_await TakeAhead(offset));
  if (!taken) {
    const uint64_t carry = ahead_group_ == nullptr ? 0 : kCarryMax;
    const uint64_t window_size = std::min(kWindowSize, AlignUp(end_, kPageSize));
    if (window_.data() == nullptr) window_ = AlignedBuffer(carry + window_size);
    if (window_.data() == nullptr) co_return Status::ResourceExhausted("no memory to read " + file_.path());
    window_size_ = 0;
    window_offset_ = offset;
    window_at_ = carry;
    const uint64_t want = std::min(kWindowSize, end_ - offset);
    PARTITA_CO_ASSIGN(const size_t got, co_await file_.ReadAt(offset, window_.span().subspan(carry, want)));
    window_size_ = AlignDown(got, kPageSize);
  }
  StartAhead();
  co_return Status();
}

// What was read ahead becomes the window, with what the last one holds from `offset` on in front of it. False
// when that is not what is wanted.
Task<Result<bool>> SegmentReader::TakeAhead(uint64_t offset) {
  const std::shared_ptr<PagesAhead> next = std::exchange(ahead_, nullptr);
  const bool borders = next != nullptr && next->offset() == window_end() && offset >= window_offset_ &&
                       offset <= window_end() && window_end() - offset <= kCarryMax;
  if (!borders) co_return false;
  PARTITA_CO_TRY(co_await next->Arrive());
  const uint64_t carried = window_end() - offset;
  spare_ = std::exchange(window_, next->TakeBuffer());
  std::memcpy(window_.data() + kCarryMax - carried, spare_.data() + window_at_ + (offset - window_offset_),
              carried);
  window_at_ = kCarryMax - carried;
  window_offset_ = offset;
  window_size_ = carried + next->bytes_read();
  co_return true;
}

void SegmentReader::StartAhead() {
  if (ahead_group_ == nullptr || Executor::Current() == nullptr || window_end() >= end_) return;
  AlignedBuffer buffer = std::move(spare_);
  if (buffer.data() == nullptr) buffer = AlignedBuffer(kCarryMax + kWindowSize);
  if (buffer.data() == nullptr) return;
  const uint64_t size = std::min(kWindowSize, end_ - window_end());
  ahead_ = std::make_shared<PagesAhead>(file_, window_end(), std::move(buffer), size);
  Overlapped::Start(*ahead_group_, *Executor::Current(), ahead_);
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
  ahead_ = nullptr;
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
