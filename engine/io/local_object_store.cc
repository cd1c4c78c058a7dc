#include "engine/io/local_object_store.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "engine/base/aligned_buffer.h"
#include "engine/base/overlapped.h"
#include "engine/base/site.h"

namespace partita {

namespace {

constexpr size_t kIdDigitsMin = 12;
constexpr std::string_view kSuffix = ".sst";
// Of each of two, one filled while the other is written; and of the only one where nobody else writes.
constexpr size_t kWriteBehindSize = 256 * 1024;
constexpr size_t kWriteBufferSize = 1 << 20;

// Some pages of a file being written, or written.
class WritePiece final : public Overlapped {
 public:
  WritePiece(File& file, uint64_t offset, AlignedBuffer buffer, size_t size)
      : file_(file), offset_(offset), buffer_(std::move(buffer)), size_(size) {}

  // REQUIRES: Arrive has returned.
  AlignedBuffer TakeBuffer() { return std::move(buffer_); }

 private:
  Task<Status> Perform() override {
    co_return co_await file_.WriteAt(offset_, std::span<const uint8_t>(buffer_.data(), size_));
  }

  File& file_;
  const uint64_t offset_;
  AlignedBuffer buffer_;
  const size_t size_;
};

// The flush of a file whose every page is written, and of its name. Data and length come first; only after
// both may anything refer to it (F25).
class FlushPiece final : public Overlapped {
 public:
  FlushPiece(FileSystem& files, File& file) : files_(files), file_(file) {}

 private:
  Task<Status> Perform() override {
    if (SiteIsOn("object.flush")) PARTITA_CO_TRY(co_await file_.Flush());
    if (SiteIsOn("object.dirflush")) PARTITA_CO_TRY(co_await files_.FlushDirectory(kObjectDirectory));
    co_return Status();
  }

  FileSystem& files_;
  File& file_;
};

class LocalObjectWriter final : public ObjectWriter {
 public:
  LocalObjectWriter(FileSystem& files, Executor* helpers, WriteHold* hold, std::string path,
                    std::unique_ptr<File> file, AlignedBuffer buffer)
      : files_(files),
        helpers_(helpers),
        hold_(hold),
        path_(std::move(path)),
        file_(std::move(file)),
        buffer_(std::move(buffer)) {}

  Task<Status> Append(std::string_view bytes) override {
    PARTITA_CO_TRY(failed_);
    PARTITA_ASSERT(flush_ == nullptr);
    while (!bytes.empty()) {
      const size_t count = std::min(bytes.size(), buffer_.size() - buffered_);
      std::memcpy(buffer_.data() + buffered_, bytes.data(), count);
      buffered_ += count;
      bytes.remove_prefix(count);
      if (buffered_ == buffer_.size()) PARTITA_CO_TRY(co_await WriteBuffered());
    }
    co_return Status();
  }

  Task<Status> BeginFinish() override {
    PARTITA_CO_TRY(co_await WriteRest());
    if (helpers_ != nullptr) Overlapped::Start(writes_, *helpers_, flush_);
    co_return Status();
  }

  Task<Status> Finish() override {
    if (flush_ == nullptr) PARTITA_CO_TRY(co_await WriteRest());
    failed_ = co_await flush_->Arrive();
    co_await writes_.Join();
    PARTITA_CO_TRY(failed_);
    file_.reset();
    co_return Status();
  }

  Task<void> Abandon() override {
    (void)co_await EndWrite();
    flush_.reset();  // One that has not begun will not.
    co_await writes_.Join();
    file_.reset();
    // Should it fail, recovery removes the file, to which nothing refers (F37).
    (void)co_await files_.Remove(path_);
  }

  uint64_t size() const override { return flush_ != nullptr ? finished_size_ : written_ + buffered_; }

 private:
  // After it all of the object is in its file, and flush_ is what remains.
  Task<Status> WriteRest() {
    PARTITA_ASSERT(file_ != nullptr && flush_ == nullptr);
    PARTITA_CO_TRY(failed_);
    const uint64_t length = size();
    if (buffered_ > 0) PARTITA_CO_TRY(co_await WriteBuffered());
    PARTITA_CO_TRY(co_await EndWrite());
    if (written_ != length) PARTITA_CO_TRY(co_await file_->Truncate(length));
    buffer_ = AlignedBuffer();
    spare_ = AlignedBuffer();
    finished_size_ = length;
    if (hold_ != nullptr) co_await hold_->Pass();
    flush_ = std::make_shared<FlushPiece>(files_, *file_);
    co_return Status();
  }

