#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/base/clock.h"
#include "engine/load_sample.h"

namespace partita {

// Sees where a store's load lies, for heat and for ranges that split and move (DESIGN 8), by looking closely
// at a few calls only.
//
// 1. Each thread counts down by what its calls cost: a unit for each row and for each KiB. The call at which
//    the count falls to 0 leaves a sample in the thread's ring; the next count is drawn evenly from
//    [1, 2 N - 1], so that each unit is met once in N, whoever it belongs to, and a sample of a call of u
//    units stands for N / u such calls. Only who will leave a sample has his time taken, and of a busy thread
//    only the first kWatched after a collection: its CPU clock is two system calls, 0.3 to 2 us each. The
//    others are taken to cost what those of their kind and partition do on the average, or else of their
//    kind.
// 2. N follows the load: about 100 samples of a thread, and 200 of all that are busy, in kCollectNanos; of a
//    thread that is slow down to 25, as more would be of every few of its calls. It doubles with every 32
//    that wait in the ring, so a burst after silence does not overrun it. An idle store samples every call; a
//    thread whose load falls off first counts to the end what it drew before.
// 3. Collect empties the rings and gives the samples to the consumers. It is asked for, through `wake`, by a
//    thread that leaves a sample when the last collection was long ago: an idle store does nothing. What
//    finds its ring full is lost, and counted. A sample costs the consumers some 2 us, so who collects beside
//    calls does it in pieces (CollectNext), with pauses between. A ring has its turn until what waited when
//    that began is taken: what comes meanwhile is the next collection's, or a busy thread would never let one
//    end.
//
// All is deterministic where the clock and the order of calls are.
//
// Atomics: of a ring, `head` is written by its thread, `tail` and `base` by who collects (under mutex_), and
// each reads the other's; a slot belongs to the thread from tail's store on, to the collector from head's.
// Thread-safe.
class LoadSampler {
 public:
  static constexpr uint64_t kCollectNanos = 25'000'000;
  static constexpr uint32_t kRingSamples = 512;
  static constexpr size_t kPieceSamples = 64;
  static constexpr uint32_t kWatched = 32;
  // Threads beyond that leave no samples, which are counted as lost. 24 MiB of rings.
  static constexpr size_t kRingsMax = 256;

  // `wake` is called by a thread that leaves a sample when a collection is due; once until its end.
  LoadSampler(Clock& clock, std::function<void()> wake);
  ~LoadSampler();
  LoadSampler(const LoadSampler&) = delete;
  LoadSampler& operator=(const LoadSampler&) = delete;

  // REQUIRES: before the first call. Outlives the sampler's last Collect.
  void AddConsumer(LoadConsumer* consumer) { consumers_.push_back(consumer); }

  static uint64_t UnitsOf(uint64_t rows, uint64_t bytes) { return rows + bytes / 1024; }

  // Whether a call of so many units that began now would leave a sample with its time.
  bool IsWatchDue(uint64_t units) const {
    return thread_.sampler == number_ && thread_.ring->left <= static_cast<int64_t>(units) &&
           thread_.ring->Waiting() < kWatched;
  }
  // Counts what this thread did; 1.5 ns but for one call in N. `cpu_ns` 0: it was not measured. `user_key` is
  // of the partition; a bound of a table does as well.
  void Note(LoadKind kind, std::string_view user_key, uint64_t rows, uint64_t bytes, uint64_t cpu_ns) {
    const int64_t units = static_cast<int64_t>(UnitsOf(rows, bytes));
    if (thread_.sampler != number_ && !BindThread()) [[unlikely]]
      return;
    if ((thread_.ring->left -= units) <= 0) [[unlikely]]
      Leave({kind, user_key, rows, bytes, cpu_ns});
  }

  // Gives what waits to the consumers. Any thread, one at a time: others wait.
  void Collect();
  // The same in pieces, at most kPieceSamples at a time. False: it was the last.
  bool CollectNext();

