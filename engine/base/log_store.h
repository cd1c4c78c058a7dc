#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "engine/base/ids.h"
#include "engine/base/result.h"
#include "engine/base/task.h"

namespace partita {

// Upper seam: one shard's log. The local one is in wal/.

// A record to append. `payload` must stay alive and unchanged until the call that takes it has
// ended. Positions are dense: each record's is one above the one before it.
struct LogRecord {
  LogPosition position;
  Version version;  // The log keeps the highest it ever saw, for the clock (F18).
  std::string_view payload;
};

// What Recover found at the end of the log (F31 to F33), for the start-up report.
struct LogRecovery {
  LogPosition first;    // First position delivered; 0 when none.
  LogPosition last;     // Last position delivered; the next record gets last + 1.
  Version version_max;  // Highest version or leased ceiling that the log knows of (F18).
  uint64_t records = 0;
  uint64_t torn_bytes = 0;  // Cut at the end because no proof exists beyond (F33),
  LogPosition torn_behind;  // and the last position in front of them.
  // Of the log's tail what lies behind a position that is nowhere, and so is given up, and the last of it. A
  // loss of power may take what was in front of it, but so may damage, which nothing tells from it.
  uint64_t records_stranded = 0;
  LogPosition stranded_to;
  bool clean = false;  // It was closed, by Seal(closing), and all that it then held is there.
};

// Called for each record in position order. `payload` is valid during the call only.
using LogReplaySink = std::function<Status(const LogRecord& record)>;

// Two independent tokens guard it (DESIGN 2): Append, Flush, LeaseCeiling, Trim and Seal are called
// by the holder of the flush token; AppendTail by the holder of the tail token, possibly at the
// same time. durable_end and kernel_end may be read by any thread.
class LogStore {
 public:
  virtual ~LogStore() = default;

  // Reads back every record at or above `from`, in order, then opens a new segment and a new
  // incarnation after them; nothing is ever appended after an unclean end. Flushes what it trusts
  // first (F29). kCorruption, naming file and offset, when bytes with proof beyond them are bad.
  // Called once, before anything else.
  virtual Task<Result<LogRecovery>> Recover(LogPosition from, LogReplaySink sink) = 0;

  // Writes records to the segments, in order. When it returns ok the kernel or the device holds
  // them; they are durable only after Flush. After an error the segment is poisoned (F20) and the
  // caller must go on as F21 says: MoveToNewSegment with everything not known flushed.
  virtual Task<Status> Append(std::span<const LogRecord> records) = 0;

  // Makes everything appended durable, and raises durable_end.
  virtual Task<Status> Flush() = 0;

  // Append and Flush in one, the fastest way this device has (linked write + fsync, or pwrite +
  // fdatasync on the caller's thread).
  virtual Task<Status> AppendAndFlush(std::span<const LogRecord> records) = 0;

  // Copies records to the tail that the kernel owns (level `process`): survives any death of the
  // process. Records come in position order without gaps; those already in segments may be left
  // out. Never waits for a flush of the segments. A plain function: a few microseconds.
  // kBusy when the tail is full until a Flush frees it.
  virtual Status AppendTail(std::span<const LogRecord> records) = 0;

  // Leaves the poisoned segment: writes `records` (every one above durable_end, in order) to a new
  // file and flushes data and name. Ok: durable_end covers them. Error: still poisoned.
  virtual Task<Status> MoveToNewSegment(std::span<const LogRecord> records) = 0;

  // Promises durably that no version above `ceiling` was exposed without a record (F18): rides
  // in the next frame that is flushed. Durable once durable_ceiling() >= ceiling.
  virtual void LeaseCeiling(Version ceiling) = 0;
  virtual Version durable_ceiling() const = 0;

  // Records below `position` are needed no more; whole segments are recycled.
  virtual Task<Status> Trim(LogPosition position) = 0;

  // Writes the idle seal (F32): the durable watermark catches up with the last group, so that a
  // bad record before it can be told from a torn tail. At close, `closing` says nothing follows.
  virtual Task<Status> Seal(bool closing) = 0;

  // Everything up to here is flushed / is held by the kernel (segments or tail).
  virtual LogPosition durable_end() const = 0;
  virtual LogPosition kernel_end() const = 0;

  // Bytes of log that recovery would have to read now.
  virtual uint64_t live_bytes() const = 0;

  // Rises each time the log goes on in a new file, which is durable by then. Kept by the owner and
  // given to the next life, it shows that the newest file was lost: older ones end well without it
  // (F31, F35). Any thread.
  virtual uint64_t newest_segment() const = 0;

  // True when another segment will be needed and none is ready. Any thread.
  virtual bool needs_prepare() const = 0;
  // Makes one ready if none is, so that no commit has to. Beside everything else, on any thread.
  virtual Task<Status> PrepareNext() = 0;

  // True when it keeps files that only its busiest times need. Any thread.
  virtual bool has_surplus() const { return false; }
  // Removes those. Beside everything else, on any thread.
  virtual Task<Status> RemoveSurplus() { co_return Status(); }

  // Waits for I/O in flight and closes the files, without a seal. Must end before destruction.
  virtual Task<Status> Close() = 0;
};

}  // namespace partita
