#include "engine/disk_reserve.h"

#include <algorithm>

#include "engine/base/aligned_buffer.h"
#include "engine/base/site.h"

namespace partita {

namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

// Beside the keys and values of a memtable a table file has indexes, filters and the ends of its blocks. They
// are less than what the memtable itself takes beside them; this is for the deletes that come after.
constexpr uint64_t kTableShare = 8;
// Of the catalog and the manifests of all shards, each written whole beside the old one: a table file is some
// 150 bytes there, a range's reference to one 8, a table of the catalog some 70. So this is for 50,000 files,
// or 1.5 TiB, or for 20,000 tables with 30 references each.
constexpr uint64_t kManifestBytes = 16 * kMiB;
// For who takes deletes on, when all memtables were flushed at the cost of the rest: the keys of 100,000
// rows.
constexpr uint64_t kDeleteBytes = 8 * kMiB;

// Well within the 10 s of F56, and nothing for a machine to do.
constexpr uint64_t kPollNanos = 250'000'000;
constexpr uint32_t kFreeEveryPolls = 8;

// Of what is free so much is left when not all can be had, and of what is wanted so little is not worth it.
constexpr uint64_t kRestShare = 32;

constexpr size_t kNoiseChunk = kMiB;

}  // namespace

// A segment for each shard: one has room in its current segment or needs another, and once that is full the
// older ones are free, as memtables are frozen with the segment while the reserve is low (Shard::IsFull).
uint64_t ReservePlan::bytes() const {
  return AlignUp(memtable_bytes + memtable_bytes / kTableShare + shards * log_segment_bytes + kManifestBytes +
                     kDeleteBytes,
                 kPageSize);
}

// A file that is written: goes on with the reserve where it finds no space.
class DiskReserve::SharingFile final : public File {
 public:
  SharingFile(DiskReserve& reserve, std::unique_ptr<File> file) : reserve_(reserve), file_(std::move(file)) {}

  const std::string& path() const override { return file_->path(); }
  Task<Result<size_t>> ReadAt(uint64_t offset, std::span<uint8_t> buffer) override {
    return file_->ReadAt(offset, buffer);
  }
  Task<Status> ReadBatch(std::span<const FileRead> reads) override { return file_->ReadBatch(reads); }
  Task<Result<uint64_t>> Size() override { return file_->Size(); }
  Task<Status> DropCache() override { return file_->DropCache(); }
  Task<Status> Allocate(uint64_t size) override { return file_->Allocate(size); }

  Task<Status> WriteAt(uint64_t offset, std::span<const uint8_t> bytes) override {
    const uint64_t seen = reserve_.times_given();
    Status written = co_await file_->WriteAt(offset, bytes);
    if (written.code() != Code::kNoSpace) co_return written;
    const bool again = co_await reserve_.GiveBack(seen);
    if (!again) co_return written;
    co_return co_await file_->WriteAt(offset, bytes);
  }

  Task<Status> Truncate(uint64_t size) override {
    const uint64_t seen = reserve_.times_given();
    Status cut = co_await file_->Truncate(size);
    if (cut.code() != Code::kNoSpace) co_return cut;
    const bool again = co_await reserve_.GiveBack(seen);
    if (!again) co_return cut;
    co_return co_await file_->Truncate(size);
  }

  Task<Status> Flush() override {
    const uint64_t seen = reserve_.times_given();
    Status flushed = co_await file_->Flush();
    if (flushed.code() == Code::kNoSpace) (void)co_await reserve_.GiveBack(seen);
    co_return flushed;
  }

  Task<Status> WriteAndFlush(uint64_t offset, std::span<const uint8_t> bytes) override {
    const uint64_t seen = reserve_.times_given();
    Status written = co_await file_->WriteAndFlush(offset, bytes);
    if (written.code() == Code::kNoSpace) (void)co_await reserve_.GiveBack(seen);
    co_return written;
  }

 private:
  DiskReserve& reserve_;
  const std::unique_ptr<File> file_;
};

DiskReserve::~DiskReserve() { PARTITA_ASSERT(tasks_.running() == 0); }

// ---- The files.

