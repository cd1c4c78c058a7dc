#pragma once
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "engine/base/result.h"
#include "test/power/disk_content.h"

namespace partita {

// A disk in memory that records what is written and flushed, fails when asked to, and can show what a loss
// of power would have left.
//
// It is one file, file(), in a FUSE file system that a child process serves; a loop device over that file is
// what real file systems are made on. The device mapper would do without FUSE, but is missing on many
// machines. Dies with its parent, however that ends.
//
// Lifecycle: Start; then recording until ShowCut is called; then any number of images. Nothing may be
// mounted on it, and its loop device must have been invalidated, when an image is asked for.
class VirtualDisk {
 public:
  struct LogSize {
    uint64_t entries = 0, bytes = 0, flushes = 0;
  };

  // `size` in bytes; a loss of power tears writes at multiples of `sector` bytes. `mount_point`: an empty
  // directory. kUnsupported: FUSE is missing or forbidden here. REQUIRES: a process of one thread.
  static Result<std::unique_ptr<VirtualDisk>> Start(const std::string& mount_point, uint64_t size,
                                                    size_t sector);
  ~VirtualDisk();

  const std::string& file() const { return file_; }

  // Entries recorded so far. Shared with children: a process that reads it after a call of its own returned
  // knows that all that the call wrote and flushed has a lower number.
  uint64_t entries() const { return entries_->load(std::memory_order_acquire); }

  // Forgets everything: an empty disk that records.
  Status Restart();
  Status SetFaults(const DiskFaults& faults);
  Result<LogSize> log_size();

  // Shows the disk as a loss of power after `cut` entries leaves it (BlockLog::ApplySome), and records what
  // is done to that image. Images need not be asked for in order, but rising cuts are cheaper.
  Status ShowCut(uint64_t cut, uint64_t seed);
  // Shows the disk as a second loss of power, in the middle of what was done to the last image, leaves it.
  Status ShowCutAgain(uint64_t seed);

  // Keeps the image, as it was when it was first shown, and gets it back as a recording: its last cut shows
  // it.
  Status SaveImage(const std::string& path);
  Status Load(const std::string& path);

 private:
  VirtualDisk() = default;
  struct Command;
  struct Answer;
  Result<LogSize> Ask(const Command& command);
  friend class DiskServer;

  std::string mount_point_;
  std::string file_;
  std::atomic<uint64_t>* entries_ = nullptr;
  int control_ = -1;
  pid_t server_ = -1;
};

}  // namespace partita
