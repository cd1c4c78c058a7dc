#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/entry_iterator.h"
#include "engine/base/ids.h"
#include "engine/base/status.h"
#include "engine/throttle.h"

namespace partita {

// Charges what one page of a scan looks at, whether it is given or not. Of each slice of rows the worth of as
// many small ones is taken before, as an advance, and the difference paid behind it. So pages that come at
// once are let through one slice after another, and each leaves the partition, and its account, at most in
// the debt that its last slice made beyond that: of rows that are large, or of a partition that it came to
// in the midst of a slice. Then it ends, and the next one is admitted when the debt is paid.
//
// Belongs to one page; used by one thread at a time. The throttle outlives it.
class ScanMeter {
 public:
  // Small rows cost 1 whatever their keys are, if those at both ends of a run of them are small, too.
  static constexpr size_t kSmallRowBytes = 256;
  static constexpr size_t kSmallKeyBytes = 128;

  ScanMeter(Throttle& throttle, uint32_t rows_per_slice)
      : throttle_(throttle), rows_per_slice_(rows_per_slice) {}
  // What is left of the advance comes back.
  ~ScanMeter();
  ScanMeter(const ScanMeter&) = delete;
  ScanMeter& operator=(const ScanMeter&) = delete;

  // Ok when a page of [lower, upper) is admitted: it then gets on by a slice, whatever it costs. Goes by the
  // partition that it begins in; where its bounds do not tell that, by its account and table, of which
  // nothing is taken yet. kThrottled.
  Status Admit(std::string_view lower, std::string_view upper, Direction direction);

  // The same once the page comes to its first row, where that is of another partition than the bounds tell.
  Status AdmitFirst(std::string_view user_key) { return came_to_row_ ? Status() : AdmitRow(user_key); }

  // Notes a row that was looked at.
  void Note(std::string_view user_key, std::string_view content);
  // Notes `rows` small ones of the partition of `user_key`.
  void NoteSmall(std::string_view user_key, uint64_t rows);

  // Pays for what was noted, and takes the advance for the next slice. False: there is none, so the page must
  // end.
  bool Settle();
  // Pays for what was noted; nothing is left to come back.
  void Close();

  // The partition whose limits did not admit the page, with its separator; empty where they did, and
  // where it is the table's own. Valid until the next call.
  std::string_view refused_partition() const { return refused_partition_; }

 private:
  Status AdmitRow(std::string_view user_key);
  // False: it has no limits.
  bool Enter(std::string_view user_key);
  // Of the partition that the page is in.
  Status TakeAdvance();
  // The same silently; false: it would not be given.
  bool TryTakeAdvance();

  Throttle& throttle_;
  const uint32_t rows_per_slice_;
  bool came_to_row_ = false;
  std::string partition_;  // Which the page is in; empty: none yet.
  Throttle::Limits limits_;
  uint64_t tokens_ = 0;   // Noted and not paid yet.
  uint64_t advance_ = 0;  // Taken for them.
  std::string refused_partition_;
};

}  // namespace partita