  struct Statistics {
    uint64_t samples = 0;  // Given to consumers.
    uint64_t lost = 0;     // Samples that found no room.
  };
  Statistics statistics();

  // Measures what this thread does for a call until it first waits on an executor.
  class Watch {
   public:
    // Off: nothing is measured.
    Watch() = default;
    explicit Watch(Clock& clock);
    // 0: unknown, as it is off or the call has waited. What waits in blocking mode uses no CPU.
    uint64_t Nanos() const;

   private:
    Clock* clock_ = nullptr;
    uint64_t begun_ns_ = 0;
    uint64_t turn_ = 0;
  };
  // For a call of about so many units.
  Watch StartWatch(uint64_t units) const { return IsWatchDue(units) ? Watch(clock_) : Watch(); }
  Clock& clock() const { return clock_; }

 private:
  struct Ring {
    // The thread's.
    int64_t left = 1;
    uint64_t interval = 1;  // N, when `left` was drawn.
    uint64_t random;
    std::vector<LoadSample> slots;  // Empty: nothing is kept.
    std::atomic<uint32_t> head{0};
    std::atomic<uint64_t> lost{0};
    // The collector's.
    alignas(64) std::atomic<uint32_t> tail{0};
    std::atomic<uint64_t> base{1};  // N when nothing waits.
    // Set when the thread has ended, or the sampler.
    std::atomic<bool> is_over{false};

    void Draw();
    // The thread's: how many samples are not collected yet.
    uint32_t Waiting() const {
      return head.load(std::memory_order_relaxed) - tail.load(std::memory_order_acquire);
    }
  };
  struct Call {
    LoadKind kind;
    std::string_view user_key;
    uint64_t rows, bytes, cpu_ns;
  };
  // What a thread finds its ring by; trivial, so that it costs no look whether it was made.
  struct ThreadRing {
    uint64_t sampler = 0;
    Ring* ring = nullptr;
    bool has_ended = false;  // The thread has, but for what else of it ends later: that leaves no samples.
  };
  struct ThreadRings;
  static thread_local constinit ThreadRing thread_;

  // False: the thread has ended.
  bool BindThread();
  std::shared_ptr<Ring> NewRing();
  void Leave(const Call& call);
  static void Fill(const Call& call, LoadSample* out);
  void WakeIfDue(uint64_t now_ns);
  bool CollectNextLocked();
  // Gives up to so many samples of the ring's turn to the consumers, and returns how many.
  size_t Empty(Ring* ring, size_t most);
  // At the end of what waited in a ring.
  void SetBase(Ring* ring, size_t busy);
  void StartRing();
  // What measured samples cost: nanoseconds and units, of a kind decayed.
  struct UnitCost {
    double ns = 0, units = 0;

    void Add(double more_ns, double more_units);
  };
  struct PartitionCost {
    uint64_t hash;
    LoadKind kind;
    UnitCost cost;
  };
  void LearnCosts();
  void CompleteCpu(LoadSample* sample) const;

  Clock& clock_;
  const uint64_t number_;  // Never given twice.
  const std::function<void()> wake_;
  std::atomic<uint64_t> collected_ns_{0};
  std::atomic<bool> awake_{false};

  std::mutex mutex_;  // Guards what follows.
  std::vector<std::shared_ptr<Ring>> rings_;
  std::vector<LoadConsumer*> consumers_;
  size_t next_ring_ = 0;  // Of the collection that is not at its end.
  // Where that ring's turn ends, once it has begun: its head then.
  std::optional<uint32_t> turn_end_;
  double ring_units_ = 0;   // Of that ring, so far.
  size_t busy_ = 0;         // Rings in which it found samples, so far,
  size_t busy_before_ = 0;  // and the one before it in all.
  std::vector<LoadSample> batch_;
  Statistics statistics_;
  uint64_t seed_ = 0;
  std::array<UnitCost, kLoadKinds> costs_;
  std::vector<PartitionCost> partition_costs_;  // Of the ring at hand.
};

}  // namespace partita
