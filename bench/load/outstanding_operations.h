#pragma once
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <random>
#include <vector>

#include "bench/load/load_loop.h"

namespace partita::bench {

// Keeps a number of operations on random rows outstanding without a thread for each: the completion
// of one starts the next, on the engine's own thread. What the engine refuses as busy is started again
// by the thread inside Run.
class OutstandingOperations {
 public:
  enum class Kind : uint8_t { kRead, kDurableWrite };
  OutstandingOperations(Kind kind, const LoadContext& context) : kind_(kind), context_(context) {}

  // Returns when the time is over and all that were started have ended. REQUIRES: called once.
  void Run();

  // What they did. REQUIRES: Run has returned.
  void AddTo(Measurement* measurement) const;

 private:
  // One chain of operations; used by one thread at a time, whoever completes or starts its next.
  struct Chain {
    std::mt19937_64 random;
    Tally tally;
    uint64_t started_ns = 0;
  };

  void Start(Chain* chain);
  void Ended(Chain* chain, const Status& status);

  const Kind kind_;
  const LoadContext& context_;
  uint64_t end_ns_ = 0;
  std::vector<Chain> chains_;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint32_t running_ = 0;         // Guarded by mutex_.
  std::vector<Chain*> refused_;  // Guarded by mutex_.
};

}  // namespace partita::bench
