#include "sstable/table_iterator.h"

#include <algorithm>
#include <utility>

#include "engine/base/assert.h"
#include "sstable/table_iterator_state.h"

// How it moves. A position is (entry of the top index, entry of an index block, entry of a data
// block). Seek and Next set a *target* and call Proceed, which goes down from wherever it is:
// 1. no index block: take it from the cache, else stop with kNeedsIo;
// 2. a data block that nobody wants (block_passing.h): go on behind it, now and then showing a milestone;
//    no data block: take it from the cache, else decode it from the window that an earlier read
//    brought, else stop with kNeedsIo;
// 3. place within the block as the target says; when the target lies beyond it, go on with the next
//    block (next index block) and its first entry, unless the fence shows that nothing wanted is there.
// Fetch performs the read that stopped it and calls Proceed again.
//
// The hard case is the block of a backward Seek(K): the first block whose fence is >= K may hold only
// keys >= K; then the answer is the last key of the block before.

namespace partita {

namespace {
// A larger block is one row's, so more of it is what the scan is after.
constexpr uint64_t kSeekBytesMax = 16'384;
}  // namespace

TableIterator::TableIterator(std::shared_ptr<const TableReader> table, Direction direction,
                             IterOptions options)
    : state_(std::make_unique<State>(std::move(table), direction, std::move(options))) {}
TableIterator::~TableIterator() = default;

IterState TableIterator::state() const { return state_->state; }
const Entry& TableIterator::entry() const {
  PARTITA_DEBUG_ASSERT(state_->state == IterState::kEntry);
  return state_->entry;
}
const BlockPin* TableIterator::pin() const { return &state_->block_pin; }

// --- Seeking ---

IterState TableIterator::SeekToFirst() {
  State& s = *state_;
  if (s.forward) return s.SeekTo(s.options.lower, /*whole=*/false);
  return s.SeekTo(s.options.upper, /*whole=*/s.options.upper.empty());
}

IterState TableIterator::Seek(std::string_view user_key) {
  State& s = *state_;
  if (s.forward) return s.SeekTo(std::max<std::string_view>(user_key, s.options.lower), /*whole=*/false);
  if (!s.options.upper.empty()) user_key = std::min<std::string_view>(user_key, s.options.upper);
  return s.SeekTo(user_key, /*whole=*/false);
}

IterState TableIterator::Rebound(std::string lower, std::string upper) {
  State& s = *state_;
  PARTITA_ASSERT(s.forward && s.state == IterState::kEnd);
  s.options.lower = std::move(lower);
  s.options.upper = std::move(upper);
  if (!s.has_block || s.block.CompareKey(s.block.size() - 1, s.options.lower) < 0)
    return s.SeekTo(s.options.lower, /*whole=*/false);
  s.CheckBound();
  return s.StandAt(s.block.LowerBound(s.options.lower), /*new_key=*/true);
}

// `whole`: backward from the end of the table.
IterState TableIterator::State::SeekTo(std::string_view key_in, bool whole) {
  target = whole ? Target::kEdge : Target::kKey;
  target_key.assign(key_in);
  wanted = at_milestone = false;
  index_in_order = index_in_order && !std::exchange(sought, true);
  window.Jumped();
  const DataBlock& top = table->top_index_;
  uint32_t found = whole ? top.size() : top.LowerBound(target_key);
  has_block = false;
  is_first_block = true;
  block_pin.Release();
  if (found == top.size()) {
    if (forward) return state = IterState::kEnd;
    found = top.size() - 1;  // All keys are below: the last block.
  }
  has_index = false;
  if (found != top_at) index_pin.Release();
  top_at = found;
  return Proceed();
}

IterState TableIterator::State::Proceed() {
  while (true) {
    if (!has_index && !EnterIndex()) return state = IterState::kNeedsIo;
    if (PassesOver()) {
      if (const std::optional<IterState> stands = PassOver()) return state = *stands;
      continue;
    }
    if (!has_block && !EnterBlock()) return state = IterState::kNeedsIo;
    if (PlaceInBlock()) return StandAt(at, /*new_key=*/true);
    if (EndsBehind() || !StepBlock()) return state = IterState::kEnd;
  }
}

void TableIterator::State::BeginPassing() {
  if (bypass()) return;
  passing.emplace(BlockPassing::Cursor{.properties = table->properties(),
                                       .store = table->store_,
                                       .top = table->top_index_,
                                       .options = options});
}

// True when the block in front need not be read.
bool TableIterator::State::PassesOver() {
  if (wanted || has_block) return false;
  if (!passing && options.scan != nullptr && options.scan->deleted != nullptr) BeginPassing();
  if (!passing) return false;
  wanted = !passing->MayPass({index, index_at, top_at});
  return !wanted;
}

// Goes on behind the block; where the cursor stands when that is at the end or at a milestone.
std::optional<IterState> TableIterator::State::PassOver() {
  const bool milestone =
      passing->Passed({index, index_at, top_at}, forward ? Direction::kForward : Direction::kBackward);
  if (EndsBehind() || !StepBlock()) return IterState::kEnd;
  if (!milestone) return std::nullopt;
  entry = passing->milestone();
  at_milestone = true;
  return IterState::kEntry;
}

// True when no block behind the one in front can hold a key that is wanted.
bool TableIterator::State::EndsBehind() const {
  const bool at_edge = forward ? index_at + 1 == index.size() : index_at == 0;
  return at_edge ? EndsAt(table->top_index_, top_at, options.upper) : EndsAt(index, index_at, options.upper);
}

bool TableIterator::State::EnterIndex() {
  if (!index_pin) {
    if (!bypass()) index_pin = table->EnterIndex(top_at);
    if (!index_pin) index_pin = IndexFromWindow(IndexRecordHandle(table->top_index_.value(top_at)));
    if (!index_pin) return false;
  }
  has_index = true;
  index = DataBlock(index_pin.content());
  if (target == Target::kKey) {
    index_at = std::min(index.LowerBound(target_key), index.size() - 1);
  } else {
    index_at = forward ? 0 : index.size() - 1;
  }
  return true;
}

bool TableIterator::State::EnterBlock() {
  handle = IndexRecordHandle(index.value(index_at));
  if (!block_pin && !bypass()) {
    block_pin = table->EnterData(index, top_at, index_at);
    if (block_pin) {
      block_pin.MarkAll();
      window.UsedFromCache(handle.stored_size);
    }
  }
  if (!block_pin && !window_is_suspect && window.Holds(handle)) {
    const std::string_view bytes = window.Bytes(handle);
    // Bad bytes: Fetch reads the block alone, and says so if it stays bad (F52).
    window_is_suspect =
        !CheckPart(bytes, handle, table->IdentityOf(handle.offset, SealKind::kDataBlock)).ok();
    if (!window_is_suspect) {
      Result<BlockPin> decoded = table->DecodeBlock(bytes, DataRequest());
      window_is_suspect = !decoded.ok();  // Or there was no memory: it is read alone all the same.
      if (decoded.ok()) {
        block_pin = std::move(decoded).value();
        stored = bytes;
      }
    }
  }
  if (!block_pin) return false;
  EnteredBlock();
  return true;
}

void TableIterator::State::EnteredBlock() {
  has_block = true;
  is_first_block = false;
  has_summary = false;
  window_is_suspect = false;
  if (options.scan != nullptr) ++options.scan->counts.blocks_read;
  block = DataBlock(block_pin.content());
  CheckBound();
  if (!bypass()) PrefetchNeighbours();
}

// Bounds are compared entry by entry only in the one block that reaches them.
void TableIterator::State::CheckBound() {
  if (forward) {
    check_bound = !options.upper.empty() && block.CompareKey(block.size() - 1, options.upper) >= 0;
  } else {
    check_bound = block.CompareKey(0, options.lower) < 0;
  }
}

// A scan of cached blocks would wait for memory twice a block: to find it, and for its header.
void TableIterator::State::PrefetchNeighbours() const {
  const uint32_t next = forward ? index_at + 1 : index_at - 1;  // Past the end when there is none.
  const uint32_t second = forward ? index_at + 2 : index_at - 2;
  if (next < index.size() && !table->PrefetchData(top_at, next)) {
    table->cache_.PrefetchBlock(table->KeyOf(IndexRecordHandle(index.value(next))));
  }
  if (second < index.size()) {
    table->cache_.PrefetchSlot(table->KeyOf(IndexRecordHandle(index.value(second))));
  }
}

// False when the target lies beyond this block.
bool TableIterator::State::PlaceInBlock() {
  if (forward) {
    at = target == Target::kEdge ? 0 : block.LowerBound(target_key);
    return at < block.size();
  }
  const uint32_t end = target == Target::kEdge ? block.size() : block.LowerBound(target_key);
  if (end == 0) return false;
  group_begin = end - 1;
  while (block.same_key_as_before(group_begin)) --group_begin;
  at = group_begin;
  return true;
}

// To the neighbouring block in iteration order; false at the end of the table.
bool TableIterator::State::StepBlock() {
  target = Target::kEdge;
  wanted = has_block = false;
  block_pin.Release();
  if (forward ? index_at + 1 < index.size() : index_at > 0) {
    index_at += forward ? 1 : -1;
    return true;
  }
  if (forward ? top_at + 1 == table->top_index_.size() : top_at == 0) return false;
  top_at += forward ? 1 : -1;
  has_index = false;
  index_in_order = true;
  index_pin.Release();
  return true;
}

// Fills in the entry, or ends at the far bound.
IterState TableIterator::State::StandAt(uint32_t where, bool new_key) {
  at = where;
  if (new_key) {
    block.KeyTo(at, &key);
    if (check_bound &&
        (forward ? std::string_view(key) >= options.upper : std::string_view(key) < options.lower)) {
      return state = IterState::kEnd;
    }
  }
  entry = {key, block.version(at), block.kind(at), block.value(at)};
  return state = IterState::kEntry;
}

IterState TableIterator::Next() {
  State& s = *state_;
  PARTITA_DEBUG_ASSERT(s.state == IterState::kEntry);
  if (std::exchange(s.at_milestone, false)) return s.Proceed();
  if (s.at + 1 < s.block.size()) {
    const bool same_key = s.block.same_key_as_before(s.at + 1);
    if (s.forward || same_key) return s.StandAt(s.at + 1, !same_key);
  }
  return s.NextGroup();
}

// From the last entry of a key on to the next key; forward, only from the end of the block.
IterState TableIterator::State::NextGroup() {
  if (!forward && group_begin > 0) {
    uint32_t newest = group_begin - 1;
    while (block.same_key_as_before(newest)) --newest;
    group_begin = newest;
    return StandAt(newest, /*new_key=*/true);
  }
  return EnterNext();
}

// To the first wanted entry behind the block. Where the index says that there is none, what lies there is not
// read: it may be another partition's, and damaged.
IterState TableIterator::State::EnterNext() {
  if (EndsBehind() || !StepBlock()) return state = IterState::kEnd;
  return Proceed();
}

// --- Runs ---

EntryRun TableIterator::Run(std::optional<std::string_view> before) const {
  PARTITA_DEBUG_ASSERT(state_->state == IterState::kEntry);
  if (state_->at_milestone) return {};
  return state_->forward ? state_->RunForward(before) : state_->RunBackward(before);
}

EntryRun TableIterator::State::RunForward(std::optional<std::string_view> before) const {
  uint32_t end = check_bound ? block.LowerBound(options.upper) : block.size();
  if (before && block.CompareKey(end - 1, *before) >= 0) end = block.LowerBound(*before);
  return {&block.columns(), at, std::max(at, end)};
}

EntryRun TableIterator::State::RunBackward(std::optional<std::string_view> before) const {
  if (at != group_begin) return {};  // On an older version: the rest of the key comes out by itself.
  uint32_t end = at + 1;
  while (end < block.size() && block.same_key_as_before(end)) ++end;
  uint32_t begin = check_bound ? block.LowerBound(options.lower) : 0;
  if (before && block.CompareKey(begin, *before) <= 0) {
    begin = block.LowerBound(*before);
    // Only keys above it.
    if (begin < end && block.CompareKey(begin, *before) == 0) ++begin;
    while (begin < end && block.same_key_as_before(begin)) ++begin;
  }
  return {&block.columns(), std::min(begin, end), end};
}

void TableIterator::RunKeyTo(uint32_t i, std::string* out) const { state_->block.KeyTo(i, out); }

IterState TableIterator::SkipRun(const EntryRun& run) {
  State& s = *state_;
  PARTITA_ASSERT(s.state == IterState::kEntry && !run.empty());
  if (s.forward && run.end < s.block.size()) return s.StandAt(run.end, /*new_key=*/true);
  s.group_begin = run.begin;
  return s.NextGroup();
}

// --- Reading ---

Task<Status> TableIterator::Fetch() {
  State& s = *state_;
  PARTITA_ASSERT(s.state == IterState::kNeedsIo);
  Status status = s.has_index ? co_await s.FetchBlock() : co_await s.FetchIndex();
  s.CountRead(s.window.TakeBytesPlanned());
  if (s.MaySkip(status)) {
    s.SkipDamaged(std::move(status));
    co_return Status();
  }
  if (!status.ok()) co_return status;
  s.Proceed();
  co_return Status();
}

// Steps over what could not be read: a data block, or an index block and all that it names.
void TableIterator::State::SkipDamaged(Status why) {
  const DataBlock& top = table->top_index_;
  SkippedSpan span{.version_max = table->info().version_max, .why = std::move(why)};
  const bool first_of_index = !has_index || index_at == 0;
  if (!first_of_index) {
    index.KeyTo(index_at - 1, &span.lower);
  } else if (top_at > 0) {
    top.KeyTo(top_at - 1, &span.lower);
  }
  // Of keys above the fence in front, up to the own one.
  if (!first_of_index || top_at > 0) span.lower.push_back('\0');
  span.lower = std::max({span.lower, table->info().smallest, options.lower});
  has_index ? index.KeyTo(index_at, &span.upper) : top.KeyTo(top_at, &span.upper);
  span.upper = std::min(span.upper, table->info().largest) + '\0';
  if (!options.upper.empty() && options.upper < span.upper) span.upper = options.upper;

  window.Jumped();
  window_is_suspect = false;
  if (span.lower < span.upper) options.scan->skipped->Skipped(std::move(span));
  if (EndsBehindPart() || !StepPart()) {
    state = IterState::kEnd;
  } else {
    Proceed();
  }
}

// True when no key behind the part in front can be within the bounds.
bool TableIterator::State::EndsBehindPart() const {
  return has_index ? EndsBehind() : EndsAt(table->top_index_, top_at, options.upper);
}

// As StepBlock, also from an index block that could not be read.
bool TableIterator::State::StepPart() {
  if (has_index) return StepBlock();
  target = Target::kEdge;
  wanted = has_block = false;
  if (forward ? top_at + 1 == table->top_index_.size() : top_at == 0) return false;
  top_at += forward ? 1 : -1;
  index_pin.Release();
  return true;
}

// Of a data block that is about to be read.
void TableIterator::State::CountSeek() {
  if (!std::exchange(is_first_block, false) || options.seek_bytes == nullptr) return;
  const uint64_t bytes = std::min<uint64_t>(handle.stored_size, kSeekBytesMax);
  options.seek_bytes->fetch_add(bytes, std::memory_order_relaxed);
  if (options.scan != nullptr) options.scan->seek_bytes += bytes;
}

Task<Status> TableIterator::State::FetchBlock() {
  CountSeek();
  bool was_bad = window_is_suspect;
  if (!window_is_suspect) {
    Status read = co_await window.Fetch(table->object_, handle, *this);
    if (read.ok()) co_return read;
    if (read.code() != Code::kIoError) co_return read.WithContext(table->name());
    was_bad = true;
  }
  // The run could not be read, or this block of it was bad: the block alone, which reads twice.
  CountRead(handle.stored_size);
  Result<TableReader::StoredPart> part =
      co_await table->ReadPart(handle, SealKind::kDataBlock, waits(), nullptr, was_bad);
  if (!part.ok()) {
    window_is_suspect = true;
    co_return part.status();
  }
  Result<BlockPin> decoded = table->DecodeBlock(part->bytes, DataRequest());
  if (!decoded.ok()) co_return decoded.status();
  block_pin = std::move(decoded).value();
  stored_alone = std::move(part).value();
  stored = stored_alone.bytes;
  co_return Status();
}

// --- Blocks as a whole ---

bool TableIterator::AtBlockStart() const {
  PARTITA_DEBUG_ASSERT(state_->forward && state_->state == IterState::kEntry);
  return state_->at == 0;
}

const BlockSummary& TableIterator::CurrentBlock() {
  State& s = *state_;
  PARTITA_ASSERT(s.state == IterState::kEntry);
  PARTITA_ASSERT(s.bypass());
  if (s.has_summary) return s.summary;
  s.has_summary = true;
  BlockSummary& b = s.summary;
  s.block.KeyTo(0, &b.first_key);
  s.block.KeyTo(s.block.size() - 1, &b.last_key);
  s.index.KeyTo(s.index_at, &b.fence);
  b.index_record = s.index.value(s.index_at);
  b.entry_count = s.block.size();
  b.tombstone_count = b.older_versions = 0;
  b.version_min = b.version_max = s.block.version(0);
  for (uint32_t i = 0; i < s.block.size(); ++i) {
    b.tombstone_count += s.block.kind(i) == EntryKind::kTombstone;
    b.older_versions += s.block.same_key_as_before(i);
    b.version_min = std::min(b.version_min, s.block.version(i));
    b.version_max = std::max(b.version_max, s.block.version(i));
  }
  return b;
}

BlockKey TableIterator::block_key() const { return state_->table->KeyOf(state_->handle); }
std::string_view TableIterator::block_content() const { return state_->block_pin.content(); }
BlockKey TableIterator::index_key() const {
  return state_->table->KeyOf(IndexRecordHandle(state_->table->top_index_.value(state_->top_at)));
}
std::string_view TableIterator::index_content() const { return state_->index_pin.content(); }

std::optional<PassThroughBlock> TableIterator::CurrentPassThrough() {
  State& s = *state_;
  PARTITA_ASSERT(AtBlockStart());
  const BlockSummary& summary = CurrentBlock();
  if (summary.first_key < s.options.lower) return std::nullopt;
  if (!s.options.upper.empty() && summary.last_key >= s.options.upper) return std::nullopt;
  PassThroughBlock passed;
  passed.stored = s.stored;
  passed.content_hash =
      LoadLe64(s.stored.data()) ^ s.table->IdentityOf(s.handle.offset, SealKind::kDataBlock).Mix();
  passed.decoded = &s.block;
  return passed;
}

IterState TableIterator::SkipBlock() {
  State& s = *state_;
  PARTITA_ASSERT(s.state == IterState::kEntry);
  PARTITA_ASSERT(s.forward);
  return s.EnterNext();
}

}  // namespace partita
