#pragma once
#include <algorithm>
#include <cstdint>

#include "engine/background_meter.h"
#include "engine/base/clock.h"
#include "engine/base/executor.h"
#include "engine/base/maintenance.h"
#include "engine/base/object_store.h"
#include "engine/base/status.h"
#include "engine/base/task.h"

namespace partita {

// Keeps a task to its pace: counts the bytes it moved, waits when it is ahead, tells and asks the
// watcher. One task at a time. `clock` and `pace` outlive it.
class TaskPacer {
 public:
  // `bytes_due`: what the whole task will move, about.
  TaskPacer(Clock& clock, const TaskPace& pace, uint64_t bytes_due)
      : clock_(clock), pace_(pace), due_(bytes_due), began_ns_(clock.MonotonicNanos()) {}

  // Counts bytes moved; ends when the next ones may be, or as CheckCancelled does.
  Task<Status> Spend(uint64_t bytes);

  // From here on what is moved is that shard's work as well; null: nobody's.
  void MeterBy(BackgroundMeter* meter, BackgroundWork work) {
    meter_ = meter;
    work_ = work;
  }

  // So many bytes are to be moved, too.
  void AlsoDue(uint64_t bytes) { due_ += bytes; }
  // So many bytes need not be moved after all.
  void NotDue(uint64_t bytes) { due_ -= std::min(bytes, due_); }

  uint64_t done() const { return done_; }
  bool cancelled() const { return cancelled_; }
  // kCancelled when the watcher wants no more.
  Status CheckCancelled() const;

 private:
  Clock& clock_;
  const TaskPace& pace_;
  uint64_t due_;
  const uint64_t began_ns_;
  uint64_t done_ = 0;
  bool cancelled_ = false;
  BackgroundMeter* meter_ = nullptr;
  BackgroundWork work_ = BackgroundWork::kScrub;
};

// The objects of a store, read at a task's pace; nothing else can be done with them here. Everything
// outlives it.
class PacedObjectStore final : public ObjectStore {
 public:
  PacedObjectStore(ObjectStore& objects, TaskPacer& pacer) : objects_(objects), pacer_(pacer) {}

  Task<Result<std::unique_ptr<ObjectWriter>>> Create(ObjectId id) override;  // kUnsupported.
  Task<Result<std::shared_ptr<ObjectReader>>> Open(ObjectId id) override;
  Task<Status> Remove(ObjectId id) override;  // kUnsupported.
  Task<Result<std::vector<ObjectInfo>>> List() override { return objects_.List(); }

 private:
  ObjectStore& objects_;
  TaskPacer& pacer_;
};

}  // namespace partita
