#include "engine/read_meter.h"

#include "engine/base/user_key.h"

namespace partita {

ReadMeter::~ReadMeter() {
  if (advance_ > cost_) throttle_.GiveBack(limits_, PartitionPrefix(user_key_), advance_ - cost_);
}

Status ReadMeter::Admit() {
  if (!throttle_.on()) return Status();
  const std::string_view partition = PartitionPrefix(user_key_);
  if (!throttle_.FindLimits(partition, &limits_)) return Status();
  const uint64_t advance = Throttle::AdvanceOf(limits_, kAdvance);
  // Promised is what it will most likely cost.
  if (!throttle_.TryTakeByNow(limits_, partition, advance, throttle_.Recent())) {
    return throttle_.Refuse(limits_, partition, 1);
  }
  advance_ = advance;
  return Status();
}

void ReadMeter::Found(std::string_view content) {
  if (advance_ == 0) return;
  cost_ = throttle_.CostOf(limits_.raw, user_key_, content);
  if (cost_ > advance_) throttle_.Owe(limits_, PartitionPrefix(user_key_), cost_ - advance_);
}

}  // namespace partita
