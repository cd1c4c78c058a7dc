#include "wal/segment_pool.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "engine/base/aligned_buffer.h"
#include "engine/base/executor.h"
#include "engine/base/site.h"
#include "wal/segment_format.h"

namespace partita {
namespace {

constexpr size_t kZeroChunk = 256u << 10;  // Touching more at once would hold up a worker.
constexpr std::string_view kSuffix = ".log";

std::string FilePath(const std::string& directory, uint64_t number) {
  char name[32];
  std::snprintf(name, sizeof name, "/%06llu", static_cast<unsigned long long>(number));
  return (directory + name).append(kSuffix);
}

}  // namespace

SegmentPool::SegmentPool(FileSystem& files, std::string directory, const LogIdentity& owner,
                         Incarnation incarnation, uint64_t segment_size)
    : files_(files),
      directory_(std::move(directory)),
      owner_(owner),
      incarnation_(incarnation),
      segment_size_(segment_size) {}

std::optional<uint64_t> SegmentPool::NumberOf(std::string_view name) {
  if (name.size() <= kSuffix.size() || !name.ends_with(kSuffix)) return std::nullopt;
  const std::string_view digits = name.substr(0, name.size() - kSuffix.size());
  if (digits.size() > 18) return std::nullopt;
  uint64_t number = 0;
  for (char c : digits) {
    if (c < '0' || c > '9') return std::nullopt;
    number = number * 10 + static_cast<uint64_t>(c - '0');
  }
  return number;
}

Task<Result<std::unique_ptr<File>>> SegmentPool::OpenFile(FileSystem& files, std::string path,
                                                          OpenMode mode) {
  auto direct = co_await files.Open(path, mode, FileIo::kDirect);
  if (direct.code() != Code::kUnsupported) co_return std::move(direct);
  // A failed direct open may have made the name.
  const OpenMode again = mode == OpenMode::kCreate ? OpenMode::kCreateOrOpen : mode;
  co_return co_await files.Open(path, again, FileIo::kBuffered);
}

void SegmentPool::SkipNumbers(uint64_t number) {
  std::lock_guard lock(mutex_);
  next_number_ = std::max(next_number_, number + 1);
}

std::unique_ptr<File> SegmentPool::TakeSpare() {
  std::lock_guard lock(mutex_);
  if (spares_.empty()) return nullptr;
  std::unique_ptr<File> file = std::move(spares_.back());
  spares_.pop_back();
  return file;
}

Task<Result<std::unique_ptr<File>>> SegmentPool::Acquire() {
  std::unique_ptr<File> spare = TakeSpare();
  if (spare != nullptr) co_return std::move(spare);
  const AsyncMutex::Guard making = co_await making_.Lock();
  spare = TakeSpare();
  if (spare != nullptr) co_return std::move(spare);
  co_return co_await Create();
}

Task<Status> SegmentPool::PrepareNext() {
  const AsyncMutex::Guard making = co_await making_.Lock();
  if (spares() > 0) co_return Status();
  PARTITA_CO_ASSIGN(std::unique_ptr<File> file, co_await Create());
  Release(std::move(file));
  co_return Status();
}

void SegmentPool::Release(std::unique_ptr<File> file) {
  std::lock_guard lock(mutex_);
  spares_.push_back(std::move(file));
}

Task<void> SegmentPool::Discard(std::unique_ptr<File> file) {
  const std::string path = file->path();
  file.reset();
  // When it cannot be removed it stays behind; the next recovery sees to it.
  (void)co_await files_.Remove(path);
}

Task<Status> SegmentPool::RemoveBeyond(uint32_t spares_max) {
  while (spares() > spares_max) {
    std::unique_ptr<File> spare = TakeSpare();
    if (spare == nullptr) break;
    const std::string path = spare->path();
    spare.reset();
    PARTITA_CO_TRY(co_await files_.Remove(path));
  }
  co_return Status();
}

size_t SegmentPool::spares() const {
  std::lock_guard lock(mutex_);
  return spares_.size();
}

uint64_t SegmentPool::created() const {
  std::lock_guard lock(mutex_);
  return created_;
}

void SegmentPool::Close() {
  std::lock_guard lock(mutex_);
  spares_.clear();
}

Task<Result<std::unique_ptr<File>>> SegmentPool::Create() {
  std::string path;
  {
    std::lock_guard lock(mutex_);
    path = FilePath(directory_, next_number_++);
  }
  auto opened = co_await OpenFile(files_, path, OpenMode::kCreate);
  if (!opened.ok()) co_return opened.status();
  std::unique_ptr<File> file = std::move(opened).value();
  Status status = co_await ZeroWrite(file.get());
  // The name must be durable before anything in the file counts (F25).
  if (status.ok() && SiteIsOn("wal.spare.dirflush")) status = co_await files_.FlushDirectory(directory_);
  if (!status.ok()) {
    co_await Discard(std::move(file));
    co_return status.WithContext("cannot prepare a log segment");
  }
  std::lock_guard lock(mutex_);
  created_++;
  co_return std::move(file);
}

Task<Status> SegmentPool::ZeroWrite(File* file) {
  AlignedBuffer zeros(std::min<uint64_t>(kZeroChunk, segment_size_));
  if (zeros.data() == nullptr) co_return Status::ResourceExhausted("no memory for " + file->path());
  std::memset(zeros.data(), 0, zeros.size());
  for (uint64_t offset = 0; offset < segment_size_; offset += zeros.size()) {
    const size_t size = std::min<uint64_t>(zeros.size(), segment_size_ - offset);
    PARTITA_CO_TRY(co_await file->WriteAt(offset, zeros.span().first(size)));
    co_await YieldIfDue();
  }
  if (SiteIsOn("wal.spare.flush")) PARTITA_CO_TRY(co_await file->Flush());
  // Only now, with all blocks written, does the file say that it is prepared.
  const SegmentHeader prepared{.incarnation = incarnation_, .segment_size = segment_size_};
  EncodeSegmentHeader(owner_, prepared, zeros.span().first(kSegmentHeaderSize));
  const std::span<const uint8_t> page = zeros.span().first(kSegmentHeaderSize);
  if (!SiteIsOn("wal.prepared.flush")) co_return co_await file->WriteAt(0, page);
  co_return co_await file->WriteAndFlush(0, page);
}

}  // namespace partita
