#include "engine/page_scan.h"

#include <algorithm>
#include <vector>

#include "engine/base/merging_iterator.h"
#include "engine/base/stored_value.h"

namespace partita {
namespace {

// A page holds its view for at most so long (DESIGN 3).
constexpr uint64_t kPageNanosMax = 5'000'000'000;

}  // namespace

PageScan::PageScan(const Shard::ScanRequest& request, Shard::RowSink* sink, Source source, Clock& clock)
    : request_(request),
      sink_(sink),
      source_(source),
      clock_(clock),
      forward_(request.direction == Direction::kForward),
      upper_(request.upper),
      deadline_ns_(request.deadline_ns) {
  PARTITA_ASSERT(request.only.empty() || forward_);
  const std::string& range_upper = source.range.upper;
  if (upper_.empty() || (!range_upper.empty() && range_upper < upper_)) upper_ = range_upper;
  if (deadline_ns_ == 0) deadline_ns_ = clock.MonotonicNanos() + kPageNanosMax;
}

Task<Status> PageScan::Run() {
  if (request_.only.empty()) PARTITA_CO_TRY(co_await Walk(request_.lower, upper_));
  for (const Shard::ScanInterval& interval : request_.only) {
    if (ended_) break;
    if (interval.upper <= request_.lower || (!upper_.empty() && interval.lower >= upper_)) continue;
    if (interval.IsPoint()) {
      PARTITA_CO_TRY(co_await ReadPoint(interval.lower));
    } else {
      std::string lower = std::max(interval.lower, request_.lower);
      std::string upper = upper_.empty() ? interval.upper : std::min(interval.upper, upper_);
      PARTITA_CO_TRY(co_await Walk(std::move(lower), std::move(upper)));
    }
  }
  if (!ended_) answer_.done = true;
  co_return Status();
}

IterState PageScan::Seek(const std::string& lower, const std::string& upper) {
  if (merged_ == nullptr) {
    const Direction direction = request_.direction;
    std::vector<std::unique_ptr<EntryIterator>> sources;
    sources.push_back(source_.view.active->NewIterator(direction));
    for (const MemtableRef& memtable : source_.view.frozen) {
      sources.push_back(memtable.table->NewIterator(direction));
    }
    IterOptions options;
    options.lower = lower;
    options.upper = request_.only.empty() ? upper : upper_;
    source_.range.levels->AddIterators(direction, options, &sources);
    merged_ = MakeMergingIterator(std::move(sources), direction);
  }
  if (forward_) return merged_->Seek(lower);
  return upper.empty() ? merged_->SeekToFirst() : merged_->Seek(upper);
}

Task<Status> PageScan::Walk(std::string lower, std::string upper) {
  have_last_ = false;
  IterState state = Seek(lower, upper);
  while (true) {
    while (state == IterState::kNeedsIo) {
      Status fetched = co_await merged_->Fetch();
      if (!fetched.ok()) {
        // The continuation asks again at the damage (F43, F44).
        std::string next = forward_ ? lower : upper;
        if (have_last_) next = forward_ ? last_key_ + '\0' : last_key_;
        co_return EndAt(std::move(next), std::move(fetched));
      }
      state = merged_->state();
    }
    if (state == IterState::kEnd) break;
    const Entry& entry = merged_->entry();
    if (forward_ ? !upper.empty() && entry.user_key >= upper : entry.user_key < lower) break;
    if (++entries_ % request_.entries_per_slice == 0) {
      co_await YieldIfDue();
      if (SliceEndsPage(entry.user_key)) break;
    }
    ++answer_.scanned;
    if (entry.version > source_.visible) {
      if (source_.doubt || source_.log.in_doubt()) {
        // The page ends before the key; the next one asks again.
        Status in_doubt = Status::Unknown("a write of this key is in doubt");
        co_return EndAt(ResumeBefore(entry.user_key), std::move(in_doubt));
      }
    } else if (!IsDecided(entry.user_key)) {
      if (Decide(entry.user_key, entry.version, entry.kind, entry.value)) break;
    }
    state = merged_->Next();
  }
  co_return Status();
}

Task<Status> PageScan::ReadPoint(const std::string& key) {
  if (++entries_ % request_.entries_per_slice == 0) {
    co_await YieldIfDue();
    if (SliceEndsPage(key)) co_return Status();
  }
  ++answer_.scanned;
  if (MeetsDoubt(source_.doubt, source_.log, source_.view, key, source_.visible)) {
    Status in_doubt = Status::Unknown("a write of this key is in doubt");
    co_return EndAt(key, std::move(in_doubt));
  }
  Lookup found = source_.view.GetFromMemtables(key, source_.visible);
  BlockPin pin;
  if (found.state == LookupState::kAbsent) {
    Result<Lookup> read = co_await source_.range.levels->Get(key, HashKey(key), source_.visible, &pin);
    if (!read.ok()) co_return EndAt(key, read.status());
    found = *read;
  }
  const bool is_put = found.state == LookupState::kFound;
  Decide(key, found.version, is_put ? EntryKind::kPut : EntryKind::kTombstone, found.value);
  co_return Status();
}

bool PageScan::Decide(std::string_view user_key, Version version, EntryKind kind, std::string_view value) {
  if (kind == EntryKind::kPut) {
    const std::string_view content = StoredValueContent(value);
    using Verdict = Shard::RowSink::Verdict;
    Verdict verdict = Verdict::kTaken;
    if (answer_.rows >= request_.limit || (answer_.rows > 0 && answer_.bytes >= request_.bytes_limit)) {
      verdict = Verdict::kStop;
    } else if (sink_ != nullptr) {
      verdict = sink_->Add(user_key, version, content);
    }
    if (verdict == Verdict::kStop) {
      answer_.next_key = ResumeBefore(user_key);
      return ended_ = true;
    }
    if (verdict == Verdict::kTaken) {
      ++answer_.rows;
      answer_.bytes += user_key.size() + content.size();
    }
  }
  last_key_.assign(user_key);
  have_last_ = true;
  return false;
}

// Only behind a decided key: every page gets on.
bool PageScan::SliceEndsPage(std::string_view user_key) {
  if (last_key_.empty()) return false;
  const bool goes_on = clock_.MonotonicNanos() <= deadline_ns_ && (sink_ == nullptr || sink_->GoOn());
  if (goes_on) return false;
  answer_.next_key = ResumeBefore(user_key);
  return ended_ = true;
}

Status PageScan::EndAt(std::string next_key, Status reason) {
  if (answer_.rows == 0) return reason;
  answer_.next_key = std::move(next_key);
  ended_ = true;
  return Status();
}

// The bound that brings the next page to this key; past it when the key is decided and this entry is one of
// its older versions. Forward bounds are inclusive, backward ones exclusive.
std::string PageScan::ResumeBefore(std::string_view user_key) const {
  std::string bound(user_key);
  if (IsDecided(user_key) == forward_) bound.push_back('\0');
  return bound;
}

}  // namespace partita
