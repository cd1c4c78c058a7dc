#include "engine/io/sim_runtime.h"

#include <cstdio>
#include <cstdlib>

#include "engine/base/assert.h"
#include "engine/io/sim_device.h"
#include "engine/io/sim_file_system.h"

namespace partita {

class SimRuntime::SimClock : public Clock {
 public:
  explicit SimClock(const SimScheduler& scheduler) : scheduler_(scheduler) {}
  uint64_t WallTicks() override {
    return scheduler_.options().wall_ticks_start + static_cast<uint64_t>(stepped_ticks_) +
           scheduler_.now_ns() / 100;
  }
  uint64_t MonotonicNanos() override { return scheduler_.now_ns(); }
  void Step(int64_t delta_ticks) { stepped_ticks_ += delta_ticks; }

 private:
  const SimScheduler& scheduler_;
  int64_t stepped_ticks_ = 0;
};

SimRuntime::SimRuntime(const SimOptions& options, SimDisk& disk) : disk_(disk), scheduler_(options) {
  PARTITA_ASSERT(options.shards > 0 && options.clients > 0 && options.backgrounds > 0);
  const auto make = [this](std::vector<SimExecutor*>& list, const char* kind, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      list.push_back(&scheduler_.NewExecutor(std::string(kind) + " " + std::to_string(i)));
    }
  };
  make(clients_, "client", options.clients);
  make(shards_, "shard", options.shards);
  make(idle_backgrounds_, "idle background", options.backgrounds);
  make(ordinary_backgrounds_, "ordinary background", options.backgrounds);
  clock_ = std::make_unique<SimClock>(scheduler_);
  device_ = std::make_unique<SimDevice>(scheduler_, disk, ++disk.processes_);
  files_ = std::make_unique<SimFileSystem>(*device_);
  disk_.live_.push_back(this);
}

SimRuntime::~SimRuntime() {
  PARTITA_ASSERT(spawned_running_ == 0);  // Run it to its end first: RunUntilIdle, AdvanceTime.
  if (disk_.lock_holder_ == device_->process()) disk_.lock_holder_ = 0;
  disk_.lock_readers_.erase(device_->process());
  std::erase(disk_.live_, this);
}

FileSystem& SimRuntime::files() { return *files_; }
Clock& SimRuntime::clock() { return *clock_; }
uint64_t SimRuntime::RandomU64() { return scheduler_.random().Next(); }
uint32_t SimRuntime::shard_count() const { return static_cast<uint32_t>(shards_.size()); }

Executor& SimRuntime::shard_executor(ShardId shard) { return *shards_[shard.value % shards_.size()]; }

Executor& SimRuntime::background(BackgroundClass background_class) {
  const bool idle =
      background_class == BackgroundClass::kIdle || background_class == BackgroundClass::kMemory;
  const auto& list = idle ? idle_backgrounds_ : ordinary_backgrounds_;
  return *list[next_background_++ % list.size()];
}

Executor& SimRuntime::client(uint32_t index) {
  PARTITA_ASSERT(index < clients_.size());
  return *clients_[index];
}

void SimRuntime::Run(Task<void> root) {
  PARTITA_ASSERT(Executor::Current() == nullptr);
  TaskGroup group;
  group.Spawn(*clients_[0], std::move(root));
  const uint64_t end_ns = scheduler_.now_ns() + options().run_ns_max;
  while (group.running() > 0) {
    if (scheduler_.Step()) continue;
    if (!scheduler_.AdvanceToNextDeadline())
      FailDeadlocked("nothing is ready, no timer or operation is pending");
    if (scheduler_.now_ns() > end_ns) FailDeadlocked("SimOptions::run_ns_max has passed");
  }
}

void SimRuntime::Spawn(Task<void> task, std::string name) {
  PARTITA_ASSERT(!name.empty());
  ++spawned_running_;
  spawned_names_.push_back(std::move(name));
  spawned_.Spawn(*clients_[next_client_++ % clients_.size()],
                 Track(std::move(task), spawned_names_.size() - 1));
}

Task<void> SimRuntime::Track(Task<void> task, size_t slot) {
  co_await std::move(task);
  spawned_names_[slot].clear();
  --spawned_running_;
}

void SimRuntime::RunUntilIdle() {
  PARTITA_ASSERT(Executor::Current() == nullptr);
  while (scheduler_.Step() || (device_->in_flight() > 0 && scheduler_.AdvanceToNextDeadline())) {
  }
}

void SimRuntime::AdvanceTime(uint64_t duration_ns) {
  PARTITA_ASSERT(Executor::Current() == nullptr);
  const uint64_t end_ns = scheduler_.now_ns() + duration_ns;
  while (scheduler_.Step() || scheduler_.AdvanceToNextDeadline(end_ns)) {
  }
  scheduler_.AdvanceTo(end_ns);
}

void SimRuntime::StepWallClock(int64_t delta_ticks) { clock_->Step(delta_ticks); }

size_t SimRuntime::AddFault(SimFault fault) { return device_->AddFault(std::move(fault)); }
void SimRuntime::RemoveFault(size_t fault) { device_->RemoveFault(fault); }
void SimRuntime::ClearFaults() { device_->ClearFaults(); }
uint64_t SimRuntime::FaultHits(size_t fault) const { return device_->FaultHits(fault); }

void SimRuntime::CrashAtOperation(uint64_t number, SimCrashMoment moment) {
  device_->PlanCrash(number, moment == SimCrashMoment::kBefore);
}

void SimRuntime::CrashNow() { device_->Crash(); }
bool SimRuntime::crashed() const { return device_->crashed(); }

void SimRuntime::OnCompletion(std::function<void(const SimOperationRecord&)> hook) {
  device_->SetHook(std::move(hook));
}

uint64_t SimRuntime::operations_begun() const { return device_->begun(); }
uint64_t SimRuntime::operations_completed() const { return device_->completed(); }
uint64_t SimRuntime::operations_in_flight() const { return device_->in_flight(); }

void SimRuntime::FailDeadlocked(const char* how) const {
  std::string waiting;
  for (const std::string& name : spawned_names_) {
    if (!name.empty()) waiting.append("  ").append(name).append("\n");
  }
  std::fprintf(stderr,
               "simulator: deadlock: %s, and the root task has not ended\nseed %llu, time %llu ns, step "
               "%llu, operations completed %llu%s\n"
               "client tasks still waiting:\n%sexecutors:\n%slatest operations:\n%s",
               how, static_cast<unsigned long long>(options().seed),
               static_cast<unsigned long long>(now_ns()), static_cast<unsigned long long>(steps()),
               static_cast<unsigned long long>(operations_completed()), crashed() ? ", crashed" : "",
               waiting.empty() ? "  none\n" : waiting.c_str(), scheduler_.Describe().c_str(),
               disk_.DescribeOperations(32).c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace partita
