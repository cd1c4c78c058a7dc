#pragma once
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace partita {

// Memory of the process that malloc hands out: all but the store's pools (memtables, block cache), code and
// stacks.
struct HeapFigures {
  uint64_t used_bytes = 0;  // In the program's hands: what grows for ever is a leak.
  uint64_t held_bytes = 0;  // Taken from the system for it; the rest lies free between what is used.
};

// Walks malloc's lists: for an answer to a person or a monitor, not for every request. Thread-safe.
HeapFigures ReadHeapFigures();

// For a server, before it starts threads: large blocks are the system's again when they are freed, and so
// is free memory behind what is used. Without, malloc learns from each large block that is freed to keep
// the next (up to 32 MiB, and twice as much at the end of each thread's heap), beside every budget.
void KeepHeapSmall();

// Gives the system back what lies free between what is used, whenever the process has grown by some MiB: a
// burst of large requests leaves its holes all over the heap, and the next one need not fit into them.
//
// A thread of its own, from construction to destruction.
class HeapTrimmer {
 public:
  HeapTrimmer();
  ~HeapTrimmer();
  HeapTrimmer(const HeapTrimmer&) = delete;
  HeapTrimmer& operator=(const HeapTrimmer&) = delete;

  // How often it has done so. Any thread.
  uint64_t trims() const;

 private:
  void Run();

  mutable std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;  // Guarded by mutex_, as the next.
  uint64_t trims_ = 0;
  std::thread thread_;
};

}  // namespace partita
