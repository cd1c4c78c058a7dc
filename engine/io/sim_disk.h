#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/base/result.h"
#include "engine/io/file.h"
#include "engine/io/sim_fault.h"
#include "engine/io/sim_inode.h"
#include "engine/io/sim_names.h"
#include "engine/io/sim_random.h"

namespace partita {

class SimRuntime;

// One completed operation, as the log of a SimDisk keeps it.
struct SimOperationRecord {
  uint64_t number = 0;   // In its process, in the order begun.
  uint32_t process = 0;  // The SimRuntime, from 1 on.
  SimOp op = SimOp::kRead;
  Code code = Code::kOk;
  uint64_t time_ns = 0;
  uint64_t offset = 0;
  uint64_t size = 0;
  std::string_view path;  // Lives as long as the disk.
  std::string ToString() const;
};

// The durable medium under simulated processes, with the kernel's caches in front of it: outlives
// any number of SimRuntimes.
//
// What it models (fault-model, "In the model"):
// - A write, direct or buffered, is volatile until a Flush of its file that began after the write
//   had ended. So are sizes. Names, renames and removals are volatile until FlushDirectory of
//   their directory; flushing a file does not keep its name.
// - CrashPower: of what is volatile any part survives: each 512-byte sector has any one of the
//   contents it had since the last flush; a write survives whole, torn or not at all; each size
//   and each name operation survives or not, in any order, but for what depends on one another
//   (operations on the same name or file stay in order, a rename is atomic, and what lies in a
//   directory that is gone is gone). Bytes of a grown file whose data did not survive are zero or
//   stale bytes from elsewhere.
// - CrashProcess: the kernel keeps everything; nothing becomes flushed by it (F29).
// - A failed flush (F20) drops some sectors from the device for good, while the page cache goes on
//   showing them until it evicts them: at DropCache, at a crash, or never.
//
// The functions here are for tests, outside of any operation; processes come in through a
// SimRuntime. Not thread-safe.
class SimDisk {
 public:
  explicit SimDisk(uint64_t seed);
  ~SimDisk();
  SimDisk(const SimDisk&) = delete;
  SimDisk& operator=(const SimDisk&) = delete;

  // Ends all processes on the disk (SimRuntime::CrashNow) and cuts the power.
  void CrashPower();
  // Ends all processes on the disk; the kernel lives on.
  void CrashProcess();

  // Files as processes see them. Paths as in FileSystem. What is written here is durable at once,
  // its name included (with all other unflushed names), and missing parent directories are made.
  Result<std::string> ReadFile(std::string_view path) const;
  void WriteFile(std::string_view path, std::string_view content);
  void WriteFileAt(std::string_view path, uint64_t offset, std::string_view bytes);
  void TruncateFile(std::string_view path, uint64_t size);  // REQUIRES: exists.
  bool RemoveFile(std::string_view path);
  void RenameFile(std::string_view from, std::string_view to);  // REQUIRES: `from` exists.
  // Bit rot: the bit flips in every version of the byte. REQUIRES: within the file.
  void FlipBit(std::string_view path, uint64_t offset, uint32_t bit);
  // Files that lack a write (SimEffect::kLost, kMisplaced), and files whose bytes something else changed
  // (kMisplaced, kRot, FlipBit), by the paths they had then. They may have been written anew since.
  using Paths = std::set<std::string, std::less<>>;
  const Paths& lacking() const { return lacking_; }
  const Paths& struck() const { return struck_; }
  std::vector<std::string> ListFiles(std::string_view path_prefix = "") const;  // Full paths, sorted.
  bool FileExists(std::string_view path) const;
  // Bytes written or truncated away but not yet flushed, in sectors, over all files.
  uint64_t UnflushedSectors() const;
  // Name operations not yet flushed.
  size_t UnflushedNames() const { return names_.pending(); }

  // A copy of everything, volatile state and chance included, as if the world forked. No process
  // may be on the disk.
  std::unique_ptr<SimDisk> Clone() const;
  // Draws what crashes do from `seed` from here on; so one run's clones can crash in many ways.
  void Reseed(uint64_t seed);

  // Space. Bytes count in whole 4 KiB pages once written, zeros too; holes are free. A file's space
  // is free once it has neither a name nor an open handle.
  void set_capacity(uint64_t bytes) { capacity_ = bytes; }
  uint64_t capacity() const { return capacity_; }
  uint64_t used_bytes() const { return pool_.allocated_pages() * kPageSize; }

  // The latest operations, oldest first (bounded), and counts of all by kind.
  std::vector<SimOperationRecord> operations() const;
  std::string DescribeOperations(size_t count_max = 64) const;
  uint64_t operation_count(SimOp op) const { return counts_[static_cast<size_t>(op)]; }

 private:
  friend class SimDevice;
  friend class SimRuntime;
  friend class SimFileSystem;

  static constexpr size_t kLogSize = 512;

  void Record(const SimOperationRecord& record);
  void NoteStruck(const SimInode* inode);
  std::string_view Intern(std::string_view path);
  std::shared_ptr<SimInode> NewInode();
  std::shared_ptr<SimInode> FindOrMake(std::string_view path);
  uint64_t free_bytes() const { return capacity_ > used_bytes() ? capacity_ - used_bytes() : 0; }
  void EndProcesses();

  uint64_t seed_;
  SimRandom random_;
  SimPagePool pool_;
  SimNames names_;
  uint64_t sequence_ = 0;  // Of volatile changes: writes, sizes, names.
  uint64_t next_inode_ = 1;
  uint64_t capacity_ = uint64_t{1} << 40;
  uint32_t processes_ = 0;                // Ever.
  uint32_t lock_holder_ = 0;              // The process that holds the directory lock, or 0.
  std::multiset<uint32_t> lock_readers_;  // Those that hold the lock of readers, once for each time.
  std::vector<SimRuntime*> live_;
  Paths lacking_, struck_;
  std::set<std::string, std::less<>> interned_;
  std::vector<SimOperationRecord> log_;  // A ring of kLogSize.
  uint64_t logged_ = 0;
  std::array<uint64_t, kSimOpCount> counts_{};
};

}  // namespace partita