  // Begins to write the buffer, its last page padded with zeros, once what was begun before is written.
  Task<Status> WriteBuffered() {
    const size_t padded = AlignUp(buffered_, kPageSize);
    std::memset(buffer_.data() + buffered_, 0, padded - buffered_);
    PARTITA_CO_TRY(co_await EndWrite());
    if (hold_ != nullptr) co_await hold_->Pass();
    AlignedBuffer next = std::move(spare_);
    if (next.data() == nullptr && helpers_ != nullptr) next = AlignedBuffer(kWriteBehindSize);
    writing_ = std::make_shared<WritePiece>(*file_, written_, std::move(buffer_), padded);
    written_ += padded;
    buffered_ = 0;
    if (next.data() != nullptr) {
      buffer_ = std::move(next);
      Overlapped::Start(writes_, *helpers_, writing_);
      co_return Status();
    }
    // Nobody to write it, or no memory to fill meanwhile.
    Status written = co_await EndWrite();
    buffer_ = std::move(spare_);
    co_return written;
  }

  // Ends when nothing is being written; what that came to.
  Task<Status> EndWrite() {
    if (writing_ == nullptr) co_return Status();
    Status written = co_await writing_->Arrive();
    spare_ = writing_->TakeBuffer();
    writing_.reset();
    if (!written.ok()) failed_ = written;
    co_return written;
  }

  FileSystem& files_;
  Executor* const helpers_;  // Null: it writes by itself.
  WriteHold* const hold_;    // May be null.
  const std::string path_;
  std::unique_ptr<File> file_;  // Null once finished or abandoned.
  AlignedBuffer buffer_;
  size_t buffered_ = 0;   // Bytes of buffer_ not written yet.
  uint64_t written_ = 0;  // Whole pages on disk, or on their way.
  std::shared_ptr<WritePiece> writing_;
  AlignedBuffer spare_;                // While nothing is being written; may have no data.
  std::shared_ptr<FlushPiece> flush_;  // Null until everything is written.
  TaskGroup writes_;                   // And that flush.
  Status failed_;  // A write or the flush did: what came behind it must not pass for all there is (F20).
  uint64_t finished_size_ = 0;
};

bool IsAligned(const ObjectRead& read) {
  return read.offset % kPageSize == 0 && read.buffer.size() % kPageSize == 0 &&
         reinterpret_cast<uintptr_t>(read.buffer.data()) % kPageSize == 0;
}

class LocalObjectReader final : public ObjectReader {
 public:
  LocalObjectReader(ObjectId id, uint64_t size, std::unique_ptr<File> file)
      : id_(id), size_(size), file_(std::move(file)) {}

  ObjectId id() const override { return id_; }
  uint64_t size() const override { return size_; }
  const std::string& name() const override { return file_->path(); }

  Task<Status> Read(std::span<const ObjectRead> reads, ReadCaching caching) override {
    for (const ObjectRead& read : reads) PARTITA_CO_TRY(CheckBounds(read));
    // Direct I/O passes the page cache; where the file system refused it, this makes room for the
    // medium's own bytes (F52).
    if (caching == ReadCaching::kPastCaches) PARTITA_CO_TRY(co_await file_->DropCache());
    if (reads.size() == 1 && IsAligned(reads[0])) {  // The common case allocates nothing.
      const FileRead read{reads[0].offset, reads[0].buffer};
      co_return co_await file_->ReadBatch(std::span(&read, 1));
    }
    co_return co_await ReadMixed(reads);
  }

 private:
  // A read that is not aligned, and the pages around it.
  struct Bounce {
    const ObjectRead* read;
    AlignedBuffer pages;
    uint64_t offset;  // Of the pages.
    void CopyOut() const {
      std::memcpy(read->buffer.data(), pages.data() + (read->offset - offset), read->buffer.size());
    }
  };

  Status CheckBounds(const ObjectRead& read) const {
    if (read.offset <= size_ && read.buffer.size() <= size_ - read.offset) return Status();
    return Status::IoError("read of " + std::to_string(read.buffer.size()) + " bytes at offset " +
                           std::to_string(read.offset) + " of \"" + name() + "\", which has " +
                           std::to_string(size_) + " bytes");
  }

  // Its frame is its own: that of the common case is small.
  [[gnu::noinline]] Task<Status> ReadMixed(std::span<const ObjectRead> reads) {
    std::vector<FileRead> batch;
    std::vector<Bounce> bounces;
    std::vector<size_t> tails;  // Bounces whose pages go past the end of the file.
    batch.reserve(reads.size());
    bounces.reserve(reads.size());
    for (const ObjectRead& read : reads) {
      if (read.buffer.empty()) continue;
      if (IsAligned(read)) {
        batch.push_back({read.offset, read.buffer});
        continue;
      }
      const uint64_t begin = AlignDown(read.offset, kPageSize);
      const uint64_t end = AlignUp(read.offset + read.buffer.size(), kPageSize);
      AlignedBuffer pages(end - begin);
      if (pages.data() == nullptr) {
        co_return Status::ResourceExhausted("no memory to read " + std::to_string(end - begin) +
                                            " bytes of \"" + name() + "\"");
      }
      bounces.push_back({&read, std::move(pages), begin});
      if (end > size_) {
        tails.push_back(bounces.size() - 1);
      } else {
        batch.push_back({begin, bounces.back().pages.span()});
      }
    }
    if (!batch.empty()) PARTITA_CO_TRY(co_await file_->ReadBatch(batch));
    for (size_t tail : tails) PARTITA_CO_TRY(co_await ReadTail(bounces[tail]));
    for (const Bounce& bounce : bounces) bounce.CopyOut();
    co_return Status();
  }

