#include "engine/base/user_key.h"
#include "test/support/store_workload.h"

// The faults that a life meets, and the proof that it gets over them.

namespace partita {

// ---- Faults.

SimFault StoreLife::DrawFault(uint64_t skip_max) {
  SimFault fault;
  uint64_t kind = Draw(100);
  fault.skip = Draw(skip_max);
  fault.count = Chance(50) ? 1 : 1 + Draw(20);
  if (Chance(30)) fault.probability = 0.2;
  SimOpSet changes = SimOps(SimOp::kWrite, SimOp::kFlush, SimOp::kFlushDirectory, SimOp::kOpen,
                            SimOp::kRename, SimOp::kLink, SimOp::kTruncate, SimOp::kRemove);
  if (kind < 50) {
    fault.operations = Chance(60) ? SimOps(SimOp::kWrite, SimOp::kFlush) : changes;
  } else if (kind < 70) {
    fault.operations = SimOps(SimOp::kWrite, SimOp::kOpen, SimOp::kTruncate);
    fault.code = Code::kNoSpace;
    fault.count = 1 + Draw(60);
  } else if (kind < 85) {
    fault.effect = SimEffect::kSlow;
    fault.delay_ns = 1'000'000 + Draw(2'000'000'000);
  } else {
    fault.effect = SimEffect::kShort;
    fault.operations = SimOps(SimOp::kRead, SimOp::kWrite);
    fault.count = 100;
  }
  return fault;
}

void StoreLife::AddFault(uint32_t number, const SimFault& fault) {
  if (plan_.faults_cut.contains(number)) return;
  if (options_.trace) {
    Tell("fault " + std::to_string(number) + ": effect " + std::to_string(static_cast<int>(fault.effect)) +
         ", operations " + std::to_string(fault.operations) + ", skip " + std::to_string(fault.skip) +
         ", count " + std::to_string(fault.count));
  }
  faults_added_.push_back(runtime_.AddFault(fault));
}

uint64_t StoreLife::FaultsHit() const {
  uint64_t sum = 0;
  for (size_t fault : faults_added_) sum += runtime_.FaultHits(fault);
  return sum;
}

void StoreLife::AddFaults() {
  // A disk that is full soon (F54).
  const bool full = Chance(20);
  const uint64_t room = Draw(256u << 10);
  if (full && !plan_.faults_cut.contains(kFullDisk)) {
    runtime_.disk().set_capacity(runtime_.disk().used_bytes() + room);
  }
  for (uint64_t i = 0, n = 1 + Draw(3); i < n; ++i) AddFault(1 + static_cast<uint32_t>(i), DrawFault(80));
  // A transfer that rots once: the second read is good, so nobody may notice (F52).
  if (!Chance(50)) return;
  SimFault rot;
  rot.effect = SimEffect::kRotOnce;
  rot.operations = SimOps(SimOp::kRead);
  rot.skip = Draw(60);
  rot.count = 1;
  AddFault(kRotOnce, rot);
}

// Recovery meets errors of all kinds, of reading too.
void StoreLife::AddOpeningFaults() {
  if (plan_.only_fault) AddFault(kOpeningFault, *plan_.only_fault);
  if (!plan_.opening_faults) return;
  for (uint64_t i = 0, n = 1 + Draw(2); i < n; ++i) {
    SimFault fault = DrawFault(40);
    if (fault.effect == SimEffect::kError && fault.code == Code::kIoError && Chance(25)) {
      fault.operations = SimOps(SimOp::kRead, SimOp::kList, SimOp::kSize, SimOp::kExists, SimOp::kLock);
    }
    AddFault(kOpeningFault + static_cast<uint32_t>(i), fault);
  }
}

void StoreLife::EndOpeningFaults() {
  if (!plan_.opening_faults) return;
  runtime_.ClearFaults();
  runtime_.disk().set_capacity(kCapacity);
}

// F21, F56: writes resume by themselves once the fault is over.
Task<void> StoreLife::ProveResumed() {
  runtime_.ClearFaults();
  runtime_.disk().set_capacity(kCapacity);
  co_await SleepFor(kFaultsFeltNs);
  if (crashed()) co_return;
  faulty_ = false;
  for (size_t table = 0; table < StoreWorld::kTables; ++table) {
    if (!world_.tables[table].id || world_.tables[table].pending != StoreWorld::Table::Pending::kNone)
      continue;
    for (uint32_t p = 0; p < StoreWorld::kPartitions && !crashed(); ++p) {
      uint64_t number = world_.model.NextNumber();
      StoreModel::Op op;
      op.key = EncodeUserKey(*world_.tables[table].id, StoreWorld::PartitionName(p), StoreWorld::RowName(0));
      op.content = std::to_string(number) + ".0:resumed";
      std::vector<StoreModel::Op> ops{op};
      co_await WriteOps(table, std::move(ops), DurabilityLevel::kPower, number);
    }
  }
}

}  // namespace partita
