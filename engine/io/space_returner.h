#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>

namespace partita {

// Gives the space of removed files back to the file system little by little. Where that passes it on to the
// device at once (ext4 or XFS mounted with `discard`), the device does nothing else meanwhile: 0.34 ms for a
// MiB on the virtio disk of bench/README, so 11 ms for a table file and 0.6 s for the inputs of a large
// merge, for which every read and flush would wait.
//
// 1. A file comes here open, without a name. While anybody else has it open it is left as it is: readers go
//    on (F25). The kernel tells, by whether it would grant a lease.
// 2. Then it is cut from its end by kPieceBytes at a time, with pauses in which the device serves others:
//    kPauseNanosMax where little waits, shorter where more does, so that all is given back within about
//    kSpreadNanos; and none where the disk is short of space.
// 3. What waits when this is destroyed is given back then, by the kernel.
//
// One thread, from the first file on. Thread-safe.
class SpaceReturner {
 public:
  // Smaller files are not worth it.
  static constexpr uint64_t kFileBytesMin = 4 << 20;

  SpaceReturner() = default;
  ~SpaceReturner();
  SpaceReturner(const SpaceReturner&) = delete;
  SpaceReturner& operator=(const SpaceReturner&) = delete;

  // Takes the descriptor, which is open for writing, and closes it: at once where there is nothing to spread.
  void Take(int descriptor);

  uint64_t waiting_bytes() const;

 private:
  struct Held {
    int descriptor;
    uint64_t bytes;
  };
  enum class Use : uint8_t { kAlone, kShared, kUnknown };

  static Use UseOf(int descriptor);
  static bool IsShort(int descriptor, uint64_t waiting);
  bool Start();
  void Run();
  // One piece of the first file; returns how long to pause then.
  uint64_t ReturnPiece(Held* held);

  mutable std::mutex mutex_;  // Guards what follows. Not held while the kernel works.
  std::condition_variable changed_;
  std::deque<Held> held_;
  uint64_t waiting_bytes_ = 0;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace partita
