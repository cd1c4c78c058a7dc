#pragma once
#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "engine/base/log_store.h"
#include "wal/frame_gatherer.h"
#include "wal/local_log_store.h"
#include "wal/segment_format.h"
#include "wal/segment_pool.h"

namespace partita {

// A segment that holds records not yet trimmed, or is the current one.
struct LiveSegment {
  std::unique_ptr<File> file;
  SegmentId id;
  SegmentBegin begin;
  bool reusable = true;  // False once poisoned (F20), and when its size is not ours.
  uint64_t used = 0;     // Bytes that recovery would read.
};

// Where recovery found the log to end.
struct AppenderStart {
  std::vector<LiveSegment> segments;  // Oldest first.
  LogPosition end;                    // Last position that segments hold, all flushed.
  SegmentId segment_max;              // Highest id ever seen.
  uint64_t last_seal = 0;             // Of the last frame or header that counts.
  Version version_max;
  Version version_ceiling;
};

// Writes frames to the newest segment and starts segments; knows what is written and what is
// flushed. Owned by the log store, called by the holder of the flush token only.
//
// After an error the newest segment must not be written again: the owner sees to it (F20), and
// calls only CopyToNewSegment until that succeeds.
class LogAppender {
 public:
  LogAppender(SegmentPool& pool, const LocalLogOptions& options);

  // Takes over after recovery, before anything else; then CopyToNewSegment must follow.
  void Adopt(AppenderStart start);

  enum class WriteEnd : uint8_t { kLeave, kFlush };
  // Writes `records` into frames, over as many segments as that takes. With kFlush all that was
  // written so far is durable afterwards. REQUIRES: positions continue appended_end().
  Task<Status> Write(std::span<const LogRecord> records, WriteEnd end);

  // Makes all that is written durable. Writes a frame of its own only to carry a new ceiling.
  Task<Status> Flush();

  // Writes a frame without records, flags as given, and flushes.
  Task<Status> WriteMark(uint16_t flags);

  // Starts a segment after the last flushed frame, and makes `records`, which follow it, durable
  // there. They take effect together, with the last of their frames. On failure the state is as
  // before. REQUIRES: records begin at flushed_end() + 1, without gaps.
  Task<Status> CopyToNewSegment(std::span<const LogRecord> records);

  // Gives up segments whose records all lie below `position`.
  Task<void> Trim(LogPosition position);

  // The current segment is not to be used again.
  void PoisonCurrent() { segments_.back().reusable = false; }

  void RaiseCeiling(Version ceiling) { ceiling_leased_ = std::max(ceiling_leased_, ceiling); }

  // The one being written; 0 before the first. Its header is durable.
  SegmentId newest_segment() const { return segments_.empty() ? SegmentId{} : segments_.back().id; }
  // Bytes of it that are used.
  uint64_t newest_used() const { return segments_.empty() ? 0 : segments_.back().used; }
  LogPosition appended_end() const { return appended_end_; }
  LogPosition flushed_end() const { return flushed_.position; }
  Version flushed_version() const { return flushed_.version; }
  // The last frame is a seal whose watermark covers everything.
  bool sealed() const { return sealed_; }
  uint64_t live_bytes() const;
  const LocalLogStats& stats() const { return stats_; }
  void Close() { segments_.clear(); }

 private:
  // What is known flushed: all frames up to the one with this seal.
  struct FlushedPoint {
    LogPosition position;  // Last record that ends there.
    uint64_t seal = 0;
    Version version;  // No record or ceiling above it is lost.
  };

  File& current_file() { return *segments_.back().file; }
  FrameStamp Stamp(uint16_t last_flags) const;
  Task<Status> Rotate(bool continues);
  Task<Status> BeginSegment(uint16_t flags, LogPosition first_position, uint64_t previous_seal);
  Task<Status> CopyRecords(std::span<const LogRecord> records);
  Task<Status> WriteFrames(std::span<const LogRecord> records, WriteEnd end, uint16_t last_flags);
  Task<Status> WriteGathered(GatheredFrames gathered, LogPosition appended_end, WriteEnd end);
  Task<Status> FlushCurrent();
  Task<Status> WriteAndFlush(uint64_t offset, std::span<const uint8_t> bytes);
  void MarkFlushed();

  SegmentPool& pool_;
  const LogIdentity owner_;
  const Incarnation incarnation_;
  const uint64_t segment_size_;
  const LogDefect planted_;
  FrameGatherer gatherer_;

  std::vector<LiveSegment> segments_;  // Oldest first; the last is written to.
  SegmentId next_segment_{1};
  FrameCursor cursor_;
  LogPosition appended_end_;
  LogPosition watermark_;  // flushed_.position, but held back while a copy is not in effect.
  FlushedPoint flushed_;
  bool unflushed_ = false;
  bool copying_ = false;
  bool sealed_ = false;
  Version version_max_;      // Of all records written.
  Version ceiling_leased_;   // To ride in the next frame.
  Version ceiling_written_;  // In a frame that is written.
  LocalLogStats stats_;
};

}  // namespace partita