Task<Result<std::unique_ptr<File>>> DiskReserve::Open(std::string_view path, OpenMode mode, FileIo io) {
  if (mode == OpenMode::kRead) return files_.Open(path, mode, io);
  return OpenSharing(std::string(path), mode, io);
}

Task<Result<std::unique_ptr<File>>> DiskReserve::OpenSharing(std::string path, OpenMode mode, FileIo io) {
  const uint64_t seen = times_given();
  auto opened = co_await files_.Open(path, mode, io);
  if (opened.code() == Code::kNoSpace) {
    const bool again = co_await GiveBack(seen);
    if (again) opened = co_await files_.Open(path, mode, io);
  }
  if (!opened.ok()) co_return opened.status();
  std::unique_ptr<File> file = std::make_unique<SharingFile>(*this, std::move(opened).value());
  co_return std::move(file);
}

// Names take space, too, and on some file systems even their removal does.
template <typename Operation>
Task<Status> DiskReserve::OnName(Operation operation) {
  const uint64_t seen = times_given();
  Status done = co_await operation();
  if (done.code() != Code::kNoSpace) co_return done;
  const bool again = co_await GiveBack(seen);
  if (!again) co_return done;
  co_return co_await operation();
}

Task<Status> DiskReserve::Remove(std::string_view path) {
  return OnName([this, name = std::string(path)] { return files_.Remove(name); });
}

Task<Status> DiskReserve::Rename(std::string_view from, std::string_view to) {
  return OnName([this, old_name = std::string(from), new_name = std::string(to)] {
    return files_.Rename(old_name, new_name);
  });
}

Task<Status> DiskReserve::CreateDirectory(std::string_view path) {
  return OnName([this, name = std::string(path)] { return files_.CreateDirectory(name); });
}

// ---- The reserve.

Task<void> DiskReserve::Adopt() {
  AsyncMutex::Guard turn = co_await turn_.Lock();
  auto opened = co_await files_.Open(kReserveName, OpenMode::kReadWrite, FileIo::kBuffered);
  if (!opened.ok()) co_return;
  file_ = std::move(opened).value();
  const Result<uint64_t> size = co_await file_->Size();
  if (size.ok()) held_.store(*size);
}

Task<void> DiskReserve::Take(uint64_t bytes) {
  AsyncMutex::Guard turn = co_await turn_.Lock();
  wanted_.store(bytes);
  Status taken = co_await TakeNow();
  if (!taken.ok()) BecomeLow(taken);
}

Task<bool> DiskReserve::GiveBack(uint64_t seen) {
  AsyncMutex::Guard turn = co_await turn_.Lock();
  if (times_given() != seen) co_return true;
  if (file_ == nullptr || held_.load() == 0) co_return false;
  if (!plant_keeping_) {
    Status cut = co_await file_->Truncate(0);
    if (!cut.ok()) co_return false;
  }
  held_.store(0);
  times_given_.fetch_add(1, std::memory_order_release);
  // While the store is being opened, Take has the last word.
  if (wanted_.load() > 0) BecomeLow(Status());
  co_return true;
}

// Asks for the space that is missing before it takes any: an attempt that fails at the end has meanwhile
// taken from flushes what they need. Where the room is unknown it tries.
Task<Status> DiskReserve::TakeNow() {
  const uint64_t wanted = wanted_.load();
  const uint64_t held = held_.load();
  uint64_t bytes = wanted;
  Status all;
  if (wanted > held) {
    const Result<uint64_t> room = co_await files_.FreeBytes();
    if (room.ok() && *room < wanted - held) {
      all = Status::NoSpace(std::to_string((held + *room) / kMiB) + " MiB are there");
      // Not quite all: the file system needs some for itself.
      bytes = AlignDown(held + *room - *room / kRestShare, kPageSize);
      if (bytes < held + wanted / kRestShare) co_return all;
    }
  }
  if (file_ == nullptr) {
    PARTITA_CO_ASSIGN(file_, co_await files_.Open(kReserveName, OpenMode::kCreateOrOpen, FileIo::kBuffered));
  }
  Status taken = co_await SetAside(bytes);
  if (!taken.ok()) {
    // What was had of it goes, as nobody would know of it. Who found no space meanwhile tries again.
    Status cut = co_await file_->Truncate(held);
    times_given_.fetch_add(1, std::memory_order_release);
    co_return cut.ok() ? taken : cut;
  }
  held_.store(bytes);
  co_return all;
}

