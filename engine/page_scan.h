#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "engine/base/clock.h"
#include "engine/base/entry_iterator.h"
#include "engine/shard.h"

namespace partita {

// Whether a read of the key at `visible` meets an entry above it that may turn out either way while the
// shard is in doubt (F15). `doubt` was read before the visible version: doubt that ended in between counts.
bool MeetsDoubt(bool doubt, const CommitLog& log, const ReadView& view, std::string_view user_key,
                Version visible);

// One page of Shard::Scan: one point in time of one range.
//
// Steps: 1. Each interval is walked by a merging iterator, or, when it is one key, read as a point.
// 2. Of each key the newest visible version decides; versions below it are hidden. 3. Where the page ends
// early, `next_key` is a key that was not decided, and none before it is: so nothing is given twice or
// passed over.
//
// Lives through one call of Run, which is all it is for; the arguments outlive it.
class PageScan {
 public:
  struct Source {
    const ReadView& view;  // Pinned.
    const RangeView& range;
    const CommitLog& log;
    Version visible;  // Read after the view.
    bool doubt;       // Read before `visible`.
  };
  PageScan(const Shard::ScanRequest& request, Shard::RowSink* sink, Source source, Clock& clock);

  // Contract and errors: Shard::Scan. After ok, answer().
  Task<Status> Run();
  Shard::ScanAnswer answer() { return std::move(answer_); }

 private:
  Task<Status> Walk(std::string lower, std::string upper);
  Task<Status> ReadPoint(const std::string& key);
  IterState Seek(const std::string& lower, const std::string& upper);
  // Each true: the page has ended, and where it goes on is set.
  bool Decide(std::string_view user_key, Version version, EntryKind kind, std::string_view value);
  bool SliceEndsPage(std::string_view user_key);
  // What was found stands, and the next page asks again at `next_key`; with nothing found, the reason.
  Status EndAt(std::string next_key, Status reason);
  std::string ResumeBefore(std::string_view user_key) const;
  bool IsDecided(std::string_view user_key) const { return have_last_ && user_key == last_key_; }

  const Shard::ScanRequest& request_;
  Shard::RowSink* sink_;
  const Source source_;
  Clock& clock_;
  const bool forward_;
  std::string upper_;  // Of the page, within the range.
  uint64_t deadline_ns_;
  std::unique_ptr<EntryIterator> merged_;
  uint32_t entries_ = 0;
  std::string last_key_;  // The last key decided; entries of it that follow are older versions.
  bool have_last_ = false;
  bool ended_ = false;
  Shard::ScanAnswer answer_;
};

}  // namespace partita
