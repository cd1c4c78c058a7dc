#include "wal/log_tail.h"

#include <algorithm>
#include <cstring>

#include "engine/base/aligned_buffer.h"
#include "engine/base/assert.h"
#include "engine/base/site.h"

namespace partita {
namespace {

constexpr uint64_t kTailSizeMax = 1ull << 30;
constexpr uint64_t kZerosAtOnce = 1u << 20;
// So many times a half's size is hashed for what turns out to be no record: values may look like headers.
constexpr uint64_t kHashedInVainMax = 4;

// The file appears under its name only once it is whole, so its size says where the halves are.
Task<Status> CreateTail(FileSystem& files, std::string directory, std::string path, uint64_t size) {
  const std::string unfinished = path + ".new";
  PARTITA_CO_ASSIGN(std::unique_ptr<File> file,
                    co_await files.Open(unfinished, OpenMode::kCreateOrOpen, FileIo::kBuffered));
  PARTITA_CO_TRY(co_await file->Truncate(0));
  AlignedBuffer zeros(std::min(size, kZerosAtOnce));
  if (zeros.data() == nullptr) co_return Status::ResourceExhausted("no memory for " + path);
  std::memset(zeros.data(), 0, zeros.size());
  for (uint64_t offset = 0; offset < size; offset += zeros.size()) {
    const size_t step = std::min<uint64_t>(zeros.size(), size - offset);
    PARTITA_CO_TRY(co_await file->WriteAt(offset, zeros.span().first(step)));
  }
  if (SiteIsOn("wal.tail.flush")) PARTITA_CO_TRY(co_await file->Flush());
  file.reset();
  PARTITA_CO_TRY(co_await files.Rename(unfinished, path));
  if (!SiteIsOn("wal.tail.dirflush")) co_return Status();
  co_return co_await files.FlushDirectory(directory);
}

Status TailMissing(const std::string& path) {
  return Status::Corruption(path +
                            ": the log's tail is missing; what was acknowledged at level process "
                            "may stand there alone (F35)");
}

Status CheckSize(const std::string& path, uint64_t size) {
  if (size > 0 && size <= kTailSizeMax && size % (2 * kPageSize) == 0) return Status();
  return Status::Corruption(path + ": a log tail of " + std::to_string(size) +
                            " bytes; expected a multiple of 8192 (F35)");
}

Task<Result<AlignedBuffer>> ReadWhole(File& file, uint64_t size) {
  AlignedBuffer bytes(size);
  if (bytes.data() == nullptr) co_return Status::ResourceExhausted("no memory for " + file.path());
  PARTITA_CO_ASSIGN(const size_t count, co_await file.ReadAt(0, bytes.span()));
  if (count != size) co_return Status::IoError(file.path() + ": the file became shorter while it was read");
  co_return bytes;
}

// What a file held when it was read; not shared with anyone.
class TailCopy final : public SharedMapping {
 public:
  explicit TailCopy(AlignedBuffer bytes) : bytes_(std::move(bytes)) {}
  std::span<uint8_t> bytes() override { return bytes_.span(); }
  Status Stored(uint64_t, uint64_t) override { return Status(); }

