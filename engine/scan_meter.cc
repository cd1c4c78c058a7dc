#include "engine/scan_meter.h"

#include "engine/base/user_key.h"

namespace partita {

namespace {

// The partition that a page begins in, with its separator; empty where its bound does not say. An upper bound
// is no key of the page: a partition's first one is the end of what lies in front of it.
std::string_view PartitionAt(std::string_view bound, Direction direction) {
  const size_t end = bound.find('\0', kTableIdSize);
  if (end == bound.npos || (direction == Direction::kBackward && end + 1 == bound.size())) return {};
  return bound.substr(0, end + 1);
}

}  // namespace

Status ScanMeter::Admit(std::string_view lower, std::string_view upper, Direction direction) {
  std::string partition(PartitionAt(direction == Direction::kForward ? lower : upper, direction));
  const bool is_known = !partition.empty();
  if (!is_known) partition.assign(lower.substr(0, kTableIdSize)).push_back('\0');
  Throttle::Limits limits;
  if (!throttle_.FindLimits(partition, &limits)) return Status();
  if (!is_known) limits.partition_token = 0;  // The table's alone.
  if (!limits.any()) return Status();
  Status admitted = throttle_.Check(limits, partition);
  if (is_known && !admitted.ok()) refused_partition_ = partition;
  return admitted;
}

Status ScanMeter::AdmitRow(std::string_view user_key) {
  came_to_row_ = true;
  if (!Enter(user_key)) return Status();
  Status admitted = throttle_.Check(limits_, partition_);
  if (!admitted.ok()) refused_partition_ = partition_;
  return admitted;
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
