#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "engine/base/clock.h"
#include "engine/base/object_store.h"

namespace partita {

enum class BackgroundWork : uint8_t { kFlush, kCompaction, kScrub, kBackup };
inline constexpr size_t kBackgroundWorks = 4;
inline constexpr std::array<std::string_view, kBackgroundWorks> kBackgroundWorkNames = {"flush", "compaction",
                                                                                        "scrub", "backup"};

// What one kind of work behind the writers moves (bytes of table files written and read back; of what a scrub
// or a backup reads) and computes.
struct BackgroundLoad {
  uint64_t bytes = 0, cpu_ns = 0;  // Since the store was opened.
  struct Rate {
    double bytes_per_second = 0;
    double cores = 0;  // CPU time a second.
  };
  Rate last_second;  // The last one that is over.
  Rate last_minute;  // 60 such, or as many as there were.
};
using BackgroundLoads = std::array<BackgroundLoad, kBackgroundWorks>;

// Measures a shard's background work as it goes on: a job of minutes shows in each second of them.
//
// CPU time is that of the thread that works, between two calls of Note for the same meter and work on it;
// what a job does behind its last one is not counted, nor are jobs on a worker's thread, which has other
// work in between.
//
// Thread-safe, and waits for nobody: idle-class threads use it, and would make others wait. Seconds are slots
// that are used again a minute later; what is noted at the very moment in which a slot changes may be lost
// from the rates, never from the sums.
class BackgroundMeter {
 public:
  explicit BackgroundMeter(Clock& clock) : clock_(clock), began_second_(Second()) {}

  void Note(BackgroundWork work, uint64_t bytes);
  BackgroundLoads Read() const;
  uint64_t bytes(BackgroundWork work) const {
    return works_[static_cast<size_t>(work)].bytes.load(std::memory_order_relaxed);
  }

 private:
  static constexpr uint64_t kWindowSeconds = 60;
  static constexpr size_t kSlots = 64;
  struct Slot {
    std::atomic<uint64_t> second{0};
    std::atomic<uint64_t> bytes{0}, cpu_ns{0};
  };
  struct OfWork {
    std::atomic<uint64_t> bytes{0}, cpu_ns{0};
    std::array<Slot, kSlots> slots;
  };

  uint64_t Second() const { return clock_.RecentNanos() / 1'000'000'000; }
  uint64_t CpuSinceLastNote(BackgroundWork work);

  Clock& clock_;
  const uint64_t began_second_;
  std::array<OfWork, kBackgroundWorks> works_;
};

// Objects whose writing is metered. What a job reads back it notes itself (JobContext::note_work), as the
// reader stays when the job has ended, and is everybody's. Everything outlives it, and what it creates.
class MeteredObjectStore final : public ObjectStore {
 public:
  MeteredObjectStore(ObjectStore& objects, BackgroundMeter& meter, BackgroundWork work)
      : objects_(objects), meter_(meter), work_(work) {}

  Task<Result<std::unique_ptr<ObjectWriter>>> Create(ObjectId id) override;
  Task<Result<std::shared_ptr<ObjectReader>>> Open(ObjectId id) override { return objects_.Open(id); }
  Task<Status> Remove(ObjectId id) override { return objects_.Remove(id); }
  Task<Result<std::vector<ObjectInfo>>> List() override { return objects_.List(); }

 private:
  ObjectStore& objects_;
  BackgroundMeter& meter_;
  const BackgroundWork work_;
};

}  // namespace partita