  Task<Status> ReadTail(Bounce& bounce) {
    PARTITA_CO_ASSIGN(const size_t count, co_await file_->ReadAt(bounce.offset, bounce.pages.span()));
    const uint64_t end = bounce.read->offset + bounce.read->buffer.size();
    if (bounce.offset + count >= end) co_return Status();
    co_return Status::IoError("\"" + name() + "\" ends at offset " + std::to_string(bounce.offset + count) +
                              ", it had " + std::to_string(size_) + " bytes when it was opened");
  }

  const ObjectId id_;
  const uint64_t size_;
  const std::unique_ptr<File> file_;
};

}  // namespace

std::string ObjectPath(ObjectId id) {
  std::string digits = std::to_string(id.value);
  if (digits.size() < kIdDigitsMin) digits.insert(0, kIdDigitsMin - digits.size(), '0');
  return std::string(kObjectDirectory) + "/" + digits + std::string(kSuffix);
}

std::optional<ObjectId> ParseObjectName(std::string_view name) {
  if (!name.ends_with(kSuffix)) return std::nullopt;
  const std::string_view digits = name.substr(0, name.size() - kSuffix.size());
  if (digits.size() < kIdDigitsMin) return std::nullopt;
  if (digits.size() > kIdDigitsMin && digits[0] == '0') return std::nullopt;
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return ObjectId(value);
}

Task<Result<std::unique_ptr<LocalObjectStore>>> LocalObjectStore::Open(FileSystem& files,
                                                                       IfMissing if_missing,
                                                                       Executor* helpers, WriteHold* hold) {
  if (if_missing == IfMissing::kCreate) {
    PARTITA_CO_TRY(co_await files.CreateDirectory(kObjectDirectory));
    if (SiteIsOn("object.directory.dirflush")) PARTITA_CO_TRY(co_await files.FlushDirectory(""));
  } else {
    PARTITA_CO_TRY(co_await files.List(kObjectDirectory));
  }
  co_return std::unique_ptr<LocalObjectStore>(new LocalObjectStore(files, helpers, hold));
}

Task<Result<std::unique_ptr<ObjectWriter>>> LocalObjectStore::Create(ObjectId id) {
  AlignedBuffer buffer(helpers_ != nullptr ? kWriteBehindSize : kWriteBufferSize);
  if (buffer.data() == nullptr)
    co_return Status::ResourceExhausted("no memory for a table file's write buffer");
  std::string path = ObjectPath(id);
  PARTITA_CO_ASSIGN(std::unique_ptr<File> file,
                    co_await files_.Open(path, OpenMode::kCreate, FileIo::kDirect));
  co_return std::unique_ptr<ObjectWriter>(std::make_unique<LocalObjectWriter>(
      files_, helpers_, hold_, std::move(path), std::move(file), std::move(buffer)));
}

Task<Result<std::shared_ptr<ObjectReader>>> LocalObjectStore::Open(ObjectId id) {
  const std::string path = ObjectPath(id);
  PARTITA_CO_ASSIGN(std::unique_ptr<File> file, co_await files_.Open(path, OpenMode::kRead, FileIo::kDirect));
  PARTITA_CO_ASSIGN(const uint64_t size, co_await file->Size());
  co_return std::shared_ptr<ObjectReader>(std::make_shared<LocalObjectReader>(id, size, std::move(file)));
}

Task<Status> LocalObjectStore::Remove(ObjectId id) {
  const std::string path = ObjectPath(id);
  Status removed = co_await files_.Remove(path);
  co_return removed.code() == Code::kNotFound ? Status() : removed;
}

Task<Result<std::vector<ObjectInfo>>> LocalObjectStore::List() {
  PARTITA_CO_ASSIGN(const std::vector<DirectoryEntry> entries, co_await files_.List(kObjectDirectory));
  std::vector<ObjectInfo> objects;
  for (const DirectoryEntry& entry : entries) {
    const std::optional<ObjectId> id = ParseObjectName(entry.name);
    if (id.has_value()) objects.push_back({*id, entry.size});
  }
  co_return objects;
}

Task<Result<std::vector<std::string>>> LocalObjectStore::ListForeign() {
  PARTITA_CO_ASSIGN(const std::vector<DirectoryEntry> entries, co_await files_.List(kObjectDirectory));
  std::vector<std::string> names;
  for (const DirectoryEntry& entry : entries) {
    if (!ParseObjectName(entry.name).has_value()) names.push_back(entry.name);
  }
  co_return names;
}

}  // namespace partita
