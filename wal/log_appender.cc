#include "wal/log_appender.h"

#include <algorithm>

#include "engine/base/assert.h"
#include "engine/base/site.h"

namespace partita {
namespace {

LogPosition After(LogPosition position) { return LogPosition{position.value + 1}; }

}  // namespace

LogAppender::LogAppender(SegmentPool& pool, const LocalLogOptions& options)
    : pool_(pool),
      owner_{options.store, options.shard},
      incarnation_(options.incarnation),
      segment_size_(options.segment_size),
      planted_(options.planted),
      gatherer_(owner_, options.frame_size_max) {}

void LogAppender::Adopt(AppenderStart start) {
  PARTITA_ASSERT(segments_.empty());
  segments_ = std::move(start.segments);
  next_segment_ = SegmentId{start.segment_max.value + 1};
  appended_end_ = watermark_ = start.end;
  version_max_ = start.version_max;
  ceiling_leased_ = ceiling_written_ = start.version_ceiling;
  flushed_ = {start.end, start.last_seal, std::max(start.version_max, start.version_ceiling)};
}

FrameStamp LogAppender::Stamp(uint16_t last_flags) const {
  return {.segment = segments_.back().id,
          .incarnation = incarnation_,
          .durable_position = planted_ == LogDefect::kStuckWatermark ? LogPosition{} : watermark_,
          .version_max = version_max_,
          .version_ceiling = ceiling_leased_,
          .last_flags = last_flags};
}

Task<Status> LogAppender::Write(std::span<const LogRecord> records, WriteEnd end) {
  return WriteFrames(records, end, /*last_flags=*/0);
}

Task<Status> LogAppender::WriteFrames(std::span<const LogRecord> records, WriteEnd end, uint16_t last_flags) {
  RecordCursor at;
  while (at.index < records.size()) {
    PARTITA_ASSERT(records[at.index].position == After(appended_end_));
    if (cursor_.offset + kPageSize > segment_size_) PARTITA_CO_TRY(co_await Rotate(at.byte > 0));
    const FrameStamp stamp = Stamp(last_flags);
    PARTITA_CO_ASSIGN(GatheredFrames gathered, gatherer_.Gather(records, at, cursor_, segment_size_, stamp));
    const LogPosition ended{appended_end_.value + (gathered.records.index - at.index)};
    at = gathered.records;
    const bool last = at.index == records.size();
    PARTITA_CO_TRY(co_await WriteGathered(gathered, ended, last ? end : WriteEnd::kLeave));
  }
  co_return Status();
}

// What was gathered counts as written only once the write has ended well.
Task<Status> LogAppender::WriteGathered(GatheredFrames gathered, LogPosition appended_end, WriteEnd end) {
  const Version ceiling = ceiling_leased_;
  unflushed_ = true;
  sealed_ = false;
  if (end == WriteEnd::kFlush) {
    PARTITA_CO_TRY(co_await WriteAndFlush(cursor_.offset, gathered.bytes));
  } else {
    PARTITA_CO_TRY(co_await current_file().WriteAt(cursor_.offset, gathered.bytes));
  }
  cursor_ = gathered.frames;
  segments_.back().used = cursor_.offset;
  appended_end_ = appended_end;
  version_max_ = gathered.version_max;
  ceiling_written_ = ceiling;
  stats_.bytes_written += gathered.bytes.size();
  if (end == WriteEnd::kFlush) MarkFlushed();
  co_return Status();
}

Task<Status> LogAppender::Flush() {
  if (ceiling_leased_ > std::max(ceiling_written_, flushed_.version)) co_return co_await WriteMark(0);
  if (!unflushed_) co_return Status();
  PARTITA_CO_TRY(co_await FlushCurrent());
  MarkFlushed();
  co_return Status();
}

Task<Status> LogAppender::WriteMark(uint16_t flags) {
  if (cursor_.offset + kPageSize > segment_size_) PARTITA_CO_TRY(co_await Rotate(/*continues=*/false));
  const FrameStamp stamp = Stamp(flags);
  const bool covers_all = appended_end_ == watermark_;
  PARTITA_CO_ASSIGN(GatheredFrames mark, gatherer_.Mark(After(appended_end_), cursor_, stamp));
  PARTITA_CO_TRY(co_await WriteGathered(mark, appended_end_, WriteEnd::kFlush));
  sealed_ = covers_all && (flags & kFrameSeal) != 0;
  co_return Status();
}

// The full segment is flushed first, only then the header of the next one written: so a segment
// that has a successor holds all its records (F34). And the header is flushed before any frame
// behind it counts (F2).
Task<Status> LogAppender::Rotate(bool continues) {
  if (unflushed_) {
    if (SiteIsOn("wal.rotate.flush")) PARTITA_CO_TRY(co_await FlushCurrent());
    MarkFlushed();
  }
  uint16_t flags = continues ? kSegmentContinues : 0;
  if (copying_) flags |= kSegmentAwaitsEffect;
  co_return co_await BeginSegment(flags, After(appended_end_), cursor_.previous_seal);
}

Task<Status> LogAppender::BeginSegment(uint16_t flags, LogPosition first_position, uint64_t previous_seal) {
  AlignedBuffer page(kSegmentHeaderSize);
  if (page.data() == nullptr) co_return Status::ResourceExhausted("no memory for a log segment header");
  PARTITA_CO_ASSIGN(std::unique_ptr<File> file, co_await pool_.Acquire());
  const SegmentHeader header{
      .flags = flags,
      .segment = next_segment_,
      .incarnation = incarnation_,
      .segment_size = segment_size_,
      .first_position = first_position,
      .version_ceiling = std::max(ceiling_leased_, version_max_),
      .previous_segment = segments_.empty() ? SegmentId{} : segments_.back().id,
      .previous_seal = previous_seal,
  };
  next_segment_.value++;  // An id is never tried twice: what a failed attempt left is unknown.
  const uint64_t seal = EncodeSegmentHeader(owner_, header, page.span());
  Status written = SiteIsOn("wal.segment.flush") ? co_await file->WriteAndFlush(0, page.span())
                                                 : co_await file->WriteAt(0, page.span());
  if (!written.ok()) {
    co_await pool_.Discard(std::move(file));
    co_return written;
  }
  segments_.push_back(
      {.file = std::move(file), .id = header.segment, .begin = header.begin(), .used = kSegmentHeaderSize});
  cursor_ = {.offset = kSegmentHeaderSize, .previous_seal = seal};
  ceiling_written_ = std::max(ceiling_written_, ceiling_leased_);
  flushed_.seal = seal;
  flushed_.version = std::max(flushed_.version, header.version_ceiling);
  sealed_ = false;
  stats_.segments_started++;
  stats_.bytes_written += kSegmentHeaderSize;
  co_return Status();
}

Task<Status> LogAppender::CopyToNewSegment(std::span<const LogRecord> records) {
  PARTITA_ASSERT(records.empty() || records.front().position == After(flushed_.position));
  const size_t segments_before = segments_.size();
  const FlushedPoint flushed_before = flushed_;
  const LogPosition appended_before = appended_end_;
  copying_ = !records.empty();
  Status status = co_await CopyRecords(records);
  copying_ = false;
  if (!status.ok()) {
    while (segments_.size() > segments_before) {
      std::unique_ptr<File> file = std::move(segments_.back().file);
      segments_.pop_back();
      co_await pool_.Discard(std::move(file));
    }
    flushed_ = flushed_before;
    appended_end_ = appended_before;
    co_return status;
  }
  watermark_ = flushed_.position;
  co_return Status();
}

Task<Status> LogAppender::CopyRecords(std::span<const LogRecord> records) {
  appended_end_ = flushed_.position;
  unflushed_ = false;
  const uint16_t flags = records.empty() ? 0 : kSegmentAwaitsEffect;
  PARTITA_CO_TRY(co_await BeginSegment(flags, After(flushed_.position), flushed_.seal));
  co_return co_await WriteFrames(records, WriteEnd::kFlush, kFrameTakesEffect);
}

Task<void> LogAppender::Trim(LogPosition position) {
  size_t count = 0;
  while (count + 1 < segments_.size()) {
    // A record that goes on in the next segment begins in this one.
    if (!segments_[count + 1].begin.HoldsBeginOf(position)) break;
    count++;
  }
  for (size_t i = 0; i < count; ++i) {
    LiveSegment segment = std::move(segments_.front());
    segments_.erase(segments_.begin());
    if (segment.reusable) {
      pool_.Release(std::move(segment.file));
    } else {
      co_await pool_.Discard(std::move(segment.file));
    }
  }
}

uint64_t LogAppender::live_bytes() const {
  uint64_t bytes = 0;
  for (const LiveSegment& segment : segments_) bytes += segment.used;
  return bytes;
}

Task<Status> LogAppender::FlushCurrent() {
  if (planted_ == LogDefect::kSkipFlush || !SiteIsOn("wal.appended.flush")) co_return Status();
  co_return co_await current_file().Flush();
}

Task<Status> LogAppender::WriteAndFlush(uint64_t offset, std::span<const uint8_t> bytes) {
  if (planted_ == LogDefect::kSkipFlush || !SiteIsOn("wal.group.flush")) {
    co_return co_await current_file().WriteAt(offset, bytes);
  }
  co_return co_await current_file().WriteAndFlush(offset, bytes);
}

void LogAppender::MarkFlushed() {
  unflushed_ = false;
  flushed_ = {appended_end_, cursor_.previous_seal,
              std::max({flushed_.version, version_max_, ceiling_written_})};
  if (!copying_) watermark_ = flushed_.position;
}

}  // namespace partita
