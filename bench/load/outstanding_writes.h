#pragma once
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <random>
#include <vector>

#include "bench/load/engine.h"
#include "bench/load/row_generator.h"
#include "bench/load/tally.h"

namespace partita::bench {

// Keeps a number of durable writes to random rows outstanding without a thread for each: the
// completion of a write starts the next one, on the engine's own thread. A write that the engine
// refuses as busy is started again by the thread inside Run.
class OutstandingWrites {
 public:
  struct Load {
    uint64_t keys = 0;
    uint64_t generation = 0;
    double seconds = 0;
    uint64_t seed = 0;
  };
  OutstandingWrites(Engine* engine, const ValueGenerator* values, const Load& load)
      : engine_(engine), values_(values), load_(load) {}

  // Returns when the time is over and all that were started have ended. REQUIRES: called once.
  void Run(uint32_t outstanding);

  // What they did. REQUIRES: Run has returned.
  void AddTo(Measurement* measurement) const;

 private:
  // One chain of writes; used by one thread at a time, whoever completes or starts its write.
  struct Chain {
    std::mt19937_64 random;
    Tally tally;
    uint64_t started_ns = 0;
  };

  void Start(Chain* chain);
  void Ended(Chain* chain, const Status& status);

  Engine* engine_;
  const ValueGenerator* values_;
  Load load_;
  uint64_t end_ns_ = 0;
  std::vector<Chain> chains_;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint32_t running_ = 0;         // Guarded by mutex_.
  std::vector<Chain*> refused_;  // Guarded by mutex_.
};

}  // namespace partita::bench
