#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "engine/base/executor.h"
#include "engine/base/status.h"
#include "engine/io/file.h"
#include "engine/io/sim_disk.h"
#include "engine/io/sim_fault.h"
#include "engine/io/sim_scheduler.h"

namespace partita {

class SimDevice;
class SimMapping;

// One operation, from its call to its answer. Lives in the caller's coroutine frame.
struct SimOperation : Runnable {
  SimOperation(SimOp op_in, std::string_view path_in) : op(op_in), path(path_in) {}
  SimOperation(const SimOperation&) = delete;
  SimOperation& operator=(const SimOperation&) = delete;

  // What is asked.
  SimOp op;
  bool direct = false;  // Pieces are whole sectors.
  bool exact = false;   // A read past the end is an error.
  OpenMode mode = OpenMode::kRead;
  std::string_view path;  // Interned in the disk.
  std::string_view to;    // Of a rename or a link; interned too.
  SimInode* inode = nullptr;
  uint64_t offset = 0;
  uint64_t size = 0;
  std::span<const uint8_t> bytes;
  std::span<const FileRead> reads;

  // What comes of it.
  Status status;
  uint64_t value = 0;  // Bytes read; a size; whether it exists; free bytes.
  std::shared_ptr<SimInode> opened;
  std::vector<DirectoryEntry> entries;

  // The device's own.
  uint64_t number = 0;
  uint64_t covered = 0;  // Of a flush: changes up to here had ended when it began.
  uint64_t done = 0;     // Of a short transfer: bytes (in a batch: reads) so far.
  uint32_t pieces_left = 1;
  bool faulty = false;
  SimEffect effect = SimEffect::kError;
  Code fault_code = Code::kOk;
  SimDevice* device = nullptr;
  SimExecutor* executor = nullptr;
  SimOperation* previous_in_flight = nullptr;
  SimOperation* next_in_flight = nullptr;
  ResumeRunnable resume;
};

// One process's way to the disk: gives operations their time, faults and planned crashes, and does
// them. An operation takes effect when it completes; until then a crash may do it wholly, partly
// or not at all.
class SimDevice {
 public:
  SimDevice(SimScheduler& scheduler, SimDisk& disk, uint32_t process);
  ~SimDevice();

  class Awaiter {
   public:
    Awaiter(SimDevice& device, SimOperation& operation) : device_(device), operation_(operation) {}
    bool await_ready() { return device_.Begin(operation_); }
    void await_suspend(std::coroutine_handle<> handle) {
      operation_.resume.handle = handle;
      device_.Schedule(operation_);
    }
    void await_resume() noexcept {}

   private:
    SimDevice& device_;
    SimOperation& operation_;
  };
  // `co_await device.Do(operation);` then look at operation.status.
  Awaiter Do(SimOperation& operation) { return Awaiter(*this, operation); }

  // Logs bytes stored through a mapping.
  void RecordStore(std::string_view path, uint64_t offset, uint64_t size);

  void Crash();
  bool crashed() const { return crashed_; }
  void PlanCrash(uint64_t number, bool before) {
    crash_at_ = number;
    crash_before_ = before;
  }

  size_t AddFault(SimFault fault);
  void RemoveFault(size_t fault);
  void ClearFaults();
  uint64_t FaultHits(size_t fault) const;

  void SetHook(std::function<void(const SimOperationRecord&)> hook) { hook_ = std::move(hook); }

  void AddMapping(SimMapping* mapping) { mappings_.push_back(mapping); }
  void RemoveMapping(SimMapping* mapping) { std::erase(mappings_, mapping); }

  SimDisk& disk() { return disk_; }
  SimScheduler& scheduler() { return scheduler_; }
  uint32_t process() const { return process_; }
  uint64_t NextSequence() { return ++disk_.sequence_; }
  uint64_t begun() const { return begun_; }
  uint64_t completed() const { return completed_; }
  uint64_t in_flight() const { return in_flight_; }

 private:
  struct PlannedFault {
    SimFault fault;
    uint64_t matches = 0;
    uint64_t hits = 0;
    bool removed = false;
  };

  bool Begin(SimOperation& operation);
  void Schedule(SimOperation& operation);
  uint64_t DelayOf(const SimOperation& operation);
  void PickFault(SimOperation& operation);
  bool Complete(SimOperation& operation);
  void Finish(SimOperation& operation);
  void Unlink(SimOperation& operation);
  void DoPartly(SimOperation& operation);

  // Does the operation, or its next piece; true when nothing is left of it.
  bool Apply(SimOperation& operation);
  bool ApplyTransfer(SimOperation& operation);
  void ApplyLock(SimOperation& operation);
  void ApplyFault(SimOperation& operation);
  void ApplyNames(SimOperation& operation);
  void Open(SimOperation& operation);
  void Rename(SimOperation& operation);
  void List(SimOperation& operation);
  void ReadPart(SimOperation& operation, uint64_t begin, uint64_t end);
  void WritePart(SimOperation& operation, uint64_t begin, uint64_t end);
  void WriteMisplaced(SimOperation& operation);
  void RotStored(const SimOperation& operation);
  void RotAnswer(const SimOperation& operation);
  Status Failure(const SimOperation& operation, Code code, std::string_view what) const;

  SimScheduler& scheduler_;
  SimDisk& disk_;
  const uint32_t process_;
  std::vector<PlannedFault> faults_;
  std::vector<SimMapping*> mappings_;
  std::function<void(const SimOperationRecord&)> hook_;
  bool crashed_ = false;
  bool crash_before_ = false;
  uint64_t crash_at_ = 0;
  uint64_t begun_ = 0;
  uint64_t completed_ = 0;
  uint64_t in_flight_ = 0;
  SimOperation* first_in_flight_ = nullptr;
};

}  // namespace partita