Task<Status> DiskReserve::SetAside(uint64_t bytes) {
  const bool has_its_size = held_.load() == bytes;
  if (held_.load() > bytes) PARTITA_CO_TRY(co_await file_->Truncate(bytes));
  // Also of a file that has its size: a crash may have left it without its space.
  Status had = co_await file_->Allocate(bytes);
  if (had.code() == Code::kUnsupported && has_its_size) co_return Status();
  if (had.code() == Code::kUnsupported) had = co_await WriteNoise(bytes);
  PARTITA_CO_TRY(std::move(had));
  if (has_its_size) co_return Status();
  if (SiteIsOn("reserve.flush")) PARTITA_CO_TRY(co_await file_->Flush());
  if (SiteIsOn("reserve.dirflush")) PARTITA_CO_TRY(co_await files_.FlushDirectory(""));
  co_return Status();
}

// Where space cannot be set aside it is written to, with what no file system can compress or leave out.
Task<Status> DiskReserve::WriteNoise(uint64_t bytes) {
  AlignedBuffer chunk(kNoiseChunk);
  if (chunk.data() == nullptr) co_return Status::ResourceExhausted("no memory to write the reserve");
  uint64_t word = runtime_.RandomU64() | 1;
  for (uint64_t offset = held_.load(); offset < bytes; offset += chunk.size()) {
    for (size_t i = 0; i < chunk.size(); ++i) {
      word ^= word << 13, word ^= word >> 7, word ^= word << 17;
      chunk.data()[i] = static_cast<uint8_t>(word >> 32);
    }
    const size_t size = std::min<uint64_t>(chunk.size(), bytes - offset);
    PARTITA_CO_TRY(co_await file_->WriteAt(offset, chunk.span().first(size)));
    co_await YieldIfDue();
  }
  co_return Status();
}

// ---- Being low.

void DiskReserve::BecomeLow(Status why) {
  {
    std::lock_guard lock(why_mutex_);
    why_ = std::move(why);
  }
  if (!low_.exchange(true, std::memory_order_release)) times_low_.fetch_add(1, std::memory_order_relaxed);
  if (closing_.load() || polling_.exchange(true)) return;
  tasks_.Spawn(runtime_.shard_executor(ShardId(0)), Poll(this));
}

Task<void> DiskReserve::Poll(DiskReserve* self) {
  uint64_t seen = 0;
  for (uint32_t polls = 1; !self->closing_.load(); ++polls) {
    co_await SleepFor(kPollNanos);
    AsyncMutex::Guard turn = co_await self->turn_.Lock();
    if (polls % kFreeEveryPolls == 0 && self->free_space_) self->free_space_();
    // Whoever it was given back to just now is still using it: the room there is is not to be had.
    const bool quiet = seen == self->times_given();
    seen = self->times_given();
    if (!quiet) continue;
    Status taken = co_await self->TakeNow();
    if (taken.ok()) {
      // Both under the turn: who gives it back next starts the poll anew.
      self->polling_.store(false);
      self->low_.store(false, std::memory_order_release);
      co_return;
    }
    std::lock_guard lock(self->why_mutex_);
    self->why_ = std::move(taken);
  }
  self->polling_.store(false);
}

Task<void> DiskReserve::StopCalling() {
  AsyncMutex::Guard turn = co_await turn_.Lock();
  free_space_ = nullptr;
}

Status DiskReserve::Refusal() const {
  std::lock_guard lock(why_mutex_);
  return Status::NoSpace(
      "the disk is full: only deletes, and drops of tables, are accepted until the store has " +
      std::to_string(wanted_.load() / kMiB) +
      " MiB in reserve again, then all writes, by themselves (F55); free space on the disk, or "
      "delete entities or tables, or open the store with less memory or fewer shards, which need less" +
      (why_.ok() ? "" : "; " + why_.message()));
}

Task<void> DiskReserve::Close() {
  closing_.store(true);
  co_await tasks_.Join();
  if (low()) (void)co_await TakeNow();
  file_.reset();
}

}  // namespace partita
