#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>

namespace partita {

// Gives the space of removed files back to the file system little by little. Where that passes it on to the
// device within the call (ext4 without a journal, mounted with `discard`), the device does nothing else
// meanwhile: 0.34 ms for a MiB on the virtio disk of bench/HISTORY.md, so 11 ms for a table file and 0.6 s
// for the inputs of a large merge, for which every read and flush would wait. With a journal, and on XFS, the
// device is told later, at once of all that one commit freed: what this gains there was not measured.
//
// 1. A file comes here open, without a name. While anybody else has it open it is left as it is: readers go
//    on (F25). The kernel tells, by whether it would grant a lease. After 10 s it is theirs alone.
// 2. Then it is cut from its end, kPieceBytes at a time, with pauses in which the device serves others: 200
//    MB/s, more where more than 1.6 GB wait; without pauses where the disk is short of space, and what would
//    make it so when it comes is not spread at all.
// 3. What waits when this is destroyed is given back then, by the kernel, and what waits at a loss of power
//    by the journal, or by e2fsck where there is none.
//
// One thread, from the first file on. Thread-safe.
class SpaceReturner {
 public:
  // Smaller files are not worth it.
  static constexpr uint64_t kFileBytesMin = 4 << 20;

  // For files of the file system that this directory is of.
  explicit SpaceReturner(int directory);
  ~SpaceReturner();
  SpaceReturner(const SpaceReturner&) = delete;
  SpaceReturner& operator=(const SpaceReturner&) = delete;

  // Whether it is of a kind whose space may be worth spreading, and where all who have a file open are known.
  bool spreads() const { return directory_ >= 0; }

  // Takes the descriptor, which is open for writing, and closes it: at once where there is nothing to spread.
  void Take(int descriptor);

  uint64_t waiting_bytes() const;

 private:
  struct Held {
    int descriptor;
    uint64_t bytes;
    uint32_t shared_looks = 0;  // At which it was open elsewhere.
  };
  enum class Use : uint8_t { kAlone, kShared, kUnknown };

  static Use UseOf(int descriptor);
  bool IsShort(uint64_t waiting) const;
  bool Start();
  void Run();
  // One piece of the first file; returns how long to pause then.
  uint64_t ReturnPiece(Held* held);

  int directory_ = -1;        // Its own descriptor; none: nothing is spread.
  size_t files_max_ = 0;      // Beyond so many a file is closed at once.
  mutable std::mutex mutex_;  // Guards what follows. Not held while a file is cut or closed.
  std::condition_variable changed_;
  std::deque<Held> held_;
  uint64_t waiting_bytes_ = 0;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace partita
