#pragma once
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>

#include "engine/base/result.h"

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
// `budget_bytes`: what the process may have; what lies free is kept within a few percent of it.
void KeepHeapSmall(uint64_t budget_bytes);

// When to give memory back. What grows again at once is in use, and each of its pages given back is a fault
// to come (2 to 3 % of a steady load of large transactions): the pause from one trim to the next doubles
// then, and is short again after a rest. Not thread-safe.
class TrimPacer {
 public:
  TrimPacer(uint64_t resident_bytes, uint64_t budget_bytes);

  // At each look, at equal intervals: whether memory is to be given back now; then Trimmed follows.
  bool IsDue(uint64_t resident_bytes);
  void Trimmed(uint64_t resident_bytes);

 private:
  uint64_t least_;      // Since the last trim.
  uint64_t far_bytes_;  // Growth that is given back whatever it costs.
  int pause_ = 1;       // Looks from one trim to the next.
  int looks_ = 0;       // Since the last trim.
};

// Gives the system back what lies free between what is used, whenever the process has grown by some MiB: a
// burst of large requests leaves its holes all over the heap, and the next one need not fit into them.
//
// A thread of its own, from Open to destruction.
class HeapTrimmer {
 public:
  // kResourceExhausted: there is no thread.
  static Result<std::unique_ptr<HeapTrimmer>> Open(uint64_t budget_bytes);
  ~HeapTrimmer();
  HeapTrimmer(const HeapTrimmer&) = delete;
  HeapTrimmer& operator=(const HeapTrimmer&) = delete;

  // How often it has done so. Any thread.
  uint64_t trims() const;

 private:
  HeapTrimmer() = default;
  void Run(uint64_t budget_bytes);

  mutable std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;  // Guarded by mutex_, as the next.
  uint64_t trims_ = 0;
  std::thread thread_;
};

}  // namespace partita
