#include "engine/io/sim_file_system.h"

#include <cstdio>
#include <cstdlib>
#include <set>
#include <utility>

#include "engine/base/assert.h"
#include "engine/io/sim_mapping.h"

namespace partita {

namespace {

constexpr uint64_t kLockRetryNs = 10'000'000;

// Counts operations of a file in flight, so that closing it under one shows (F62).
class InFlight {
 public:
  explicit InFlight(uint32_t& count) : count_(count) { ++count_; }
  ~InFlight() { --count_; }
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;

 private:
  uint32_t& count_;
};

class SimFile : public File {
 public:
  SimFile(SimDevice& device, std::string_view path, std::shared_ptr<SimInode> inode, OpenMode mode, FileIo io)
      : device_(device), path_(path), name_(path), inode_(std::move(inode)), mode_(mode), io_(io) {
    inode_->AddUser();
  }
  ~SimFile() override {
    PARTITA_ASSERT(in_flight_ == 0);
    inode_->RemoveUser();
  }

  const std::string& path() const override { return name_; }
  Task<Result<size_t>> ReadAt(uint64_t offset, std::span<uint8_t> buffer) override;
  Task<Status> ReadBatch(std::span<const FileRead> reads) override;
  Task<Status> WriteAt(uint64_t offset, std::span<const uint8_t> bytes) override;
  Task<Status> Flush() override;
  Task<Status> WriteAndFlush(uint64_t offset, std::span<const uint8_t> bytes) override;
  Task<Result<uint64_t>> Size() override;
  Task<Status> Truncate(uint64_t size) override;
  Task<Status> Allocate(uint64_t size) override;
  Task<Status> DropCache() override;

 private:
  void RequireAligned(const char* what, uint64_t offset, const void* address, size_t size) const;
  void RequireWritable(const char* what) const;
  void PrepareWrite(SimOperation& operation, uint64_t offset, std::span<const uint8_t> bytes) const;

  SimDevice& device_;
  const std::string_view path_;  // Interned in the disk.
  const std::string name_;
  const std::shared_ptr<SimInode> inode_;
  const OpenMode mode_;
  const FileIo io_;
  uint32_t in_flight_ = 0;
};

void SimFile::RequireAligned(const char* what, uint64_t offset, const void* address, size_t size) const {
  if (io_ != FileIo::kDirect) return;
  const uint64_t all = offset | size | reinterpret_cast<uintptr_t>(address);
  if (all % kPageSize == 0) return;
  std::fprintf(stderr,
               "simulator: direct %s of '%s' is not aligned to %zu: offset %llu, size %zu, address %p\n",
               what, name_.c_str(), kPageSize, static_cast<unsigned long long>(offset), size, address);
  std::fflush(stderr);
  std::abort();
}

void SimFile::RequireWritable(const char* what) const {
  if (mode_ != OpenMode::kRead) return;
  std::fprintf(stderr, "simulator: %s of '%s', which is open for reading only\n", what, name_.c_str());
  std::fflush(stderr);
  std::abort();
}

Task<Result<size_t>> SimFile::ReadAt(uint64_t offset, std::span<uint8_t> buffer) {
  RequireAligned("read", offset, buffer.data(), buffer.size());
  const InFlight in_flight(in_flight_);
  const FileRead read{offset, buffer};
  SimOperation operation(SimOp::kRead, path_);
  operation.direct = io_ == FileIo::kDirect;
  operation.inode = inode_.get();
  operation.offset = offset;
  operation.size = buffer.size();
  operation.reads = {&read, 1};
  co_await device_.Do(operation);
  if (!operation.status.ok()) co_return std::move(operation.status);
  co_return static_cast<size_t>(operation.value);
}

Task<Status> SimFile::ReadBatch(std::span<const FileRead> reads) {
  if (reads.empty()) co_return Status();
  const InFlight in_flight(in_flight_);
  SimOperation operation(SimOp::kRead, path_);
  operation.direct = io_ == FileIo::kDirect;
  operation.exact = true;
  operation.inode = inode_.get();
  operation.offset = reads[0].offset;
  operation.reads = reads;
  for (const FileRead& read : reads) {
    RequireAligned("read", read.offset, read.buffer.data(), read.buffer.size());
    operation.size += read.buffer.size();
  }
  co_await device_.Do(operation);
  co_return std::move(operation.status);
}

void SimFile::PrepareWrite(SimOperation& operation, uint64_t offset, std::span<const uint8_t> bytes) const {
  RequireWritable("write");
  RequireAligned("write", offset, bytes.data(), bytes.size());
  operation.direct = io_ == FileIo::kDirect;
  operation.inode = inode_.get();
  operation.offset = offset;
  operation.size = bytes.size();
  operation.bytes = bytes;
}

Task<Status> SimFile::WriteAt(uint64_t offset, std::span<const uint8_t> bytes) {
  const InFlight in_flight(in_flight_);
  SimOperation operation(SimOp::kWrite, path_);
  PrepareWrite(operation, offset, bytes);
  co_await device_.Do(operation);
  co_return std::move(operation.status);
}

Task<Status> SimFile::Flush() {
  const InFlight in_flight(in_flight_);
  SimOperation operation(SimOp::kFlush, path_);
  operation.inode = inode_.get();
  co_await device_.Do(operation);
  co_return std::move(operation.status);
}

Task<Status> SimFile::WriteAndFlush(uint64_t offset, std::span<const uint8_t> bytes) {
  const InFlight in_flight(in_flight_);
  SimOperation write(SimOp::kWrite, path_);
  PrepareWrite(write, offset, bytes);
  co_await device_.Do(write);
  if (!write.status.ok()) co_return std::move(write.status);  // F61: the link is broken.
  SimOperation flush(SimOp::kFlush, path_);
  flush.inode = inode_.get();
  co_await device_.Do(flush);
  co_return std::move(flush.status);
}

Task<Result<uint64_t>> SimFile::Size() {
  const InFlight in_flight(in_flight_);
  SimOperation operation(SimOp::kSize, path_);
  operation.inode = inode_.get();
  co_await device_.Do(operation);
  if (!operation.status.ok()) co_return std::move(operation.status);
  co_return operation.value;
}

Task<Status> SimFile::Truncate(uint64_t size) {
  RequireWritable("truncation");
  const InFlight in_flight(in_flight_);
  SimOperation operation(SimOp::kTruncate, path_);
  operation.inode = inode_.get();
  operation.size = size;
  co_await device_.Do(operation);
  co_return std::move(operation.status);
}

Task<Status> SimFile::Allocate(uint64_t size) {
  RequireWritable("allocation");
  const InFlight in_flight(in_flight_);
  SimOperation operation(SimOp::kAllocate, path_);
  operation.inode = inode_.get();
  operation.size = size;
  co_await device_.Do(operation);
  co_return std::move(operation.status);
}

Task<Status> SimFile::DropCache() {
  const InFlight in_flight(in_flight_);
  SimOperation operation(SimOp::kDropCache, path_);
  operation.inode = inode_.get();
  co_await device_.Do(operation);
  co_return std::move(operation.status);
}

// Held by one process at a time; a process that crashed has lost it already.
class SimLock : public DirectoryLock {
 public:
  SimLock(SimDevice& device, uint32_t& holder) : device_(device), holder_(holder) {}
  ~SimLock() override {
    if (!device_.crashed() && holder_ == device_.process()) holder_ = 0;
  }

