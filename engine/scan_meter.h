#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/entry_iterator.h"
#include "engine/base/ids.h"
#include "engine/base/status.h"
#include "engine/throttle.h"

namespace partita {

// Charges what one page of a scan looks at, whether it is given or not: each slice of rows once it was looked
// at, so that a page may leave its last partition, and its account, one slice in debt. Then it ends, and the
// next one is admitted when the debt is paid.
//
// Belongs to one page; used by one thread at a time. The throttle outlives it.
class ScanMeter {
 public:
  // Small rows cost 1 whatever their keys are, if those at both ends of a run of them are small, too.
  static constexpr size_t kSmallRowBytes = 256;
  static constexpr size_t kSmallKeyBytes = 128;

  explicit ScanMeter(Throttle& throttle) : throttle_(throttle) {}

  // Ok when a page of [lower, upper) is admitted: it then gets on by a slice, whatever it costs. Goes by the
  // partition that it begins in; where its bounds do not tell that, by its account and table. kThrottled.
  Status Admit(std::string_view lower, std::string_view upper, Direction direction);

  // The same once the page comes to its first row, where its bounds do not tell the partition.
  Status AdmitFirst(std::string_view user_key) { return came_to_row_ ? Status() : AdmitRow(user_key); }

  // Notes a row that was looked at.
  void Note(std::string_view user_key, std::string_view content);
  // Notes `rows` small ones of the partition of `user_key`.
  void NoteSmall(std::string_view user_key, uint64_t rows);

  // Charges what was noted. False: the page must end, since the partition that it is in, or the account,
  // owes.
  bool Settle();

  // The partition whose limits did not admit the page, with its separator; empty where they did, and
  // where it is the table's own. Valid until the next call.
  std::string_view refused_partition() const { return refused_partition_; }

 private:
  Status AdmitRow(std::string_view user_key);
  // False: it has no limits.
  bool Enter(std::string_view user_key);

  Throttle& throttle_;
  bool came_to_row_ = false;
  std::string partition_;  // Which the page is in; empty: none yet.
  Throttle::Limits limits_;
  uint64_t tokens_ = 0;  // Noted and not charged yet.
  std::string refused_partition_;
};

}  // namespace partita
