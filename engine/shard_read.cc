#include "engine/base/merging_iterator.h"
#include "engine/base/stored_value.h"
#include "engine/shard.h"

// Reads never hop (DESIGN 3): the calling thread takes the view, then the visible version, then
// searches. View first, version second: a version so loaded is never below what the view's files
// dropped.

namespace partita {

namespace {

// A page looks at the clock's slice this often.
constexpr uint32_t kEntriesPerYield = 64;

// A page is one point in time, and holds its view for at most so long (DESIGN 3).
constexpr uint64_t kPageNanosMax = 5'000'000'000;

// An entry above the visible version may turn out either way while the shard is in doubt (F15).
// `doubt` was read before the visible version: doubt that ended in between counts.
bool MeetsDoubt(bool doubt, const CommitLog& log, const ReadView& view, std::string_view user_key,
                Version visible) {
  if (!doubt && !log.in_doubt()) return false;
  Lookup newest = view.GetFromMemtables(user_key, kVersionMax);
  return newest.state != LookupState::kAbsent && newest.version > visible;
}

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
  Lookup found = view->GetFromMemtables(user_key, visible);
  if (found.state != LookupState::kAbsent) return Answer(found, content);
  BlockPin pin;
  TableLookup looked = range->levels->TryGet(user_key, HashKey(user_key), visible, &pin);
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
  Lookup found = view->GetFromMemtables(user_key, visible);
  if (found.state != LookupState::kAbsent) co_return Answer(found, content);
  BlockPin pin;
  PARTITA_CO_ASSIGN(Lookup read, co_await range->levels->Get(user_key, HashKey(user_key), visible, &pin));
  co_return Answer(read, content);
}

Task<Result<Shard::ScanAnswer>> Shard::Scan(const ScanRequest& request, RowSink* sink) {
  ViewPin view = views_.Pin();
  bool doubt = commit_log_->in_doubt();
  Version visible = commit_log_->visible_version();
  uint64_t deadline = context_.runtime.clock().MonotonicNanos() + kPageNanosMax;
  const RangeView* range = view->FindRange(request.lower);
  if (range == nullptr) co_return Status::Moved("shard does not own the key");
  bool forward = request.direction == Direction::kForward;
  std::string upper = request.upper;
  if (upper.empty() || (!range->upper.empty() && range->upper < upper)) upper = range->upper;

  std::vector<std::unique_ptr<EntryIterator>> sources;
  sources.push_back(view->active->NewIterator(request.direction));
  for (const MemtableRef& memtable : view->frozen)
    sources.push_back(memtable.table->NewIterator(request.direction));
  IterOptions options;
  options.lower = request.lower;
  options.upper = upper;
  range->levels->AddIterators(request.direction, options, &sources);
  std::unique_ptr<EntryIterator> merged = MakeMergingIterator(std::move(sources), request.direction);

  ScanAnswer answer;
  uint64_t bytes = 0;
  std::string last_key;  // The last user key decided; entries of it that follow are older versions.
  bool have_last = false;
  IterState state;
  if (forward) {
    state = merged->Seek(request.lower);
  } else {
    state = upper.empty() ? merged->SeekToFirst() : merged->Seek(upper);
  }
  while (true) {
    while (state == IterState::kNeedsIo) {
      Status fetched = co_await merged->Fetch();
      if (!fetched.ok()) {
        // What was found stands; the continuation asks again at the damage (F43, F44).
        if (answer.rows == 0) co_return fetched;
        answer.next_key = forward ? last_key + '\0' : last_key;
        co_return answer;
      }
      state = merged->state();
    }
    if (state == IterState::kEnd) break;
    const Entry& entry = merged->entry();
    if (forward ? !upper.empty() && entry.user_key >= upper : entry.user_key < request.lower) break;
    if (++answer.scanned % kEntriesPerYield == 0) co_await YieldIfDue();
    if (entry.version > visible) {
      if (doubt || commit_log_->in_doubt()) {
        // The page ends before the key; the next one asks again.
        if (answer.rows == 0) co_return Status::Unknown("a write of this key is in doubt");
        answer.next_key = forward ? std::string(entry.user_key) : last_key;
        co_return answer;
      }
    } else if (!have_last || entry.user_key != last_key) {
      bool full = answer.rows >= request.limit || (answer.rows > 0 && bytes >= request.bytes_limit);
      if (full && entry.kind == EntryKind::kPut) {
        answer.next_key = forward ? std::string(entry.user_key) : last_key;
        co_return answer;
      }
      if (have_last && answer.scanned % 1024 == 0 && context_.runtime.clock().MonotonicNanos() > deadline) {
        answer.next_key = forward ? std::string(entry.user_key) : last_key;
        co_return answer;
      }
      last_key.assign(entry.user_key);
      have_last = true;
      if (entry.kind == EntryKind::kPut) {
        std::string_view content = StoredValueContent(entry.value);
        ++answer.rows;
        bytes += entry.user_key.size() + content.size();
        answer.bytes = bytes;
        if (sink != nullptr) sink->Add(entry.user_key, entry.version, content);
      }
    }
    state = merged->Next();
  }
  answer.done = true;
  co_return answer;
}

}  // namespace partita
