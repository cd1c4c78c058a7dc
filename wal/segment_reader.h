#pragma once
#include <memory>
#include <string>

#include "engine/base/aligned_buffer.h"
#include "engine/base/log_store.h"
#include "engine/base/task.h"
#include "engine/base/task_group.h"
#include "engine/io/file.h"
#include "wal/frame_format.h"
#include "wal/segment_format.h"

namespace partita {

// What stands behind the place where a segment's chain of frames ends.
struct FramesBeyond {
  bool any = false;
  LogPosition durable_max;  // Highest watermark of a valid frame there: the proof (F31).
  uint64_t durable_at = 0;  // The offset of that frame.
  uint64_t end = 0;         // End of the last page that is seen to be of this segment.
};

// Reads one segment's frames in order, verifying each. Used by one thread; `file` outlives it.
class SegmentReader {
 public:
  // On an executor's thread `ahead` reads the next pages while the frames before are worked on; it is to be
  // joined before the file goes. Null: each read is waited for.
  SegmentReader(File& file, const SealedHeader& header, TaskGroup* ahead = nullptr);
  ~SegmentReader();

  // Reads the header of a segment file. kCorruption and kUnsupported as DecodeSegmentHeader.
  static Task<Result<SealedHeader>> ReadHeader(File& file);

  // The frame that stands first behind the header of a file, whatever segment it is of.
  // False when there is none by this owner.
  static Task<Result<bool>> ReadFirstFrame(File& file, const LogIdentity& owner, FrameHeader* out);

  // The next frame of the chain; false where the chain ends: what stands at offset() is no valid
  // frame of this segment. kCorruption when it is valid, but does not follow the one before.
  // The payload is valid until the next call.
  Task<Result<bool>> Next(ParsedFrame* frame);

  // Looks at every page behind offset(), as unflushed frames survive in any order.
  // `each` (may be null) is called with each valid frame found.
  using FrameVisitor = std::function<void(uint64_t offset, const ParsedFrame& frame)>;
  Task<Result<FramesBeyond>> ScanBeyond(FrameVisitor each = nullptr);

  // Goes on with a valid frame that ScanBeyond has shown, whose predecessors are lost. For salvage alone:
  // recovery does not step over what is bad (F31).
  void ResumeAt(uint64_t offset, uint64_t previous_seal) {
    offset_ = offset;
    last_seal_ = previous_seal;
  }

  // Forgets what was read, and has the next read go past all caches (F52).
  Task<Status> Reload();

  uint64_t offset() const { return offset_; }        // Where the next frame is expected.
  uint64_t last_seal() const { return last_seal_; }  // Of the last frame, or of the header.

 private:
  // A view of [offset, offset + size), or less at the end of the segment or file.
  Task<Result<std::string_view>> Load(uint64_t offset, uint64_t size);
  Task<Status> MoveWindow(uint64_t offset);
  Task<Result<bool>> TakeAhead(uint64_t offset);
  void StartAhead();
  uint64_t window_end() const { return window_offset_ + window_size_; }
  Task<Result<FrameCheck>> Parse(uint64_t offset, ParsedFrame* frame);
  bool IsOfThisSegment(const FrameHeader& frame) const;

  File& file_;
  const SealedHeader header_;
  const uint64_t end_;
  uint64_t offset_ = kSegmentHeaderSize;
  uint64_t last_seal_;
  TaskGroup* const ahead_group_;
  AlignedBuffer window_;
  size_t window_at_ = 0;  // Where the bytes from window_offset_ on are in it.
  uint64_t window_offset_ = 0;
  uint64_t window_size_ = 0;
  class PagesAhead;
  std::shared_ptr<PagesAhead> ahead_;  // What comes behind the window; null: nobody reads it yet.
  AlignedBuffer spare_;                // For the next one; may have no data.
};

// Puts records together from the pieces in frames, and checks that positions run without a gap.
class RecordAssembler {
 public:
  // Delivers records at or above `from`; the first frame continues at `next`. With `headless` a
  // record may go on whose beginning is trimmed: it is passed over.
  RecordAssembler(LogPosition from, LogPosition next, bool headless)
      : from_(from), next_(next), headless_(headless) {}

  // kCorruption (without the place) when the frame does not fit what came before; else what the
  // sink says.
  Status Feed(const ParsedFrame& frame, const LogReplaySink& sink);

  // A record that was begun is void: it is written again from its beginning.
  void DropPartial();

  LogPosition next() const { return next_; }  // Of the first record that did not end yet.
  bool partial() const { return partial_; }
  LogPosition first_delivered() const { return first_delivered_; }
  uint64_t delivered() const { return delivered_; }

 private:
  Status Take(const FramePiece& piece, bool ends, const LogReplaySink& sink);

  const LogPosition from_;
  LogPosition next_;
  bool headless_;
  bool partial_ = false;
  Version partial_version_;
  std::string partial_bytes_;
  LogPosition first_delivered_;
  uint64_t delivered_ = 0;
};

}  // namespace partita