 private:
  SimDevice& device_;
  uint32_t& holder_;
};

// Held by any number of readers, each of which is told apart by its process only.
class SimSharedLock : public DirectoryLock {
 public:
  SimSharedLock(SimDevice& device, std::multiset<uint32_t>& readers) : device_(device), readers_(readers) {}
  ~SimSharedLock() override {
    if (device_.crashed()) return;
    const auto mine = readers_.find(device_.process());
    if (mine != readers_.end()) readers_.erase(mine);
  }

 private:
  SimDevice& device_;
  std::multiset<uint32_t>& readers_;
};

}  // namespace

std::string_view SimFileSystem::Intern(std::string_view path) {
  bool sound = path.find("//") == std::string_view::npos && !path.starts_with('/') && !path.ends_with('/');
  for (std::string_view rest = path; sound && !rest.empty();) {
    const size_t slash = rest.find('/');
    const std::string_view part = rest.substr(0, slash);
    sound = part != "." && part != "..";
    rest = slash == std::string_view::npos ? std::string_view() : rest.substr(slash + 1);
  }
  if (!sound) {
    std::fprintf(stderr, "simulator: '%.*s' is no path\n", static_cast<int>(path.size()), path.data());
    std::fflush(stderr);
    std::abort();
  }
  return device_.disk().Intern(path);
}

Task<Result<std::unique_ptr<File>>> SimFileSystem::Open(std::string_view path, OpenMode mode, FileIo io) {
  return OpenInterned(Intern(path), mode, io);
}

Task<Result<std::unique_ptr<File>>> SimFileSystem::OpenInterned(std::string_view path, OpenMode mode,
                                                                FileIo io) {
  SimOperation operation(SimOp::kOpen, path);
  operation.mode = mode;
  co_await device_.Do(operation);
  if (!operation.status.ok()) co_return std::move(operation.status);
  std::unique_ptr<File> file =
      std::make_unique<SimFile>(device_, path, std::move(operation.opened), mode, io);
  co_return std::move(file);
}

Task<Status> SimFileSystem::Plain(SimOp op, std::string_view path, std::string_view to) {
  SimOperation operation(op, path);
  operation.to = to;
  co_await device_.Do(operation);
  co_return std::move(operation.status);
}

Task<Status> SimFileSystem::Remove(std::string_view path) { return Plain(SimOp::kRemove, Intern(path), {}); }

Task<Status> SimFileSystem::Rename(std::string_view from, std::string_view to) {
  return Plain(SimOp::kRename, Intern(from), Intern(to));
}

Task<Status> SimFileSystem::Share(FileSystem& from, std::string_view from_path, std::string_view path) {
  const auto* other = dynamic_cast<SimFileSystem*>(&from);
  if (other == nullptr || &other->device_ != &device_) return FileSystem::Share(from, from_path, path);
  return ShareInterned(Intern(from_path), Intern(path));
}

// The name first, which goes again when the flush fails.
Task<Status> SimFileSystem::ShareInterned(std::string_view from, std::string_view to) {
  SimOperation link(SimOp::kLink, from);
  link.to = to;
  co_await device_.Do(link);
  if (!link.status.ok()) co_return std::move(link.status);
  SimOperation flush(SimOp::kFlush, to);
  flush.inode = link.opened.get();
  co_await device_.Do(flush);
  if (!flush.status.ok()) (void)co_await Plain(SimOp::kRemove, to, {});
  co_return std::move(flush.status);
}

Task<Status> SimFileSystem::CreateDirectory(std::string_view path) {
  return Plain(SimOp::kCreateDirectory, Intern(path), {});
}

Task<Status> SimFileSystem::FlushDirectory(std::string_view path) {
  return Plain(SimOp::kFlushDirectory, Intern(path), {});
}

Task<Result<std::vector<DirectoryEntry>>> SimFileSystem::List(std::string_view path) {
  return ListInterned(Intern(path));
}

Task<Result<std::vector<DirectoryEntry>>> SimFileSystem::ListInterned(std::string_view path) {
  SimOperation operation(SimOp::kList, path);
  co_await device_.Do(operation);
  if (!operation.status.ok()) co_return std::move(operation.status);
  co_return std::move(operation.entries);
}

Task<Result<bool>> SimFileSystem::Exists(std::string_view path) { return ExistsInterned(Intern(path)); }

Task<Result<bool>> SimFileSystem::ExistsInterned(std::string_view path) {
  SimOperation operation(SimOp::kExists, path);
  co_await device_.Do(operation);
  if (!operation.status.ok()) co_return std::move(operation.status);
  co_return operation.value != 0;
}

Result<std::unique_ptr<SharedMapping>> SimFileSystem::Map(std::string_view path, uint64_t size) {
  const std::string_view name = Intern(path);
  const std::string where = "map '" + std::string(path) + "': ";
  if (device_.crashed()) return Status::IoError(where + "crashed");
  std::shared_ptr<SimInode> inode = device_.disk().names_.Find(name);
  if (inode == nullptr) return Status::NotFound(where + "no such file");
  if (inode->size() < size) return Status::IoError(where + "the file is shorter than the mapping");
  std::unique_ptr<SharedMapping> mapping =
      std::make_unique<SimMapping>(device_, name, std::move(inode), size);
  return mapping;
}

// kRead is the lock of readers.
Task<Status> SimFileSystem::TakeLock(OpenMode mode, uint64_t wait_ns) {
  const uint64_t deadline_ns = device_.scheduler().now_ns() + wait_ns;
  while (true) {
    SimOperation operation(SimOp::kLock, {});
    operation.mode = mode;
    co_await device_.Do(operation);
    if (!operation.status.ok()) co_return std::move(operation.status);
    if (operation.value == 0) co_return Status();
    // A blocked caller outside the scheduler cannot wait: no virtual time would pass.
    if (Executor::Current() == nullptr || device_.scheduler().now_ns() >= deadline_ns) {
      co_return Status::Locked("the store's directory is locked by process " +
                               std::to_string(operation.value));
    }
    co_await SleepFor(kLockRetryNs);
  }
}

Task<Result<std::unique_ptr<DirectoryLock>>> SimFileSystem::Lock(uint64_t wait_ns) {
  PARTITA_CO_TRY(co_await TakeLock(OpenMode::kReadWrite, wait_ns));
  std::unique_ptr<DirectoryLock> lock = std::make_unique<SimLock>(device_, device_.disk().lock_holder_);
  co_return std::move(lock);
}

Task<Result<std::unique_ptr<DirectoryLock>>> SimFileSystem::LockShared(uint64_t wait_ns) {
  PARTITA_CO_TRY(co_await TakeLock(OpenMode::kRead, wait_ns));
  std::unique_ptr<DirectoryLock> lock =
      std::make_unique<SimSharedLock>(device_, device_.disk().lock_readers_);
  co_return std::move(lock);
}

Task<Result<uint64_t>> SimFileSystem::FreeBytes() {
  SimOperation operation(SimOp::kFreeBytes, {});
  co_await device_.Do(operation);
  if (!operation.status.ok()) co_return std::move(operation.status);
  co_return operation.value;
}

}  // namespace partita