 private:
  AlignedBuffer bytes_;
};

}  // namespace

Task<Result<std::unique_ptr<LogTail>>> LogTail::OpenForReading(FileSystem& files, std::string directory,
                                                               const LogIdentity& owner, bool must_exist) {
  const LogIdentity owner_copy = owner;
  const std::string path = directory + "/tail";
  AlignedBuffer bytes(2 * kPageSize);
  if (bytes.data() == nullptr) co_return Status::ResourceExhausted("no memory for " + path);
  std::memset(bytes.data(), 0, bytes.size());
  PARTITA_CO_ASSIGN(const bool exists, co_await files.Exists(path));
  if (!exists && must_exist) co_return TailMissing(path);
  if (exists) {
    PARTITA_CO_ASSIGN(std::unique_ptr<File> file,
                      co_await files.Open(path, OpenMode::kRead, FileIo::kBuffered));
    PARTITA_CO_ASSIGN(const uint64_t actual, co_await file->Size());
    PARTITA_CO_TRY(CheckSize(path, actual));
    if (SiteIsOn("wal.tail_glimpse.flush")) PARTITA_CO_TRY(co_await file->Flush());  // F29.
    PARTITA_CO_ASSIGN(bytes, co_await ReadWhole(*file, actual));
  }
  std::unique_ptr<SharedMapping> copy = std::make_unique<TailCopy>(std::move(bytes));
  co_return std::unique_ptr<LogTail>(new LogTail(owner_copy, Incarnation{}, std::move(copy)));
}

Task<Result<std::unique_ptr<LogTail>>> LogTail::Open(FileSystem& files, std::string directory,
                                                     const LogIdentity& owner, Incarnation incarnation,
                                                     uint64_t size, bool must_exist) {
  const LogIdentity owner_copy = owner;
  const std::string path = directory + "/tail";
  PARTITA_CO_ASSIGN(const bool exists, co_await files.Exists(path));
  if (!exists && must_exist) co_return TailMissing(path);
  if (!exists) PARTITA_CO_TRY(co_await CreateTail(files, directory, path, size));
  PARTITA_CO_ASSIGN(std::unique_ptr<File> file,
                    co_await files.Open(path, OpenMode::kReadWrite, FileIo::kBuffered));
  PARTITA_CO_ASSIGN(const uint64_t actual, co_await file->Size());
  PARTITA_CO_TRY(CheckSize(path, actual));
  // Read by a call, which can fail, before anything looks at the mapping: a page of it that cannot be read
  // ends the process.
  PARTITA_CO_TRY((co_await ReadWhole(*file, actual)).status());
  PARTITA_CO_ASSIGN(std::unique_ptr<SharedMapping> mapping, files.Map(path, actual));
  // F29: what a dead process left is trusted from here on.
  if (SiteIsOn("wal.tail_recovery.flush")) {
    AlignedBuffer left(actual);
    if (left.data() == nullptr) co_return Status::ResourceExhausted("no memory for " + path);
    std::memcpy(left.data(), mapping->bytes().data(), actual);
    Status flushed = co_await file->Flush();
    if (!flushed.ok()) {
      // The kernel now takes the pages for clean and may drop them, and with them the only copy of what was
      // acknowledged at level process (F3). Stored anew they are as good as they were.
      std::memcpy(mapping->bytes().data(), left.data(), actual);
      (void)mapping->Stored(0, actual);
      co_return flushed;
    }
  }
  co_return std::unique_ptr<LogTail>(new LogTail(owner_copy, incarnation, std::move(mapping)));
}

LogTail::LogTail(const LogIdentity& owner, Incarnation incarnation, std::unique_ptr<SharedMapping> mapping)
    : owner_(owner),
      incarnation_(incarnation),
      mapping_(std::move(mapping)),
      bytes_(mapping_->bytes()),
      half_size_(bytes_.size() / 2) {}

std::map<LogPosition, TailRecord> LogTail::ReadAll(Incarnation incarnation) const {
  std::map<LogPosition, TailRecord> records;
  for (const uint64_t begin : {uint64_t{0}, half_size_}) {
    const std::string_view half(reinterpret_cast<const char*>(bytes_.data()) + begin, half_size_);
    uint64_t offset = 0;
    uint64_t left_to_hash = kHashedInVainMax * half_size_;
    TailRecord record;
    while (offset < half_size_) {
      const std::string_view rest = half.substr(offset);
      if (DecodeTailRecord(owner_, incarnation, begin + offset, rest, &record)) {
        records.insert_or_assign(record.position, record);
        offset += TailRecordSize(record.payload.size());
        continue;
      }
      const uint64_t hashed = TailContentAt(rest);
      if (hashed > left_to_hash) break;
      left_to_hash -= hashed;
      offset = NextTailRecord(half, offset);
    }
  }
  return records;
}

Incarnation LogTail::NewestIncarnation() const {
  Incarnation newest;
  for (const uint64_t offset : {uint64_t{0}, half_size_}) {
    const std::string_view rest(reinterpret_cast<const char*>(bytes_.data()) + offset, half_size_);
    const std::optional<Incarnation> first = IncarnationOfTailRecord(owner_, offset, rest);
    if (first) newest = std::max(newest, *first);
  }
  return newest;
}

bool LogTail::Fits(std::span<const LogRecord> records, LogPosition durable_end) const {
  uint64_t used = halves_[current_].used;
  bool may_switch = halves_[1 - current_].last <= durable_end;
  for (const LogRecord& record : records) {
    const uint64_t size = TailRecordSize(record.payload.size());
    if (used + size > half_size_) {
      if (!may_switch || size > half_size_) return false;
      may_switch = false;
      used = 0;
    }
    used += size;
  }
  return true;
}

Status LogTail::Append(std::span<const LogRecord> records, LogPosition durable_end) {
  while (!records.empty() && records.front().position <= end_) records = records.subspan(1);
  if (!Fits(records, durable_end)) {
    return Status::Busy("the log's tail is full until a flush frees it");
  }
  for (const LogRecord& record : records) PARTITA_TRY(Write(record));
  return Status();
}

Status LogTail::Write(const LogRecord& record) {
  PARTITA_ASSERT(record.position > end_);
  const uint64_t size = TailRecordSize(record.payload.size());
  if (halves_[current_].used + size > half_size_) {
    current_ = 1 - current_;
    halves_[current_] = Half{};
  }
  Half& half = halves_[current_];
  const uint64_t offset = current_ * half_size_ + half.used;
  const TailRecord tail_record{record.position, record.version, record.payload};
  EncodeTailRecord(owner_, incarnation_, offset, tail_record, bytes_.subspan(offset, size));
  PARTITA_TRY(mapping_->Stored(offset, size));
  half.used += size;
  half.last = end_ = record.position;
  return Status();
}

}  // namespace partita
