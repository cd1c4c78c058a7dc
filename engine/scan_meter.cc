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

ScanMeter::~ScanMeter() {
  if (advance_ > tokens_) throttle_.GiveBack(limits_, partition_, advance_ - tokens_);
}

Status ScanMeter::Admit(std::string_view lower, std::string_view upper, Direction direction) {
  const std::string_view begin = PartitionAt(direction == Direction::kForward ? lower : upper, direction);
  if (!begin.empty()) {
    Enter(begin);
    return TakeAdvance();
  }
  std::string table(lower.substr(0, kTableIdSize));
  table.push_back('\0');
  Throttle::Limits limits;
  if (!throttle_.FindLimits(table, &limits)) return Status();
  limits.partition_token = 0;  // The table's alone.
  return limits.any() ? throttle_.Check(limits, table, Throttle::AdvanceOf(limits, rows_per_slice_))
                      : Status();
}

Status ScanMeter::AdmitRow(std::string_view user_key) {
  came_to_row_ = true;
  Enter(user_key);
  return advance_ > 0 ? Status() : TakeAdvance();
}

Status ScanMeter::TakeAdvance() {
  if (TryTakeAdvance()) return Status();
  refused_partition_ = partition_;
  return throttle_.Refuse(limits_, partition_, Throttle::AdvanceOf(limits_, rows_per_slice_));
}

bool ScanMeter::TryTakeAdvance() {
  if (!limits_.any()) return true;
  const uint64_t advance = Throttle::AdvanceOf(limits_, rows_per_slice_);
  if (!throttle_.TryTakeByNow(limits_, partition_, advance, throttle_.Recent())) return false;
  advance_ = advance;
  return true;
}

bool ScanMeter::Enter(std::string_view user_key) {
  const std::string_view partition = PartitionPrefix(user_key);
  if (partition != partition_) {
    Close();
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
  Close();
  return TryTakeAdvance();
}

void ScanMeter::Close() {
  if (tokens_ > advance_) throttle_.Owe(limits_, partition_, tokens_ - advance_);
  if (advance_ > tokens_) throttle_.GiveBack(limits_, partition_, advance_ - tokens_);
  tokens_ = advance_ = 0;
}

}  // namespace partita
