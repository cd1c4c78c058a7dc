#include "engine/task_pacer.h"

#include "engine/base/clock.h"

namespace partita {

namespace {

// Waits are cut to this, so that the watcher can stop a slow task soon.
constexpr uint64_t kWaitNanosMax = 200'000'000;

class PacedReader final : public ObjectReader {
 public:
  PacedReader(std::shared_ptr<ObjectReader> reader, TaskPacer& pacer)
      : reader_(std::move(reader)), pacer_(pacer) {}

  ObjectId id() const override { return reader_->id(); }
  uint64_t size() const override { return reader_->size(); }
  const std::string& name() const override { return reader_->name(); }
  Task<Status> Read(std::span<const ObjectRead> reads, ReadCaching caching) override {
    uint64_t bytes = 0;
    for (const ObjectRead& read : reads) bytes += read.buffer.size();
    PARTITA_CO_TRY(co_await pacer_.Spend(bytes));
    co_return co_await reader_->Read(reads, caching);
  }

 private:
  std::shared_ptr<ObjectReader> reader_;
  TaskPacer& pacer_;
};

}  // namespace

Task<Status> TaskPacer::Spend(uint64_t bytes) {
  done_ += bytes;
  if (meter_ != nullptr && bytes > 0) meter_->Note(work_, bytes);
  while (!cancelled_) {
    if (pace_.progress && !pace_.progress(std::min(done_, due_), due_)) cancelled_ = true;
    if (cancelled_ || pace_.bytes_per_second == 0) break;
    // A double: bytes times nanoseconds overflow 64 bits at 18 GB.
    const double wanted_ns = static_cast<double>(done_) / static_cast<double>(pace_.bytes_per_second) *
                             static_cast<double>(kNanosPerSecond);
    const uint64_t free_at_ns = began_ns_ + static_cast<uint64_t>(wanted_ns);
    const uint64_t now_ns = clock_.MonotonicNanos();
    if (now_ns >= free_at_ns) break;
    co_await SleepFor(std::min(free_at_ns - now_ns, kWaitNanosMax));
  }
  co_return CheckCancelled();
}

Status TaskPacer::CheckCancelled() const {
  return cancelled_ ? Status::Cancelled("stopped as it was asked to") : Status();
}

Task<Result<std::unique_ptr<ObjectWriter>>> PacedObjectStore::Create(ObjectId) {
  co_return Status::Unsupported("objects are only read here");
}

Task<Result<std::shared_ptr<ObjectReader>>> PacedObjectStore::Open(ObjectId id) {
  PARTITA_CO_ASSIGN(std::shared_ptr<ObjectReader> reader, co_await objects_.Open(id));
  co_return std::shared_ptr<ObjectReader>(std::make_shared<PacedReader>(std::move(reader), pacer_));
}

Task<Status> PacedObjectStore::Remove(ObjectId) {
  co_return Status::Unsupported("objects are only read here");
}

}  // namespace partita
