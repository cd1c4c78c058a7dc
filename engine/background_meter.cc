#include "engine/background_meter.h"

#include <algorithm>

#include "engine/base/executor.h"

namespace partita {

namespace {

// What this thread noted last, and its CPU time then.
struct LastNote {
  const BackgroundMeter* meter = nullptr;
  BackgroundWork work = BackgroundWork::kFlush;
  uint64_t cpu_ns = 0;
};
thread_local LastNote last_note;

class MeteredWriter final : public ObjectWriter {
 public:
  MeteredWriter(std::unique_ptr<ObjectWriter> writer, BackgroundMeter& meter, BackgroundWork work)
      : writer_(std::move(writer)), meter_(meter), work_(work) {}

  Task<Status> Append(std::string_view bytes) override {
    meter_.Note(work_, bytes.size());
    return writer_->Append(bytes);
  }
  Task<Status> BeginFinish() override { return writer_->BeginFinish(); }
  Task<Status> Finish() override { return writer_->Finish(); }
  Task<void> Abandon() override { return writer_->Abandon(); }
  uint64_t size() const override { return writer_->size(); }

 private:
  const std::unique_ptr<ObjectWriter> writer_;
  BackgroundMeter& meter_;
  const BackgroundWork work_;
};

}  // namespace

uint64_t BackgroundMeter::CpuSinceLastNote(BackgroundWork work) {
  if (Executor::Current() != nullptr) return 0;
  const LastNote before = last_note;
  last_note = {this, work, clock_.ThreadCpuNanos()};
  return before.meter == this && before.work == work ? last_note.cpu_ns - before.cpu_ns : 0;
}

void BackgroundMeter::Note(BackgroundWork work, uint64_t bytes) {
  const uint64_t cpu_ns = CpuSinceLastNote(work);
  OfWork& of = works_[static_cast<size_t>(work)];
  of.bytes.fetch_add(bytes, std::memory_order_relaxed);
  of.cpu_ns.fetch_add(cpu_ns, std::memory_order_relaxed);
  const uint64_t second = Second();
  Slot& slot = of.slots[second % kSlots];
  uint64_t slot_second = slot.second.load(std::memory_order_relaxed);
  if (slot_second != second && slot.second.compare_exchange_strong(slot_second, second)) {
    slot.bytes.store(0, std::memory_order_relaxed);
    slot.cpu_ns.store(0, std::memory_order_relaxed);
  }
  slot.bytes.fetch_add(bytes, std::memory_order_relaxed);
  slot.cpu_ns.fetch_add(cpu_ns, std::memory_order_relaxed);
}

BackgroundLoads BackgroundMeter::Read() const {
  const uint64_t now = Second();
  const uint64_t over = std::clamp<uint64_t>(now - began_second_, 1, kWindowSeconds);
  BackgroundLoads loads;
  for (size_t i = 0; i < kBackgroundWorks; ++i) {
    const OfWork& of = works_[i];
    BackgroundLoad& load = loads[i];
    load.bytes = of.bytes.load(std::memory_order_relaxed);
    load.cpu_ns = of.cpu_ns.load(std::memory_order_relaxed);
    uint64_t bytes = 0, cpu_ns = 0;
    for (const Slot& slot : of.slots) {
      const uint64_t second = slot.second.load(std::memory_order_relaxed);
      if (second >= now || second + kWindowSeconds < now) continue;
      const uint64_t slot_bytes = slot.bytes.load(std::memory_order_relaxed);
      const uint64_t slot_cpu_ns = slot.cpu_ns.load(std::memory_order_relaxed);
      bytes += slot_bytes;
      cpu_ns += slot_cpu_ns;
      if (second + 1 != now) continue;
      load.last_second = {static_cast<double>(slot_bytes), static_cast<double>(slot_cpu_ns) / 1e9};
    }
    const double seconds = static_cast<double>(over);
    load.last_minute = {static_cast<double>(bytes) / seconds, static_cast<double>(cpu_ns) / 1e9 / seconds};
  }
  return loads;
}

Task<Result<std::unique_ptr<ObjectWriter>>> MeteredObjectStore::Create(ObjectId id) {
  PARTITA_CO_ASSIGN(std::unique_ptr<ObjectWriter> writer, co_await objects_.Create(id));
  co_return std::unique_ptr<ObjectWriter>(std::make_unique<MeteredWriter>(std::move(writer), meter_, work_));
}

}  // namespace partita
