#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>

namespace partita {

// How far the opening of a store is (F38): bytes read of its logs, and bytes written where what they hold
// goes to tables; of all shards together. What there is to do shows on the way: it may rise, and falls by
// what is left of a shard that does not open.
//
// Threads: each part adds to the two sums from its own; one of them at a time tells, with which the others do
// not wait. The sums are not of one moment.
class OpeningProgress {
 public:
  using Tell = std::function<void(uint64_t done, uint64_t due)>;
  // Null: nobody is told.
  explicit OpeningProgress(Tell tell) : tell_(std::move(tell)) {}

  // Of the whole what one thread at a time does.
  class Part {
   public:
    // `all` outlives it.
    explicit Part(OpeningProgress& all) : all_(all) {}
    // What is not done by then is not due any more.
    ~Part() { all_.due_.fetch_sub(due_ - done_, std::memory_order_relaxed); }
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;

    // REQUIRES: done <= due; done does not fall. Where due would, it stays as it was.
    void Set(uint64_t done, uint64_t due);
    // It is begun again where it ended: what Set is told from here on is behind what is done by now.
    void GoOn() { before_ = done_; }

   private:
    OpeningProgress& all_;
    uint64_t done_ = 0, due_ = 0;
    uint64_t before_ = 0;  // Done before GoOn.
  };

  // Nobody is told from here on, and what the one to be told holds is let go. REQUIRES: no part is left.
  void End() { tell_ = nullptr; }

 private:
  Tell tell_;
  std::atomic<uint64_t> done_{0}, due_{0};
  std::mutex telling_;
};

}  // namespace partita
