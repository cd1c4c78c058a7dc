#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "engine/base/log_store.h"
#include "engine/io/file.h"

namespace partita {

class LogAppender;
class LogTail;
class SegmentPool;

// For tests that prove the tests: a defect planted in the log must be caught by them. Each is chosen for one
// log, in any build, as simulations do; a site (engine/base/site.h) is left out by the environment, for all
// of one process of the preset `debug`.
enum class LogDefect : uint8_t {
  kNone,
  kSkipFlush,        // Acknowledges as flushed what only the device's cache holds.
  kStuckWatermark,   // Frames never say what was known flushed (F32).
  kEveryBadIsTorn,   // Cuts at any bad frame, whatever proves that more was there (F31).
  kValidityIsProof,  // Takes any later valid frame for a proof, flushed or not (F31).
  kForgetTail,       // Recovery ignores the tail (F3).
};

struct LocalLogOptions {
  StoreId store;
  ShardId shard;
  std::string directory;    // Of this log alone, e.g. "shard-0/log"; created when absent.
  Incarnation incarnation;  // Above that of every earlier open; the caller makes it durable first.

  uint64_t segment_size = 64u << 20;     // Bytes; a multiple of 4 KiB, at least 12 KiB.
  uint64_t tail_size = 8u << 20;         // Bytes, both halves; a multiple of 8 KiB.
  uint32_t frame_size_max = 256u << 10;  // Bytes; 4 KiB to kFrameSizeMax, a multiple of 4 KiB.
  // Recycled segments kept; further ones, up to as many as a Trim of late let go of, until RemoveSurplus.
  uint32_t spare_segments_max = 3;
  bool must_exist = false;  // An absent log is then damage, not a new one (F69).
  // Recover reads and changes nothing (F64); afterwards writes are refused, Seal does nothing. The file
  // system need not allow more than reading. A log that is absent, where it need not exist, is empty.
  bool read_only = false;
  // Called by Recover alone, now and then: how many bytes of segments are replayed, and how many there are to
  // be. Null: nobody is told.
  std::function<void(uint64_t done, uint64_t due)> replayed{};
  uint64_t newest_segment = 0;  // What LogStore::newest_segment said in an earlier life (F35).
  LogDefect planted = LogDefect::kNone;
};

// What the log did since it was opened.
struct LocalLogStats {
  uint64_t bytes_written = 0;  // Frames and headers.
  uint64_t segments_started = 0;
  uint64_t segments_created = 0;  // Zero-written; the others were recycled.
};

// The log of one shard in local files: the LogStore of one directory.
//
// How it works (formats: segment_format.h, frame_format.h, tail_format.h):
//  1. Records are gathered into frames, 4 KiB-aligned and sealed, written with direct I/O to the
//     current segment. A page that holds acknowledged records is never written again. Each frame
//     chains to the one before and says up to where the log was known flushed (F32).
//  2. A full segment is flushed before the next one's header is: so only the newest segment may
//     end in a torn frame. The next segment is a recycled file, or one zero-written ahead (F57). A shard
//     that lets go of many segments at once will need as many until it does so again: they are kept.
//  3. The *tail* is a mapped file for level `process`: records copied there survive the process.
//     Two halves, used in turn; one is used again once segments hold all its records flushed.
//  4. After a failed write or flush the segment is *poisoned*: nothing touches it again (F20).
//     MoveToNewSegment copies what is not known flushed to a new segment, which *takes effect*
//     with the last of these frames; until then recovery goes by the old one (F21).
//  5. Recovery joins segments and tail by position, decides what is torn and what is damage
//     (log_recoverer.h: the hard case), and starts a new segment under its own incarnation, which
//     voids whatever older files hold from its first position on (F33). Records found only in the
//     tail are copied there, as in 4.
//
// Threads: Recover, Append, Flush, AppendAndFlush, MoveToNewSegment, LeaseCeiling, Trim, Seal and
// Close belong to the holder of the flush token; AppendTail to the holder of the tail token.
// PrepareNext and RemoveSurplus may run beside them on any thread. Atomics, all monotonic:
//   durable_end_      written under the flush token (release); read by AppendTail, to see which
//                     half of the tail is free, and by anyone (acquire)
//   kernel_end_       raised under either token (compare-and-swap, release); read by anyone
//   durable_ceiling_, live_bytes_, newest_segment_   written under the flush token; read by anyone
// and prepare_due_, a hint: set under the flush token, cleared by PrepareNext, read by anyone.
//
// Fails: kCorruption naming file, offset and rule; kIoError, kNoSpace, kResourceExhausted from the
// file system; kUnsupported for files of a newer format; kClosed after Seal(closing) or Close.
class LocalLogStore final : public LogStore {
 public:
  // Opens the files, decides and changes nothing but creating the directory and the tail file.
  // `files` outlives the log.
  static Task<Result<std::unique_ptr<LocalLogStore>>> Open(FileSystem& files, LocalLogOptions options);
  ~LocalLogStore() override;

