#include "engine/io/sim_device.h"

#include <algorithm>
#include <string>

#include "engine/base/assert.h"
#include "engine/base/checksum.h"
#include "engine/io/sim_mapping.h"

namespace partita {

SimDevice::SimDevice(SimScheduler& scheduler, SimDisk& disk, uint32_t process)
    : scheduler_(scheduler), disk_(disk), process_(process) {}

SimDevice::~SimDevice() {
  PARTITA_ASSERT(in_flight_ == 0);  // F62: buffers belong to the device until the answer.
  PARTITA_ASSERT(mappings_.empty());
}

// Numbers the operation and decides its fault. In blocking mode also does it, and returns true.
bool SimDevice::Begin(SimOperation& operation) {
  operation.device = this;
  operation.executor = static_cast<SimExecutor*>(Executor::Current());
  operation.number = ++begun_;
  operation.covered = disk_.sequence_;
  operation.run = [](Runnable* self) {
    SimOperation& done = *static_cast<SimOperation*>(self);
    if (!done.device->Complete(done)) done.device->Schedule(done);
  };
  ++in_flight_;
  operation.next_in_flight = first_in_flight_;
  if (first_in_flight_ != nullptr) first_in_flight_->previous_in_flight = &operation;
  first_in_flight_ = &operation;
  scheduler_.Trace(Hash64(operation.path) ^ (uint64_t{static_cast<uint8_t>(operation.op)} << 56));
  scheduler_.Trace(operation.offset * 31 + operation.size);
  if (!crashed_) PickFault(operation);
  if (operation.executor != nullptr) return false;
  while (!Complete(operation)) {
  }
  return true;
}

void SimDevice::Schedule(SimOperation& operation) {
  scheduler_.At(scheduler_.now_ns() + DelayOf(operation), nullptr, &operation);
}

uint64_t SimDevice::DelayOf(const SimOperation& operation) {
  const SimOptions& options = scheduler_.options();
  const SimDelay* delay = &options.other;
  if (operation.op == SimOp::kRead) delay = &options.read;
  if (operation.op == SimOp::kWrite) delay = &options.write;
  if (operation.op == SimOp::kFlush || operation.op == SimOp::kFlushDirectory) delay = &options.flush;
  uint64_t delay_ns = scheduler_.random().Between(delay->min_ns, delay->max_ns);
  if (scheduler_.random().Below(64) == 0) delay_ns *= 20;
  if (operation.faulty && operation.effect == SimEffect::kSlow) delay_ns += operation.value;
  return delay_ns;
}

// Does the operation, or the next piece of it; true when it has its answer.
bool SimDevice::Complete(SimOperation& operation) {
  if (!crashed_) {
    const bool crash_here = ++completed_ == crash_at_;
    if (crash_here && crash_before_) {
      Crash();
    } else {
      const bool ended = Apply(operation);
      if (ended) {
        Unlink(operation);  // Done: no crash does it again.
        const SimOperationRecord record{
            operation.number,    process_,         operation.op,   operation.status.code(),
            scheduler_.now_ns(), operation.offset, operation.size, operation.path};
        disk_.Record(record);
        if (hook_) hook_(record);
      }
      if (crash_here) Crash();
      if (!ended && !crashed_) return false;
    }
  }
  if (crashed_) operation.status = Failure(operation, Code::kIoError, "crashed");
  Finish(operation);
  return true;
}

void SimDevice::Finish(SimOperation& operation) {
  Unlink(operation);
  --in_flight_;
  scheduler_.Trace(operation.number << 8 | static_cast<uint64_t>(operation.status.code()));
  if (operation.executor != nullptr) operation.executor->Post(&operation.resume);
}

void SimDevice::Unlink(SimOperation& operation) {
  if (operation.previous_in_flight != nullptr) {
    operation.previous_in_flight->next_in_flight = operation.next_in_flight;
  } else if (first_in_flight_ == &operation) {
    first_in_flight_ = operation.next_in_flight;
  }
  if (operation.next_in_flight != nullptr) {
    operation.next_in_flight->previous_in_flight = operation.previous_in_flight;
  }
  operation.previous_in_flight = nullptr;
  operation.next_in_flight = nullptr;
}

void SimDevice::Crash() {
  if (crashed_) return;
  for (SimOperation* operation = first_in_flight_; operation != nullptr;
       operation = operation->next_in_flight) {
    DoPartly(*operation);
  }
  for (SimMapping* mapping : mappings_) mapping->KeepUnannounced();
  crashed_ = true;
  if (disk_.lock_holder_ == process_) disk_.lock_holder_ = 0;
  disk_.lock_readers_.erase(process_);
  scheduler_.Trace(0xc4a54ed);
}

// What a process that dies leaves of an operation in flight: nothing, a part, or all.
void SimDevice::DoPartly(SimOperation& operation) {
  const uint64_t chance = scheduler_.random().Below(3);
  if (chance == 0) return;
  if (operation.faulty && operation.effect != SimEffect::kShort && operation.effect != SimEffect::kSlow)
    return;
  switch (operation.op) {
    case SimOp::kWrite: {
      uint64_t end = operation.size;
      if (chance == 1) end = scheduler_.random().Between(operation.done, end);
      if (operation.direct) end = AlignDown(end, kSimSectorSize);
      if (end > operation.done) WritePart(operation, operation.done, end);
      return;
    }
    case SimOp::kOpen:
    case SimOp::kTruncate:
    case SimOp::kAllocate:
    case SimOp::kRemove:
    case SimOp::kRename:
    case SimOp::kLink:
    case SimOp::kCreateDirectory:
      ApplyNames(operation);
      return;
    default:
      return;  // Reads leave nothing; what a flush leaves, a crash may keep anyway.
  }
}

void SimDevice::RecordStore(std::string_view path, uint64_t offset, uint64_t size) {
  scheduler_.Trace(Hash64(path) ^ (offset * 31 + size));
  disk_.Record({begun_, process_, SimOp::kStore, Code::kOk, scheduler_.now_ns(), offset, size, path});
}

size_t SimDevice::AddFault(SimFault fault) {
  faults_.push_back(PlannedFault{std::move(fault)});
  return faults_.size() - 1;
}

void SimDevice::RemoveFault(size_t fault) {
  PARTITA_ASSERT(fault < faults_.size());
  faults_[fault].removed = true;
}

void SimDevice::ClearFaults() {
  for (PlannedFault& planned : faults_) planned.removed = true;
}

uint64_t SimDevice::FaultHits(size_t fault) const {
  PARTITA_ASSERT(fault < faults_.size());
  return faults_[fault].hits;
}

namespace {

// The operations that an effect can be had on.
SimOpSet OperationsOf(SimEffect effect) {
  switch (effect) {
    case SimEffect::kError:
    case SimEffect::kSlow:
      return kSimOpsAll;
    case SimEffect::kShort:
      return SimOps(SimOp::kRead, SimOp::kWrite);
    case SimEffect::kLost:
      return SimOps(SimOp::kWrite, SimOp::kFlush, SimOp::kFlushDirectory);
    case SimEffect::kMisplaced:
      return SimOps(SimOp::kWrite);
    case SimEffect::kRot:
    case SimEffect::kRotOnce:
      return SimOps(SimOp::kRead);
  }
  return 0;
}

}  // namespace

void SimDevice::PickFault(SimOperation& operation) {
  for (PlannedFault& planned : faults_) {
    const SimFault& fault = planned.fault;
    const bool matches = !planned.removed &&
                         (fault.operations & OperationsOf(fault.effect) & SimOps(operation.op)) != 0 &&
                         operation.number >= fault.first_operation &&
                         operation.number <= fault.last_operation && planned.hits < fault.count &&
                         (operation.path.starts_with(fault.path_prefix) ||
                          (!operation.to.empty() && operation.to.starts_with(fault.path_prefix)));
    if (!matches || ++planned.matches <= fault.skip) continue;
    if (fault.probability < 1.0 && !scheduler_.random().Chance(fault.probability)) continue;
    ++planned.hits;
    operation.faulty = true;
    operation.effect = fault.effect;
    operation.fault_code = fault.code;
    if (fault.effect == SimEffect::kSlow) operation.value = fault.delay_ns;
    if (fault.effect == SimEffect::kShort) {
      operation.pieces_left = static_cast<uint32_t>(scheduler_.random().Between(2, 5));
    }
    return;
  }
}

Status SimDevice::Failure(const SimOperation& operation, Code code, std::string_view what) const {
  std::string message(SimOpName(operation.op));
  message.append(" '").append(operation.path).append("'");
  if (!operation.to.empty()) message.append(" to '").append(operation.to).append("'");
  if (operation.offset != 0 || operation.size != 0) {
    message.append(" at ").append(std::to_string(operation.offset));
    message.append("+").append(std::to_string(operation.size));
  }
  message.append(": ").append(what);
  return Status(code, std::move(message));
}

}  // namespace partita
