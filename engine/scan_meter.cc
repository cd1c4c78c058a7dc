#include "engine/scan_meter.h"

#include "engine/base/user_key.h"

namespace partita {

namespace {

// The partition that a bound lies in; what stands for none when it lies between partitions.
std::string PartitionAt(std::string_view bound) {
  const size_t end = bound.find('\0', kTableIdSize);
  if (end != std::string_view::npos) return std::string(bound.substr(0, end + 1));
  return std::string(bound.substr(0, kTableIdSize)) + '\0';
}

}  // namespace

Status ScanMeter::Admit(std::string_view near_end) {
  Throttle::Limits limits;
  const std::string partition = PartitionAt(near_end);
  if (!throttle_.FindLimits(partition, &limits)) return Status();
  return throttle_.Check(limits, partition);
}

Status ScanMeter::AdmitRow(std::string_view user_key) {
  came_to_row_ = true;
  return Enter(user_key) ? throttle_.Check(limits_, partition_) : Status();
}

bool ScanMeter::Enter(std::string_view user_key) {
  const std::string_view partition = PartitionPrefix(user_key);
  if (partition != partition_) {
    if (tokens_ > 0) throttle_.Owe(limits_, partition_, tokens_);
    tokens_ = 0;
    partition_ = partition;
    limits_ = {};
    throttle_.FindLimits(partition_, &limits_);
  }
  return limits_.any();
}

void ScanMeter::Note(std::string_view user_key, std::string_view content) {
  if (Enter(user_key)) tokens_ += throttle_.CostOf(limits_.raw, user_key, content);
}

void ScanMeter::NoteSmall(std::string_view user_key, uint64_t rows) {
  if (Enter(user_key)) tokens_ += rows;
}

bool ScanMeter::Settle() {
  if (partition_.empty() || !limits_.any()) return true;
  if (tokens_ > 0) throttle_.Owe(limits_, partition_, tokens_);
  tokens_ = 0;
  return throttle_.Gives(limits_, partition_);
}

}  // namespace partita