  // See LogStore. `from` = 0 means: whatever the log still holds. Otherwise a log that begins after
  // `from`, or ends before `from` - 1, is kCorruption (F34).
  Task<Result<LogRecovery>> Recover(LogPosition from, LogReplaySink sink) override;

  // Positions continue the last appended one. A payload above kLogRecordSizeMax is
  // kInvalidArgument and changes nothing.
  Task<Status> Append(std::span<const LogRecord> records) override;
  Task<Status> Flush() override;
  Task<Status> AppendAndFlush(std::span<const LogRecord> records) override;

  // All or nothing: on kBusy no record was copied. A record larger than half the tail is always
  // kBusy: it goes through Append. Records that the tail already has are skipped.
  Status AppendTail(std::span<const LogRecord> records) override;

  Task<Status> MoveToNewSegment(std::span<const LogRecord> records) override;
  void LeaseCeiling(Version ceiling) override;
  Version durable_ceiling() const override;
  // An error says that a spare file could not be removed; the log goes on.
  Task<Status> Trim(LogPosition position) override;
  // A close is clean (LogRecovery::clean) only when segments got all that the tail has.
  Task<Status> Seal(bool closing) override;
  LogPosition durable_end() const override;
  LogPosition kernel_end() const override;
  uint64_t live_bytes() const override;
  uint64_t newest_segment() const override;
  Task<Status> Close() override;

  // Sees to it that a segment lies ready, so that no commit has to create one. To be called in the
  // background when needs_prepare() says so: none is ready, and the newest segment begins to fill.
  // Without it the append that needs a segment makes it. REQUIRES: ended before Close.
  Task<Status> PrepareNext() override;
  bool needs_prepare() const override { return prepare_due_.load(std::memory_order_relaxed); }
  bool has_surplus() const override;
  Task<Status> RemoveSurplus() override;

  LocalLogStats stats() const;

 private:
  LocalLogStore(FileSystem& files, LocalLogOptions options);

  Task<Status> OpenFiles();
  Task<Status> OpenFilesForReading();
  Task<Result<LogRecovery>> RecoverForReading(LogPosition from, LogReplaySink sink);
  Task<Status> Write(std::span<const LogRecord> records, bool flush);
  Status CheckRecords(std::span<const LogRecord> records) const;
  Status Ready() const;
  Status Poison(Status status);
  void Publish();  // Makes what the appender knows visible in the atomics.
  void RaiseKernelEnd(LogPosition end);

  FileSystem& files_;
  const LocalLogOptions options_;
  bool absent_ = false;  // Read-only: there is no log.
  std::unique_ptr<SegmentPool> pool_;
  std::unique_ptr<LogAppender> appender_;
  std::unique_ptr<LogTail> tail_;

  enum class State : uint8_t { kOpened, kRunning, kSealed, kClosed };
  State state_ = State::kOpened;
  Status poison_;
  size_t keep_ = 1;  // Spares that Trim leaves; under the flush token.

  std::atomic<uint64_t> durable_end_{0};
  std::atomic<uint64_t> kernel_end_{0};
  std::atomic<uint64_t> durable_ceiling_{0};
  std::atomic<uint64_t> live_bytes_{0};
  std::atomic<uint64_t> newest_segment_{0};
  std::atomic<bool> prepare_due_{false};
};

}  // namespace partita
