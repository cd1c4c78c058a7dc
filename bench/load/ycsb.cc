#include "bench/load/ycsb.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <unordered_set>

#include "bench/load/zipf.h"
#include "engine/base/assert.h"

namespace partita::bench {
namespace {

struct Mix {
  uint32_t reads, overwrites, scans, inserts, read_modify_writes;  // Of 100.
};

Mix MixOf(char letter) {
  switch (letter) {
    case 'a':
      return {.reads = 50, .overwrites = 50, .scans = 0, .inserts = 0, .read_modify_writes = 0};
    case 'b':
      return {.reads = 95, .overwrites = 5, .scans = 0, .inserts = 0, .read_modify_writes = 0};
    case 'c':
      return {.reads = 100, .overwrites = 0, .scans = 0, .inserts = 0, .read_modify_writes = 0};
    case 'd':
      return {.reads = 95, .overwrites = 0, .scans = 0, .inserts = 5, .read_modify_writes = 0};
    case 'e':
      return {.reads = 0, .overwrites = 0, .scans = 95, .inserts = 5, .read_modify_writes = 0};
    default:
      return {.reads = 50, .overwrites = 0, .scans = 0, .inserts = 0, .read_modify_writes = 50};
  }
}

}  // namespace

// Shared by the threads of a run.
class Ycsb::State {
 public:
  State(char letter, const LoadContext& context)
      : context_(context),
        mix_(MixOf(letter)),
        reads_newest_(letter == 'd'),
        zipf_(context.config.keys),
        scattered_(context.config.keys, context.config.seed + 1),
        // Each run inserts where none did before: a million rows further for each millisecond.
        insert_base_(context.config.keys + (context.generation >> 20) % 100'000 * 1'000'000) {}

  bool Do(std::mt19937_64& random, std::string* buffer, Tally* tally) {
    const DurabilityLevel level = context_.config.engine_config.durability;
    uint32_t dice = random() % 100;
    const auto is = [&dice](uint32_t share) {
      const bool hit = dice < share;
      dice -= hit ? 0 : share;
      return hit;
    };
    if (is(mix_.reads)) {
      GetRow(context_, reads_newest_ ? Newest(random) : Popular(random), buffer, tally);
      return true;
    }
    if (is(mix_.overwrites)) return PutRow(context_, Popular(random), level, buffer, tally);
    if (is(mix_.inserts)) return Insert(level, buffer, tally);
    if (is(mix_.scans)) {
      const uint64_t count = std::min<uint64_t>(1 + random() % 100, context_.config.keys);
      ScanRows(context_, std::min(Popular(random), context_.config.keys - count), count, tally);
      return true;
    }
    const uint64_t index = Popular(random);
    GetRow(context_, index, buffer, tally);
    return PutRow(context_, index, level, buffer, tally);
  }

 private:
  uint64_t Popular(std::mt19937_64& random) const { return scattered_.At(zipf_.Draw(random)); }

  // Counted back from the newest: through the inserted rows into the loaded ones.
  uint64_t Newest(std::mt19937_64& random) const {
    const uint64_t inserted = inserted_.load(std::memory_order_acquire);
    const uint64_t back = zipf_.Draw(random);
    return back < inserted ? insert_base_ + inserted - 1 - back
                           : context_.config.keys - 1 - (back - inserted);
  }

  bool Insert(DurabilityLevel level, std::string* buffer, Tally* tally) {
    const uint64_t number = reserved_.fetch_add(1, std::memory_order_relaxed);
    if (!PutRow(context_, insert_base_ + number, level, buffer, tally)) return false;
    // Others read only what all inserts before have made, too. Nobody waits for those: whoever ends the one
    // that the rest hangs on makes way for it.
    const std::lock_guard lock(mutex_);
    done_.insert(number);
    uint64_t inserted = inserted_.load(std::memory_order_relaxed);
    while (done_.erase(inserted) != 0) ++inserted;
    inserted_.store(inserted, std::memory_order_release);
    return true;
  }

  const LoadContext context_;
  const Mix mix_;
  const bool reads_newest_;
  const Zipf zipf_;
  const Permutation scattered_;
  const uint64_t insert_base_;
  // Written by inserting threads: numbers given out; inserts done without a gap.
  std::atomic<uint64_t> reserved_ = 0, inserted_ = 0;
  std::mutex mutex_;
  std::unordered_set<uint64_t> done_;  // Behind a gap. Under mutex_.
};

Ycsb::Ycsb(char letter, const LoadContext& context)
    : state_(std::make_unique<State>(letter, context)), context_(context) {
  PARTITA_ASSERT(letter >= 'a' && letter <= 'f');
}

Ycsb::~Ycsb() = default;

void Ycsb::Run(Measurement* measurement) {
  RunThreads(
      context_.parallel, context_.generation + runs_++ * context_.parallel, context_.config.seconds,
      context_.config.value_size,
      [&]() -> Operation {
        return [&, buffer = std::string()](std::mt19937_64& random, Tally* tally) mutable {
          return state_->Do(random, &buffer, tally);
        };
      },
      measurement);
}

}  // namespace partita::bench
