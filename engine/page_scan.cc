#include "engine/page_scan.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "engine/base/merging_iterator.h"
#include "engine/base/prefetch.h"
#include "engine/base/stored_value.h"
#include "engine/base/text.h"
#include "engine/base/user_key.h"
#include "engine/scan_meter.h"

namespace partita {
namespace {

// Each value is a miss of the processor's caches. What a filter looks at is asked for of all rows at once,
constexpr size_t kPrefetchToDecide = 128;
// and of those that it wants, one's lines while the one before it is given.
constexpr size_t kPrefetchToGive = 2048;

// So many bytes of a row take a sink as long as an entry does otherwise: it may make text of them.
constexpr size_t kContentPerEntry = 4096;
uint32_t EntriesOfContent(std::string_view content) {
  return static_cast<uint32_t>(content.size() / kContentPerEntry);
}

}  // namespace

PageScan::PageScan(const ScanRequest& request, RowSink* sink, Source source, Clock& clock)
    : request_(request),
      sink_(sink),
      source_(source),
      clock_(clock),
      forward_(request.direction == Direction::kForward),
      upper_(NearerEnd(request.upper, source.range.upper)),
      deadline_ns_(request.deadline_ns),
      slice_left_(request.entries_per_slice - 1) {
  if (deadline_ns_ == 0) deadline_ns_ = clock.MonotonicNanos() + kPageNanosMax;
  if (!request.skip_damage) tables_.predicate = request.predicate;
  tables_.skipped = this;
  tables_.visible = source.visible;
}

ScanAnswer PageScan::answer() {
  answer_.blocks = tables_.counts;
  // What lies behind the end the next page will come to.
  for (SkippedSpan& span : answer_.skipped) {
    if (answer_.done) break;
    if (forward_) {
      span.upper = span.upper.empty() ? answer_.next_key : std::min(span.upper, answer_.next_key);
    } else {
      span.lower = std::max(span.lower, answer_.next_key);
    }
  }
  std::erase_if(answer_.skipped,
                [](const SkippedSpan& span) { return !span.upper.empty() && span.lower >= span.upper; });
  return std::move(answer_);
}

// The cursors come to the same part again when the page has several intervals.
void PageScan::Skipped(SkippedSpan span) {
  if (!request_.skip_damage) return EndWalkBefore(std::move(span));
  for (const SkippedSpan& known : answer_.skipped) {
    if (known.lower == span.lower && known.upper == span.upper) return;
  }
  answer_.skipped.push_back(std::move(span));
}

// Other sources may have much in front of the damage. The span is a cursor's, so it has both ends.
void PageScan::EndWalkBefore(SkippedSpan span) {
  const std::string_view until = tables_.until;
  const bool is_met = forward_ ? KeyRangesOverlap(span.lower, span.upper, walk_from_, until)
                               : KeyRangesOverlap(span.lower, span.upper, until, walk_from_);
  if (!is_met) return;
  tables_.until = std::move(forward_ ? span.lower : span.upper);
  damage_ = std::move(span.why);
}

bool PageScan::IsWithheld(std::string_view user_key, Version version) const {
  for (const SkippedSpan& span : answer_.skipped) {
    if (version <= span.version_max && IsInKeyRange(user_key, span.lower, span.upper)) return true;
  }
  return false;
}

Task<Status> PageScan::Run() {
  StartWatch();
  const std::span<const ScanInterval> only = request_.only;
  if (only.empty()) PARTITA_CO_TRY(co_await Walk(request_.lower, upper_));
  for (size_t i = 0; i < only.size() && !ended_; ++i) {
    const ScanInterval& interval = only[forward_ ? i : only.size() - 1 - i];
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
  NoteLoad();
  co_return Status();
}

IterState PageScan::Seek(const std::string& lower, const std::string& upper) {
  walk_from_ = forward_ ? lower : upper;
  tables_.until = forward_ ? upper : lower;
  damage_ = Status();
  if (merged_ == nullptr) {
    const Direction direction = request_.direction;
    std::vector<std::unique_ptr<EntryIterator>> sources;
    sources.push_back(source_.view.active->NewIterator(direction, kVersionMax, source_.visible));
    for (const MemtableRef& memtable : source_.view.frozen) {
      sources.push_back(memtable.table->NewIterator(direction, kVersionMax, source_.visible));
    }
    IterOptions options;
    // Of all intervals that this page may come to; the first one is at hand.
    options.lower = request_.only.empty() || forward_ ? lower : request_.lower;
    options.upper = request_.only.empty() || !forward_ ? upper : upper_;
    options.read_ahead = source_.read_ahead;
    options.entries_expected = request_.entries_expected;
    if (options.entries_expected == 0 && request_.limit < UINT32_MAX)
      options.entries_expected = request_.limit;
    if (request_.bytes_limit < UINT64_MAX) options.raw_bytes_expected = request_.bytes_limit;
    options.scan = &tables_;
    table_cursors_ = sources.size();
    source_.range.levels->AddIterators(direction, options, &sources);
    table_cursors_ = sources.size() - table_cursors_;
    merged_ = MakeMergingIterator(std::move(sources), direction);
  }
  if (forward_) return merged_->Seek(lower);
  return upper.empty() ? merged_->SeekToFirst() : merged_->Seek(upper);
}

// ---- What is known to be rowless.

bool PageScan::Leap(std::string* bound) {
  if (source_.rowless == nullptr || request_.skip_damage) return false;
  return source_.rowless->Leap(request_.direction, source_.visible, bound);
}

bool PageScan::LeapOn(std::string* lower, std::string* upper) {
  if (rowless_keys_ < look_at_) return false;
  look_at_ = std::clamp(2 * rowless_keys_, kLookAfter, rowless_keys_ + kLookAfterMax);
  std::string bound = last_key_;
  if (forward_) bound.push_back('\0');
  if (!Leap(&bound)) {
    if (request_.skip_damage) return false;  // The sweep would not come past the damage.
    if (rowless_keys_ >= RowlessStretches::kHintKeys && rowless_hint_.empty()) rowless_hint_ = last_key_;
    return false;
  }
  *(forward_ ? lower : upper) = std::move(bound);
  rowless_keys_ = 0;
  look_at_ = 1;  // There may be more close behind.
  PassDeleted();
  return true;
}

// Of each key that is decided.
void PageScan::CountRowless(EntryKind kind) {
  if (kind != EntryKind::kPut) {
    if (++rowless_keys_ == kPassAfter) PassDeleted();
    return;
  }
  if (rowless_keys_ > 0) {
    rowless_keys_ = 0;
    look_at_ = kLookAfter;
  }
  tables_.deleted = nullptr;
}

// From here on, until a row is met.
void PageScan::PassDeleted() {
  if (request_.skip_damage) return;
  if (deletes_ == nullptr) {
    deletes_ = std::make_unique<MemtableDeletes>(source_.view, request_.direction, source_.visible);
  }
  tables_.deleted = deletes_.get();
}

bool PageScan::LeapDeleted(std::string* lower, std::string* upper) {
  if (tables_.deleted == nullptr || table_cursors_ > 1) return false;
  const std::string_view key = merged_->entry().user_key;
  const MemtableDeletes::Stretch& found = deletes_->found();
  if (found.entries < kLeapEntries || key < found.lower || key >= found.upper) return false;
  std::string end = forward_ ? found.upper : found.lower;
  if (IsBeyondWalk(end)) end = tables_.until;
  // The last that was deleted may lie behind what its cursor shows, or the walk wants.
  last_key_ = (forward_ ? found.last_key < end : found.last_key >= end) ? found.last_key : std::string(key);
  have_last_ = true;
  std::string* bound = forward_ ? lower : upper;
  *bound = std::move(end);
  answer_.scanned += found.entries;
  SpendSlice(static_cast<uint32_t>(std::min<uint64_t>(found.entries, UINT32_MAX)));
  rowless_keys_ += static_cast<uint32_t>(found.entries);
  if (source_.rowless != nullptr && rowless_hint_.empty()) rowless_hint_ = key;
  deletes_->Forget();
  Leap(bound);
  return true;
}

Task<Status> PageScan::Walk(std::string lower, std::string upper) {
  have_last_ = false;
  rowless_keys_ = 0;
  look_at_ = 1;
  tables_.deleted = nullptr;
  const bool leapt = Leap(forward_ ? &lower : &upper);
  if (leapt && !upper.empty() && lower >= upper) co_return Status();
  // Who looks for what is rowless (rowless_sweep.h) begins there, too.
  if (leapt || source_.rowless == nullptr) PassDeleted();
  IterState state = Seek(lower, upper);
  while (true) {
    while (state == IterState::kNeedsIo) {
      Status fetched = co_await merged_->Fetch();
      if (!fetched.ok()) co_return EndAt(ResumeUndecided(), std::move(fetched));
      state = merged_->state();
    }
    if (state == IterState::kEnd) break;
    if (run_.empty()) {
      const std::string_view key = merged_->entry().user_key;
      if (IsBeyondWalk(key)) break;
      if (merged_->entry().kind == EntryKind::kMilestone) {
        co_await YieldIfDue();
        if (MilestoneEndsPage(key)) break;
        state = merged_->Next();
        continue;
      }
      if (request_.meter != nullptr) {
        Status admitted = request_.meter->AdmitFirst(key);
        if (!admitted.ok()) co_return EndAt(ResumeBefore(key), std::move(admitted));
      }
      StartRun();
    }
    if (SliceIsUp()) {
      co_await YieldIfDue();
      StartWatch();
      if (SliceEndsPage(CurrentKey())) break;
    }
    if (run_.empty() && LeapDeleted(&lower, &upper)) {
      if (!upper.empty() && lower >= upper) co_return Status();
      state = Seek(lower, upper);
      continue;
    }
    const Step step = run_.empty() ? DecideEntry(merged_->entry()) : DecideRun();
    if (step == Step::kEnded) break;
    if (step == Step::kInDoubt) {
      // The page ends before the key; the next one asks again.
      Status in_doubt = Status::Unknown("a write of this key is in doubt");
      co_return EndAt(ResumeBefore(CurrentKey()), std::move(in_doubt));
    }
    if (step == Step::kStay) continue;
    const bool leapt = LeapOn(&lower, &upper);
    if (!leapt) state = run_.empty() ? merged_->Next() : merged_->SkipRun(run_);
    run_ = OpenRun();
    if (!leapt) continue;
    if (!upper.empty() && lower >= upper) co_return Status();
    state = Seek(lower, upper);
  }
  // The continuation asks again at the damage (F43, F44).
  if (!ended_ && !damage_.ok()) co_return EndAt(ResumeUndecided(), std::move(damage_));
  co_return Status();
}

bool PageScan::IsBeyondWalk(std::string_view key) const {
  const std::string_view until = tables_.until;
  return forward_ ? !until.empty() && key >= until : key < until;
}

bool PageScan::SliceIsUp() {
  if (slice_left_ > 0) return false;
  slice_left_ = request_.entries_per_slice;
  NoteLoad();
  return true;
}

void PageScan::NoteLoad() {
  if (source_.load == nullptr || answer_.scanned <= noted_entries_) return;
  const uint64_t entries = answer_.scanned - std::exchange(noted_entries_, answer_.scanned);
  const uint64_t bytes = answer_.bytes - std::exchange(noted_bytes_, answer_.bytes);
  source_.load->Note(LoadKind::kScan, last_key_.empty() ? request_.lower : last_key_, entries, bytes,
                     watch_.Nanos());
}

void PageScan::StartWatch() {
  if (source_.load != nullptr) watch_ = source_.load->StartWatch(request_.entries_per_slice);
}

bool PageScan::IsUncertain(Version version) const {
  return version > source_.visible && (source_.doubt || source_.log.in_doubt());
}

std::string_view PageScan::CurrentKey() {
  if (run_.empty()) return merged_->entry().user_key;
  merged_->RunKeyTo(run_.at, &key_);
  return key_;
}

PageScan::Step PageScan::DecideEntry(const Entry& entry) {
  --slice_left_;
  ++answer_.scanned;
  if (IsUncertain(entry.version)) return Step::kInDoubt;
  if (entry.version > source_.visible || IsDecided(entry.user_key)) return Step::kPast;
  CountRowless(entry.kind);
  return Decide(entry, merged_->pin()) ? Step::kEnded : Step::kPast;
}

// ---- Runs.

// Leaves run_ empty when the current entry is to be decided alone.
void PageScan::StartRun() {
  if (!answer_.skipped.empty()) return;  // Each key is to be held against what was skipped.
  if (alone_ > 0) {
    --alone_;
    return;
  }
  // The sources know the bounds of the whole page; one interval of several ends before them, or at damage.
  const bool bounded = request_.only.empty() && damage_.ok();
  std::optional<std::string_view> before;
  if (!bounded && forward_) before = tables_.until;
  static_cast<EntryRun&>(run_) = merged_->Run(before);
  if (run_.end - run_.begin < 2) {
    // Sources that take turns: runs would cost more than they save.
    alone_ = kEntriesAlone;
    run_ = OpenRun();
    return;
  }
  if (!bounded && !forward_) {
    merged_->RunKeyTo(run_.begin, &key_);
    if (IsBeyondWalk(key_)) {
      run_ = OpenRun();
      return;
    }
  }
  run_.is_over = false;
  run_.is_decided = IsDecided(merged_->entry().user_key);
  run_.at = run_.begin;
  if (forward_) return;
  run_.at = run_.end - 1;
  while (run_.columns->same_key_as_before(run_.at)) --run_.at;
  run_.group_begin = run_.at;
}

void PageScan::StepInRun() {
  const uint32_t next = run_.at + 1;
  if (next < run_.end && (forward_ || run_.columns->same_key_as_before(next))) {
    run_.at = next;
    run_.is_decided = run_.is_decided && run_.columns->same_key_as_before(next);
    return;
  }
  if (forward_ || run_.group_begin == run_.begin) {
    run_.is_over = true;
    return;
  }
  uint32_t newest = run_.group_begin - 1;
  while (run_.columns->same_key_as_before(newest)) --newest;
  run_.at = run_.group_begin = newest;
  run_.is_decided = false;
}

// Decides as much of the run as the slice allows.
PageScan::Step PageScan::DecideRun() {
  const uint64_t scanned_before = answer_.scanned;
  const Step step = Gather();
  if (gathered_ > 0 && GiveGathered(scanned_before)) return Step::kEnded;
  return step;
}

// Goes over entries of the run: what decides its key and is a put is left in rows_.
PageScan::Step PageScan::Gather() {
  const EntryColumns& columns = *run_.columns;
  const uint32_t budget = std::min<uint32_t>(slice_left_, kRowsAtOnceMax);
  uint32_t looked = 0;
  uint32_t for_content = 0;  // Of the slice.
  uint32_t last_decided = UINT32_MAX;
  Step step = Step::kStay;
  gathered_ = 0;
  while (looked + for_content < budget && step == Step::kStay) {
    const uint32_t at = run_.at;
    ++looked;
    if (!run_.is_decided) {
      const Version version = columns.version(at);
      if (version <= source_.visible) {
        run_.is_decided = true;
        CountRowless(columns.kind(at));
        last_decided = at;
        if (columns.kind(at) == EntryKind::kPut) {
          const std::string_view content = StoredValueContent(columns.value(at));
          PrefetchLines(content, kPrefetchToDecide);
          for_content += EntriesOfContent(content);
          rows_[gathered_] = {version, content};
          gathered_from_[gathered_++] = {at, looked};
        }
      } else if (IsUncertain(version)) {
        step = Step::kInDoubt;
        break;
      }
    }
    StepInRun();
    if (run_.is_over) step = Step::kPast;
  }
  SpendSlice(looked + for_content);
  answer_.scanned += looked;
  if (last_decided != UINT32_MAX) {
    merged_->RunKeyTo(last_decided, &last_key_);
    have_last_ = true;
  }
  return step;
}

bool PageScan::GiveGathered(uint64_t scanned_before) {
  const auto end_before = [&](uint32_t i) {
    answer_.scanned = scanned_before + gathered_from_[i].looked;
    merged_->RunKeyTo(gathered_from_[i].entry, &key_);
    have_last_ = false;  // It went ahead of what the page gives.
    MeterGathered(i);
    return EndBeforeRow(key_);
  };
  if (IsFull()) return end_before(0);
  uint64_t wanted = sink_ == nullptr ? UINT64_MAX : sink_->Wanted({rows_.data(), gathered_});
  if (gathered_ < 64) wanted &= (uint64_t{1} << gathered_) - 1;
  const BlockPin* pin = merged_->pin();
  const auto ask_for_first = [&] {
    if (wanted != 0) PrefetchLines(rows_[std::countr_zero(wanted)].content, kPrefetchToGive);
  };
  ask_for_first();
  while (wanted != 0) {
    const uint32_t i = static_cast<uint32_t>(std::countr_zero(wanted));
    wanted &= wanted - 1;
    ask_for_first();
    merged_->RunKeyTo(gathered_from_[i].entry, &key_);
    if (!GiveRow(key_, rows_[i], pin)) return end_before(i);
    if (IsFull() && i + 1 < gathered_) return end_before(i + 1);
  }
  MeterGathered(gathered_);
  return false;
}

// Keys are built where rows are large or partitions change, and of the ends of a run.
void PageScan::MeterGathered(uint32_t count) {
  if (request_.meter == nullptr || count == 0) return;
  merged_->RunKeyTo(gathered_from_[0].entry, &metered_first_);
  merged_->RunKeyTo(gathered_from_[count - 1].entry, &metered_last_);
  const size_t longest = std::max(metered_first_.size(), metered_last_.size());
  const bool one_by_one = longest > ScanMeter::kSmallKeyBytes ||
                          PartitionPrefix(metered_first_) != PartitionPrefix(metered_last_);
  uint32_t small = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (!one_by_one && rows_[i].content.size() <= ScanMeter::kSmallRowBytes) {
      ++small;
      continue;
    }
    merged_->RunKeyTo(gathered_from_[i].entry, &metered_last_);
    request_.meter->Note(metered_last_, rows_[i].content);
  }
  if (small > 0) request_.meter->NoteSmall(metered_first_, small);
}

Task<Status> PageScan::ReadPoint(const std::string& key) {
  if (SliceIsUp()) {
    co_await YieldIfDue();
    StartWatch();
    if (SliceEndsPage(key)) co_return Status();
  }
  if (request_.meter != nullptr) {
    Status admitted = request_.meter->AdmitFirst(key);
    if (!admitted.ok()) co_return EndAt(ResumeBefore(key), std::move(admitted));
  }
  --slice_left_;
  ++answer_.scanned;
  if (MeetsDoubt(source_.doubt, source_.log, source_.view, key, source_.visible)) {
    Status in_doubt = Status::Unknown("a write of this key is in doubt");
    co_return EndAt(ResumeBefore(key), std::move(in_doubt));
  }
  Lookup found = source_.view.GetFromMemtables(key, source_.visible);
  BlockPin pin;
  if (found.state == LookupState::kAbsent) {
    Result<Lookup> read = co_await source_.range.levels->Get(key, HashKey(key), source_.visible, &pin);
    if (read.code() == Code::kCorruption && request_.skip_damage) {
      Skipped({key, key + '\0', kVersionMax, read.status()});
      last_key_ = key;
      have_last_ = true;
      co_return Status();
    }
    if (!read.ok()) co_return EndAt(ResumeBefore(key), read.status());
    found = *read;
  }
  const bool is_put = found.state == LookupState::kFound;
  if (!is_put && request_.meter != nullptr) request_.meter->NoteSmall(key, 1);
  Decide({key, found.version, is_put ? EntryKind::kPut : EntryKind::kTombstone, found.value},
         pin ? &pin : nullptr);
  co_return Status();
}

bool PageScan::Decide(const Entry& entry, const BlockPin* pin) {
  if (entry.kind == EntryKind::kPut && !IsWithheld(entry.user_key, entry.version)) {
    const KeylessRow row{entry.version, StoredValueContent(entry.value)};
    SpendSlice(EntriesOfContent(row.content));
    if (IsFull()) return EndBeforeRow(entry.user_key);
    const bool wanted = sink_ == nullptr || (sink_->Wanted({&row, 1}) & 1) != 0;
    if (wanted && !GiveRow(entry.user_key, row, pin)) return EndBeforeRow(entry.user_key);
    if (request_.meter != nullptr) request_.meter->Note(entry.user_key, row.content);
  }
  last_key_.assign(entry.user_key);
  have_last_ = true;
  return false;
}

// False: the sink stops the page before the row.
bool PageScan::GiveRow(std::string_view user_key, const KeylessRow& row, const BlockPin* pin) {
  using Verdict = RowSink::Verdict;
  Verdict verdict = Verdict::kTaken;
  if (sink_ != nullptr) {
    verdict = pin == nullptr ? sink_->Add(user_key, row.version, row.content)
                             : sink_->AddPinned(user_key, row.version, row.content, *pin);
  }
  if (verdict == Verdict::kStop) return false;
  if (verdict == Verdict::kTaken) {
    ++answer_.rows;
    answer_.bytes += user_key.size() + row.content.size();
  }
  return true;
}

bool PageScan::EndBeforeRow(std::string_view user_key) {
  answer_.next_key = ResumeBefore(user_key);
  return ended_ = true;
}

bool PageScan::GoesOn() {
  return clock_.MonotonicNanos() <= deadline_ns_ &&
         (sink_ == nullptr || sink_->GoOnBehind(answer_.scanned, tables_.counts)) &&
         (request_.meter == nullptr || request_.meter->Settle());
}

// Only behind a decided key: every page gets on.
bool PageScan::SliceEndsPage(std::string_view user_key) {
  return !last_key_.empty() && !GoesOn() && EndBeforeRow(user_key);
}

// Of what lies in front of a milestone nothing is wanted, so the page gets on there as well. But milestones
// are cut from keys, and a continuation must be text: one that ends within a character is let go by.
bool PageScan::MilestoneEndsPage(std::string_view milestone) {
  if (!IsValidOrderedText(milestone.substr(std::min(kTableIdSize, milestone.size())))) return false;
  const std::string next = ResumeBefore(milestone);
  const bool gets_on = forward_ ? next > request_.lower : upper_.empty() || next < upper_;
  return gets_on && !GoesOn() && EndBeforeRow(milestone);
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

// The same behind all keys that the walk has decided.
std::string PageScan::ResumeUndecided() const {
  if (!have_last_) return std::string(walk_from_);
  return forward_ ? last_key_ + '\0' : last_key_;
}

}  // namespace partita
