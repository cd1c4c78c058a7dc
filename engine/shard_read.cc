#include "engine/base/stored_value.h"
#include "engine/page_scan.h"
#include "engine/shard.h"

// Reads never hop (DESIGN 3): the calling thread takes the view, then the visible version, then
// searches. View first, version second: a version so loaded is never below what the view's files
// dropped.

namespace partita {

bool MeetsDoubt(bool doubt, const CommitLog& log, const ReadView& view, std::string_view user_key,
                Version visible) {
  if (!doubt && !log.in_doubt()) return false;
  Lookup newest = view.GetFromMemtables(user_key, kVersionMax);
  return newest.state != LookupState::kAbsent && newest.version > visible;
}

namespace {

Shard::ReadAnswer Answer(const Lookup& lookup, std::string* content) {
  Shard::ReadAnswer answer;
  if (lookup.state != LookupState::kFound) return answer;
  answer.state = Shard::ReadState::kFound;
  answer.version = lookup.version;
  content->assign(StoredValueContent(lookup.value));
  return answer;
}

}  // namespace

Shard::ReadAnswer Shard::TryGet(std::string_view user_key, std::string* content) {
  ReadViewPublisher::Guard view(views_);
  bool doubt = commit_log_->in_doubt();
  Version visible = commit_log_->visible_version();
  const RangeView* range = view->FindRange(user_key);
  if (range == nullptr) return {ReadState::kMoved, {}};
  if (MeetsDoubt(doubt, *commit_log_, *view, user_key, visible)) return {ReadState::kInDoubt, {}};
  const KeyHash hash = HashKey(user_key);
  context_.cache.PrefetchRowPlace(hash.key);
  Lookup found = view->GetFromMemtables(user_key, visible);
  if (found.state != LookupState::kAbsent) return Answer(found, content);
  BlockPin pin;
  TableLookup looked = range->levels->TryGet(user_key, hash, visible, &pin);
  if (looked.needs_io) return {ReadState::kNeedsIo, {}};
  return Answer(looked.lookup, content);
}

Task<Result<Shard::ReadAnswer>> Shard::Get(std::string_view user_key, std::string* content) {
  ViewPin view = views_.Pin();
  bool doubt = commit_log_->in_doubt();
  Version visible = commit_log_->visible_version();
  const RangeView* range = view->FindRange(user_key);
  if (range == nullptr) co_return ReadAnswer{ReadState::kMoved, {}};
  if (MeetsDoubt(doubt, *commit_log_, *view, user_key, visible))
    co_return ReadAnswer{ReadState::kInDoubt, {}};
  const KeyHash hash = HashKey(user_key);
  context_.cache.PrefetchRowPlace(hash.key);
  Lookup found = view->GetFromMemtables(user_key, visible);
  if (found.state != LookupState::kAbsent) co_return Answer(found, content);
  BlockPin pin;
  PARTITA_CO_ASSIGN(Lookup read, co_await range->levels->Get(user_key, hash, visible, &pin));
  co_return Answer(read, content);
}

Task<Result<ScanAnswer>> Shard::Scan(const ScanRequest& request, RowSink* sink) {
  ViewPin view = views_.Pin();
  bool doubt = commit_log_->in_doubt();
  Version visible = commit_log_->visible_version();
  const RangeView* range = view->FindRange(request.lower);
  if (range == nullptr) co_return Status::Moved("shard does not own the key");
  // Asked by an older map: what lies behind the range would be taken for scanned.
  if (!request.upper.empty() && !range->upper.empty() && range->upper < request.upper) {
    co_return Status::Moved("shard does not own all keys");
  }
  // A stretch that was found in a newer view may say of a batch what it deleted, where this one lacks what it
  // put. Looked at behind `visible`: what is in newer views alone is above it.
  const bool is_current = views_.IsCurrent(*view);
  const PageScan::Source source{.view = *view,
                                .range = *range,
                                .log = *commit_log_,
                                .visible = visible,
                                .doubt = doubt,
                                .read_ahead = &context_.read_ahead,
                                .load = &context_.load,
                                .rowless = is_current ? &rowless_.stretches() : nullptr};
  PageScan scan(request, sink, source, context_.runtime.clock());
  PARTITA_CO_TRY(co_await scan.Run());
  if (!scan.rowless_hint().empty()) rowless_.Hint(scan.rowless_hint());
  if (scan.seek_bytes() > 0) NoteSeeks(scan.seek_bytes());
  co_return scan.answer();
}

uint64_t Shard::EntriesWithin(std::string_view lower, std::string_view upper) {
  ViewPin view = views_.Pin();
  const RangeView* range = view->FindRange(lower);
  if (range == nullptr) return 0;
  double entries = 0;
  for (size_t level = 0; level < kLevels; ++level) {
    for (const FileRef& file : range->levels->level(level)) {
      if (!KeyRangesOverlap(file.first(), file.end(), lower, upper)) continue;
      uint64_t bytes = 0;
      if (file.first() >= lower && (upper.empty() || file.end() <= upper)) {
        bytes = BytesWithin(file);
      } else {
        FileRef part = file;
        if (CutTo(lower, upper, &part)) bytes = BytesWithin(part);
      }
      entries += static_cast<double>(file.info->entry_count) * static_cast<double>(bytes) /
                 static_cast<double>(file.info->file_size);
    }
  }
  return static_cast<uint64_t>(entries);
}

// Level 0 may be due for what scans have read of it (PickLevel0ForSeeks). Looked at once they have read a
// flush's worth more; not while a merge runs, nor where one failed and waits to be tried again (F22).
void Shard::NoteSeeks(uint64_t bytes) {
  const uint64_t look_each = std::max<uint64_t>(FlushBytes(), 1);
  const uint64_t before = seek_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  if (before / look_each == (before + bytes) / look_each || context_.read_only) return;
  if (compaction_running_.load() || compacts_at_ns_.load() != kNever) return;
  ScheduleCompaction();
}

}  // namespace partita
