#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/async_mutex.h"
#include "engine/base/task_group.h"
#include "engine/io/runtime.h"

namespace partita {

// In the store's directory: space set aside, never read.
inline constexpr std::string_view kReserveName = "RESERVE";

// How large the reserve of a store is. Bytes.
struct ReservePlan {
  uint64_t memtable_bytes = 0;     // All memtables together.
  uint64_t log_segment_bytes = 0;  // Of each shard.
  uint32_t shards = 1;

  uint64_t bytes() const;
};

// The store's files, with a reserve of space among them (F55): what a store needs when its disk is full is
// had before it is.
//
// One file holds the space. Where another finds none (kNoSpace of a write, a new file, a name) the reserve is
// given back whole and that operation done once more, so that whoever asked never hears of it: flushes end,
// logs get their next segment, manifests and the catalog are rewritten. Its states:
//
//   opening  Nothing is known yet, or an earlier life's reserve is there, which the opening may use up.
//   held     The file has its size. All writes are taken.
//   low      It was given back, or there was no room to take it. Only what frees space in the end is taken:
//            deletes, and drops of tables; the rest is refused (Refusal). Four times a second it is asked
//            whether there is room; then the reserve is taken first, and writes resume after (F56). Until
//            then what is left of it is held, and given back again to who needs it.
//
// Given back whole rather than by pieces: pieces would protect no better from others who write to the same
// disk, as each piece is theirs to take, too. That is the limit: once it is given back, somebody else may
// fill it before the store does, and then even deletes are refused, until there is space (F54).
//
// Files opened for reading only are the file system's own. A flush that finds no space is never repeated
// (F20): the reserve is given back for whoever goes on in another file. Compactions use files(), which have
// no share in the reserve, as that one of them fails costs nothing; while it is low, those that fit use it.
//
// Thread-safe. `runtime` outlives it. Lifecycle: Adopt, Take, use, Close; without Take it never is low.
class DiskReserve final : public FileSystem {
 public:
  explicit DiskReserve(Runtime& runtime) : runtime_(runtime), files_(runtime.files()) {}
  ~DiskReserve() override;

  // Finds what an earlier life left, before anything is written. Changes nothing; what fails Take will tell.
  Task<void> Adopt();
  // Takes a reserve of this size, or begins low; the opening has ended. Failures leave it low, with the
  // reason in Refusal.
  Task<void> Take(uint64_t bytes);
  // Nothing uses the files any more. What is held, or to be had, stays for the next life.
  Task<void> Close();

  // Called every few seconds while it is low, on a shard's executor: what deletes free comes with flushes and
  // compactions, which nobody asks for while no writes come. To be set before Take; must not wait.
  void WhileLow(std::function<void()> free_space) { free_space_ = std::move(free_space); }
  // Whom it calls is about to go: when this returns, it does not any more.
  Task<void> StopCalling();

  bool low() const { return low_.load(std::memory_order_acquire); }
  // What is told to who is not served while low.
  Status Refusal() const;

  uint64_t bytes_held() const { return held_.load(std::memory_order_relaxed); }
  uint64_t bytes_wanted() const { return wanted_.load(std::memory_order_relaxed); }
  uint64_t times_low() const { return times_low_.load(std::memory_order_relaxed); }

  // The files themselves, past the reserve.
  FileSystem& files() { return files_; }

  // For tests that prove the tests: says that it gives back, and keeps.
  void PlantKeeping() { plant_keeping_ = true; }

  // ---- The files.
  Task<Result<std::unique_ptr<File>>> Open(std::string_view path, OpenMode mode, FileIo io) override;
  Task<Status> Remove(std::string_view path) override;
  Task<Status> Rename(std::string_view from, std::string_view to) override;
  Task<Status> CreateDirectory(std::string_view path) override;
  Task<Status> FlushDirectory(std::string_view path) override { return files_.FlushDirectory(path); }
  Task<Result<std::vector<DirectoryEntry>>> List(std::string_view path) override { return files_.List(path); }
  Task<Result<std::vector<std::string>>> ListOthers() override { return files_.ListOthers(); }
  Task<Result<bool>> Exists(std::string_view path) override { return files_.Exists(path); }
  Task<Status> Share(FileSystem& from, std::string_view from_path, std::string_view path) override {
    return files_.Share(from, from_path, path);
  }
  Result<std::unique_ptr<SharedMapping>> Map(std::string_view path, uint64_t size) override {
    return files_.Map(path, size);
  }
  Task<Result<std::unique_ptr<DirectoryLock>>> Lock(uint64_t wait_ns) override {
    return files_.Lock(wait_ns);
  }
  Task<Result<std::unique_ptr<DirectoryLock>>> LockShared(uint64_t wait_ns) override {
    return files_.LockShared(wait_ns);
  }
  Task<Result<uint64_t>> FreeBytes() override { return files_.FreeBytes(); }
  bool direct_io_refused() const override { return files_.direct_io_refused(); }

 private:
  class SharingFile;

  // How often it was given back so far: to be asked before an operation, and handed to GiveBack after it
  // found no space.
  uint64_t times_given() const { return times_given_.load(std::memory_order_acquire); }
  // True: it was given back since, so that another try may find space.
  Task<bool> GiveBack(uint64_t seen);

  // `operation` starts a Task<Status>; once more after something was given back for it.
  template <typename Operation>
  Task<Status> OnName(Operation operation);
  Task<Result<std::unique_ptr<File>>> OpenSharing(std::string path, OpenMode mode, FileIo io);
  // These three under turn_. kNoSpace: not all of it could be had, but what there is was.
  Task<Status> TakeNow();
  Task<Status> SetAside(uint64_t bytes);
  Task<Status> WriteNoise(uint64_t bytes);
  void BecomeLow(Status why);  // Starts the poll.
  static Task<void> Poll(DiskReserve* self);

  Runtime& runtime_;
  FileSystem& files_;
  TaskGroup tasks_;

  AsyncMutex turn_;  // Taking and giving back. Guards file_.
  std::unique_ptr<File> file_;

  std::function<void()> free_space_;  // Called under turn_.

  mutable std::mutex why_mutex_;
  Status why_;  // Why it is low. Guarded by why_mutex_.

  // Written under turn_, but for the poll's.
  std::atomic<uint64_t> held_{0}, wanted_{0}, times_given_{0}, times_low_{0};
  std::atomic<bool> low_{false}, polling_{false}, closing_{false};
  bool plant_keeping_ = false;
};

}  // namespace partita
