#include "wal/local_log_store.h"

#include <algorithm>

#include "engine/base/assert.h"
#include "engine/base/site.h"
#include "wal/log_appender.h"
#include "wal/log_recoverer.h"
#include "wal/log_tail.h"
#include "wal/segment_pool.h"

namespace partita {
namespace {

// The next segment is made once this part of the newest is used: a log that gets little takes no second file
// (but where files are as small as in tests), and one at full speed has nearly a segment's time for it (64
// MiB: 0.7 s; making two at once took 1 s).
constexpr uint64_t kPrepareShare = 16;

Status CheckOptions(const LocalLogOptions& options) {
  const bool ok = !options.directory.empty() && options.incarnation.value > 0 &&
                  options.segment_size % kPageSize == 0 && options.segment_size >= 3 * kPageSize &&
                  options.tail_size % (2 * kPageSize) == 0 && options.tail_size > 0 &&
                  options.frame_size_max % kPageSize == 0 && options.frame_size_max >= kPageSize &&
                  options.frame_size_max <= kFrameSizeMax;
  return ok ? Status() : Status::InvalidArgument("a log option is out of bounds; see LocalLogOptions");
}

// Makes the directory, and each name on the way to it durable.
Task<Status> MakeDirectories(FileSystem& files, std::string directory) {
  size_t begin = 0;
  while (begin != std::string::npos) {
    const size_t slash = directory.find('/', begin);
    const std::string path = directory.substr(0, slash);
    const std::string parent = begin == 0 ? "" : directory.substr(0, begin - 1);
    PARTITA_CO_TRY(co_await files.CreateDirectory(path));
    if (SiteIsOn("wal.directory.dirflush")) PARTITA_CO_TRY(co_await files.FlushDirectory(parent));
    begin = slash == std::string::npos ? slash : slash + 1;
  }
  co_return Status();
}

Task<Result<std::vector<std::unique_ptr<File>>>> OpenSegments(FileSystem& files, std::string directory,
                                                              SegmentPool& pool) {
  PARTITA_CO_ASSIGN(const std::vector<DirectoryEntry> entries, co_await files.List(directory));
  std::vector<std::unique_ptr<File>> segments;
  for (const DirectoryEntry& entry : entries) {
    const std::optional<uint64_t> number = SegmentPool::NumberOf(entry.name);
    if (!number) continue;
    pool.SkipNumbers(*number);
    const std::string path = directory + "/" + entry.name;
    PARTITA_CO_ASSIGN(std::unique_ptr<File> file,
                      co_await SegmentPool::OpenFile(files, path, OpenMode::kReadWrite));
    segments.push_back(std::move(file));
  }
  co_return std::move(segments);
}

}  // namespace

LocalLogStore::LocalLogStore(FileSystem& files, LocalLogOptions options)
    : files_(files), options_(std::move(options)) {}

LocalLogStore::~LocalLogStore() { PARTITA_ASSERT(state_ == State::kClosed); }

Task<Result<std::unique_ptr<LocalLogStore>>> LocalLogStore::Open(FileSystem& files, LocalLogOptions options) {
  PARTITA_CO_TRY(CheckOptions(options));
  std::unique_ptr<LocalLogStore> log(new LocalLogStore(files, std::move(options)));
  Status opened = co_await log->OpenFiles();
  if (!opened.ok()) {
    log->state_ = State::kClosed;
    co_return opened;
  }
  co_return std::move(log);
}

Task<Status> LocalLogStore::OpenFilesForReading() {
  if (absent_) co_return Status();
  const LogIdentity owner{options_.store, options_.shard};
  PARTITA_CO_ASSIGN(tail_,
                    co_await LogTail::OpenForReading(files_, options_.directory, owner, options_.must_exist));
  co_return Status();
}

Task<Status> LocalLogStore::OpenFiles() {
  if (options_.must_exist || options_.read_only) {
    PARTITA_CO_ASSIGN(const bool exists, co_await files_.Exists(options_.directory));
    absent_ = !exists;
    if (absent_ && options_.must_exist)
      co_return Status::Corruption(options_.directory + ": the log's directory is missing (F35)");
  }
  if (options_.read_only) co_return co_await OpenFilesForReading();
  PARTITA_CO_TRY(co_await MakeDirectories(files_, options_.directory));
  const LogIdentity owner{options_.store, options_.shard};
  pool_ = std::make_unique<SegmentPool>(files_, options_.directory, owner, options_.incarnation,
                                        options_.segment_size);
  appender_ = std::make_unique<LogAppender>(*pool_, options_);
  PARTITA_CO_ASSIGN(tail_, co_await LogTail::Open(files_, options_.directory, owner, options_.incarnation,
                                                  options_.tail_size, options_.must_exist));
  co_return Status();
}

Task<Result<LogRecovery>> LocalLogStore::Recover(LogPosition from, LogReplaySink sink) {
  PARTITA_ASSERT(state_ == State::kOpened);
  poison_ = Status::Closed("the log was not recovered");  // Until it is.
  if (options_.read_only) co_return co_await RecoverForReading(from, std::move(sink));
  PARTITA_CO_ASSIGN(auto segments, co_await OpenSegments(files_, options_.directory, *pool_));
  LogRecoverer recoverer(files_, options_, *tail_);
  PARTITA_CO_ASSIGN(LogRecoverer::Outcome found,
                    co_await recoverer.Run(std::move(segments), from, std::move(sink)));
  for (auto& file : found.spares) pool_->Release(std::move(file));
  appender_->Adopt(std::move(found.start));
  // What only the tail holds becomes durable first, then all that older files hold from there on
  // is void (F29, F33): one step, when the new segment takes effect.
  std::vector<LogRecord> copies;
  for (const TailRecord& record : found.tail_records) {
    copies.push_back({record.position, record.version, record.payload});
  }
  PARTITA_CO_TRY(co_await appender_->CopyToNewSegment(copies));
  for (auto& file : found.late_spares) pool_->Release(std::move(file));
  for (auto& file : found.leftovers) co_await pool_->Discard(std::move(file));  // F37.
  (void)co_await pool_->RemoveBeyond(options_.spare_segments_max);              // Tried again at each Trim.
  Publish();
  RaiseKernelEnd(found.report.last);
  poison_ = Status();
  state_ = State::kRunning;
  co_return found.report;
}

Task<Result<LogRecovery>> LocalLogStore::RecoverForReading(LogPosition from, LogReplaySink sink) {
  poison_ = Status::Unsupported("the log was opened for reading only (F64)");
  state_ = State::kRunning;
  if (absent_) co_return LogRecovery();
  const LogIdentity owner{options_.store, options_.shard};
  SegmentPool unused(files_, options_.directory, owner, options_.incarnation, options_.segment_size);
  PARTITA_CO_ASSIGN(auto segments, co_await OpenSegments(files_, options_.directory, unused));
  LogRecoverer recoverer(files_, options_, *tail_);
  PARTITA_CO_ASSIGN(LogRecoverer::Outcome found,
                    co_await recoverer.Run(std::move(segments), from, std::move(sink)));
  durable_end_.store(found.report.last.value, std::memory_order_release);
  RaiseKernelEnd(found.report.last);
  durable_ceiling_.store(found.report.version_max.value, std::memory_order_release);
  if (!found.start.segments.empty()) {
    newest_segment_.store(found.start.segments.back().id.value, std::memory_order_release);
  }
  co_return found.report;
}

Status LocalLogStore::Ready() const {
  if (state_ == State::kSealed || state_ == State::kClosed) return Status::Closed("the log is closed");
  return poison_;
}

// Nothing touches the segment from here on; what of the failed group it holds is unknown (F20).
Status LocalLogStore::Poison(Status status) {
  PARTITA_ASSERT(!status.ok());
  poison_ = status.WithContext("the log's segment is poisoned (F20)");
  appender_->PoisonCurrent();
  Publish();  // A segment may have been finished before it failed.
  return poison_;
}

Status LocalLogStore::CheckRecords(std::span<const LogRecord> records) const {
  for (const LogRecord& record : records) {
    if (record.payload.size() > kLogRecordSizeMax) {
      return Status::InvalidArgument("a log record of " + std::to_string(record.payload.size()) +
                                     " bytes is above the limit of " + std::to_string(kLogRecordSizeMax));
    }
  }
  return Status();
}

Task<Status> LocalLogStore::Write(std::span<const LogRecord> records, bool flush) {
  PARTITA_CO_TRY(Ready());
  PARTITA_CO_TRY(CheckRecords(records));
  Status status;
  if (!records.empty()) {
    const auto end = flush ? LogAppender::WriteEnd::kFlush : LogAppender::WriteEnd::kLeave;
    status = co_await appender_->Write(records, end);
  }
  // Without records, or with a ceiling that no frame carries yet, there may still be something.
  if (status.ok() && flush) status = co_await appender_->Flush();
  if (!status.ok()) co_return Poison(status);
  RaiseKernelEnd(appender_->appended_end());  // First: who fills the tail takes it to be above durable_end().
  Publish();
  co_return Status();
}

Task<Status> LocalLogStore::Append(std::span<const LogRecord> records) { return Write(records, false); }

Task<Status> LocalLogStore::AppendAndFlush(std::span<const LogRecord> records) {
  return Write(records, true);
}

Task<Status> LocalLogStore::Flush() { return Write({}, true); }

Status LocalLogStore::AppendTail(std::span<const LogRecord> records) {
  if (records.empty()) return Status();
  // Those before them are in segments or in the tail, else there would be a hole.
  PARTITA_ASSERT(records.front().position.value <= kernel_end().value + 1);
  PARTITA_TRY(tail_->Append(records, durable_end()));
  RaiseKernelEnd(records.back().position);
  return Status();
}

Task<Status> LocalLogStore::MoveToNewSegment(std::span<const LogRecord> records) {
  if (state_ != State::kRunning) co_return Status::Closed("the log is closed");
  PARTITA_CO_TRY(CheckRecords(records));
  while (!records.empty() && records.front().position <= durable_end()) records = records.subspan(1);
  // A record that the old segment got, and some may have been told so, must not be left behind.
  PARTITA_ASSERT(appender_->appended_end() <= durable_end() ||
                 (!records.empty() && records.back().position >= appender_->appended_end()));
  Status status = co_await appender_->CopyToNewSegment(records);
  if (!status.ok()) co_return Poison(status);
  poison_ = Status();
  RaiseKernelEnd(appender_->appended_end());  // First: who fills the tail takes it to be above durable_end().
  Publish();
  co_return Status();
}

void LocalLogStore::LeaseCeiling(Version ceiling) { appender_->RaiseCeiling(ceiling); }

Version LocalLogStore::durable_ceiling() const {
  return Version{durable_ceiling_.load(std::memory_order_acquire)};
}

Task<Status> LocalLogStore::Trim(LogPosition position) {
  if (state_ == State::kOpened || state_ == State::kClosed) co_return Status::Closed("the log is closed");
  const size_t before = pool_->spares();
  co_await appender_->Trim(position);
  const size_t spares = pool_->spares();
  // One less each time, as it may take several to let go of what was needed at once.
  keep_ = std::max<size_t>(
      {options_.spare_segments_max, spares - std::min(before, spares), std::max<size_t>(keep_, 1) - 1});
  const Status status = co_await pool_->RemoveBeyond(static_cast<uint32_t>(keep_));
  Publish();
  co_return status;
}

Task<Status> LocalLogStore::Seal(bool closing) {
  if (options_.read_only) co_return Status();
  PARTITA_CO_TRY(Ready());
  Status status = co_await appender_->Flush();
  if (status.ok() && (closing || !appender_->sealed())) {
    status = co_await appender_->WriteMark(closing ? kFrameSeal | kFrameClosing : kFrameSeal);
  }
  if (!status.ok()) co_return Poison(status);
  Publish();
  if (closing) state_ = State::kSealed;
  co_return Status();
}

LogPosition LocalLogStore::durable_end() const {
  return LogPosition{durable_end_.load(std::memory_order_acquire)};
}

LogPosition LocalLogStore::kernel_end() const {
  return LogPosition{kernel_end_.load(std::memory_order_acquire)};
}

uint64_t LocalLogStore::live_bytes() const { return live_bytes_.load(std::memory_order_relaxed); }

uint64_t LocalLogStore::newest_segment() const { return newest_segment_.load(std::memory_order_acquire); }

Task<Status> LocalLogStore::Close() {
  // I/O in flight belongs to calls that have not ended; there is none of our own.
  state_ = State::kClosed;
  if (appender_ != nullptr) appender_->Close();
  if (pool_ != nullptr) pool_->Close();
  tail_.reset();
  co_return Status();
}

Task<Status> LocalLogStore::PrepareNext() {
  PARTITA_CO_TRY(co_await pool_->PrepareNext());
  prepare_due_.store(false, std::memory_order_relaxed);
  co_return Status();
}

bool LocalLogStore::has_surplus() const {
  return pool_ != nullptr && pool_->spares() > options_.spare_segments_max;
}

Task<Status> LocalLogStore::RemoveSurplus() { return pool_->RemoveBeyond(options_.spare_segments_max); }

LocalLogStats LocalLogStore::stats() const {
  LocalLogStats stats = appender_->stats();
  stats.segments_created = pool_->created();
  return stats;
}

void LocalLogStore::Publish() {
  PARTITA_ASSERT(appender_->flushed_end().value >= durable_end_.load(std::memory_order_relaxed));
  RaiseKernelEnd(appender_->flushed_end());  // First: whoever reads both finds it at or above durable_end.
  durable_end_.store(appender_->flushed_end().value, std::memory_order_release);
  durable_ceiling_.store(appender_->flushed_version().value, std::memory_order_release);
  live_bytes_.store(appender_->live_bytes(), std::memory_order_relaxed);
  newest_segment_.store(appender_->newest_segment().value, std::memory_order_release);
  const bool filling = appender_->newest_used() >= options_.segment_size / kPrepareShare;
  prepare_due_.store(filling && pool_->spares() == 0, std::memory_order_relaxed);
}

void LocalLogStore::RaiseKernelEnd(LogPosition end) {
  uint64_t known = kernel_end_.load(std::memory_order_relaxed);
  while (known < end.value &&
         !kernel_end_.compare_exchange_weak(known, end.value, std::memory_order_release)) {
  }
}

}  // namespace partita
