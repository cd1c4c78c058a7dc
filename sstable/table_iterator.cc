#include "sstable/table_iterator.h"

#include <algorithm>
#include <utility>

#include "engine/base/aligned_buffer.h"
#include "engine/base/assert.h"
#include "sstable/table_reader.h"

// How it moves. A position is (entry of the top index, entry of an index block, entry of a data
// block). Seek and Next set a *target* and call Proceed, which goes down from wherever it is:
// 1. no index block: take it from the cache, else stop with kNeedsIo;
// 2. no data block: take it from the cache, else decode it from the window that an earlier read
//    brought, else stop with kNeedsIo;
// 3. place within the block as the target says; when the target lies beyond it, go on with the next
//    block (next index block) and its first entry.
// Fetch performs the read that stopped it and calls Proceed again.
//
// The hard case is the block of a backward Seek(K): the first block whose fence is >= K may hold only
// keys >= K; then the answer is the last key of the block before.

namespace partita {

namespace {

constexpr size_t kReadAheadFirst = 16 * 1024;
constexpr size_t kReadAheadMax = 256 * 1024;
constexpr size_t kReadAheadBypass = 1024 * 1024;

enum class Target : uint8_t {
  kKey,   // The key in `target_key`.
  kEdge,  // The block's first key in iteration order.
};

}  // namespace

struct TableIterator::State {
  State(std::shared_ptr<const TableReader> t, Direction d, IterOptions o)
      : table(std::move(t)), forward(d == Direction::kForward), options(std::move(o)) {}

  IterState SeekTo(std::string_view key, bool whole);
  IterState Proceed();
  bool EnterIndex();
  bool EnterBlock();
  void EnteredBlock();
  bool PlaceInBlock();
  bool StepBlock();
  IterState StandAt(uint32_t where, bool new_key);
  Task<Status> FetchIndex();
  Task<Status> FetchBlock();
  Task<Status> FetchWindow(const PartHandle& handle);
  std::pair<uint64_t, uint64_t> WindowAround(const PartHandle& handle) const;
  bool WindowHolds(const PartHandle& handle) const {
    return handle.offset >= window_begin && handle.end() <= window_end;
  }
  std::string_view WindowBytes(const PartHandle& handle) const {
    return window.view(handle.offset - window_begin, handle.stored_size);
  }
  TableReader::LoadRequest DataRequest() const {
    return {.handle = handle,
            .kind = SealKind::kDataBlock,
            .priority = CachePriority::kScan,
            .fill_cache = options.caching == IterCaching::kFill};
  }
  bool bypass() const { return options.caching == IterCaching::kBypass; }

  std::shared_ptr<const TableReader> table;
  const bool forward;
  const IterOptions options;
  IterState state = IterState::kEnd;

  Target target = Target::kEdge;
  std::string target_key;

  uint32_t top_at = 0;
  bool has_index = false;
  BlockPin index_pin;
  DataBlock index;
  uint32_t index_at = 0;

  bool has_block = false;
  bool window_is_suspect = false;  // The block's bytes in the window were bad: read it alone.
  PartHandle handle;
  BlockPin block_pin;
  DataBlock block;
  uint32_t at = 0;
  uint32_t group_begin = 0;  // Backward: the newest version of the current key.
  bool check_bound = false;  // The block reaches to the far bound.

  // The pages read last; their blocks are decoded when the cursor comes to them.
  AlignedBuffer window;
  uint64_t window_begin = 0;
  uint64_t window_end = 0;
  size_t read_ahead = 0;

  // What pass-through needs of the current block (kBypass).
  TableReader::StoredPart stored_alone;
  std::string_view stored;
  bool has_summary = false;
  BlockSummary summary;

  std::string key;
  Entry entry;
};

TableIterator::TableIterator(std::shared_ptr<const TableReader> table, Direction direction,
                             IterOptions options)
    : state_(std::make_unique<State>(std::move(table), direction, std::move(options))) {}
TableIterator::~TableIterator() = default;

IterState TableIterator::state() const { return state_->state; }
const Entry& TableIterator::entry() const {
  PARTITA_DEBUG_ASSERT(state_->state == IterState::kEntry);
  return state_->entry;
}

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

// `whole`: backward from the end of the table.
IterState TableIterator::State::SeekTo(std::string_view key_in, bool whole) {
  target = whole ? Target::kEdge : Target::kKey;
  target_key.assign(key_in);
  const DataBlock& top = table->top_index_;
  uint32_t found = whole ? top.size() : top.LowerBound(target_key);
  has_block = false;
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
    if (!has_block && !EnterBlock()) return state = IterState::kNeedsIo;
    if (PlaceInBlock()) return StandAt(at, /*new_key=*/true);
    if (!StepBlock()) return state = IterState::kEnd;
  }
}

bool TableIterator::State::EnterIndex() {
  if (!index_pin) {
    const PartHandle where = IndexRecordHandle(table->top_index_.value(top_at));
    if (!bypass()) index_pin = table->cache_.Lookup(table->KeyOf(where));
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
  if (!block_pin && !bypass()) block_pin = table->cache_.Lookup(table->KeyOf(handle));
  if (!block_pin && !window_is_suspect && WindowHolds(handle)) {
    const std::string_view bytes = WindowBytes(handle);
    // Bad bytes: Fetch reads the block alone, and says so if it stays bad (F52).
    window_is_suspect =
        !CheckPart(bytes, handle, table->IdentityOf(handle.offset, SealKind::kDataBlock)).ok();
    if (!window_is_suspect) {
      Result<BlockPin> decoded = table->DecodeBlock(bytes, DataRequest());
      window_is_suspect = !decoded.ok();
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
  has_summary = false;
  window_is_suspect = false;
  block = DataBlock(block_pin.content());
  // Bounds are compared entry by entry only in the one block that reaches them.
  if (forward) {
    check_bound = !options.upper.empty() && block.CompareKey(block.size() - 1, options.upper) >= 0;
  } else {
    check_bound = block.CompareKey(0, options.lower) < 0;
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
  has_block = false;
  block_pin.Release();
  if (forward ? index_at + 1 < index.size() : index_at > 0) {
    index_at += forward ? 1 : -1;
    return true;
  }
  if (forward ? top_at + 1 == table->top_index_.size() : top_at == 0) return false;
  top_at += forward ? 1 : -1;
  has_index = false;
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
  if (s.at + 1 < s.block.size()) {
    const bool same_key = s.block.same_key_as_before(s.at + 1);
    if (s.forward || same_key) return s.StandAt(s.at + 1, !same_key);
  }
  if (!s.forward && s.group_begin > 0) {
    uint32_t newest = s.group_begin - 1;
    while (s.block.same_key_as_before(newest)) --newest;
    s.group_begin = newest;
    return s.StandAt(newest, /*new_key=*/true);
  }
  if (!s.StepBlock()) return s.state = IterState::kEnd;
  return s.Proceed();
}

// --- Reading ---

Task<Status> TableIterator::Fetch() {
  State& s = *state_;
  PARTITA_ASSERT(s.state == IterState::kNeedsIo);
  Status status = s.has_index ? co_await s.FetchBlock() : co_await s.FetchIndex();
  if (!status.ok()) co_return status;
  s.Proceed();
  co_return Status();
}

Task<Status> TableIterator::State::FetchIndex() {
  const TableReader::LoadRequest request{.handle = IndexRecordHandle(table->top_index_.value(top_at)),
                                         .kind = SealKind::kIndexBlock,
                                         .priority = CachePriority::kIndex,
                                         .fill_cache = options.caching == IterCaching::kFill};
  PARTITA_CO_ASSIGN(index_pin, co_await table->LoadBlock(request));
  co_return Status();
}

Task<Status> TableIterator::State::FetchBlock() {
  if (!window_is_suspect) {
    Status read = co_await FetchWindow(handle);
    if (read.ok()) co_return read;
    if (read.code() != Code::kIoError) co_return read.WithContext(table->name());
  }
  // The run could not be read, or this block of it was bad: the block alone, which reads twice.
  Result<TableReader::StoredPart> part = co_await table->ReadPart(handle, SealKind::kDataBlock);
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

// The pages to read for `handle`: it, and what lies behind it in iteration order, but nothing that
// the far bound, as far as this index block knows it, makes useless.
std::pair<uint64_t, uint64_t> TableIterator::State::WindowAround(const PartHandle& wanted) const {
  if (forward) {
    uint64_t end = std::min(wanted.offset + std::max<uint64_t>(read_ahead, wanted.stored_size),
                            table->footer_.index_begin);
    if (!options.upper.empty()) {
      const uint32_t last = index.LowerBound(options.upper);
      if (last < index.size()) end = std::min(end, IndexRecordHandle(index.value(last)).end());
    }
    return {AlignDown(wanted.offset, kPageSize), AlignUp(std::max(end, wanted.end()), kPageSize)};
  }
  uint64_t begin = wanted.end() > read_ahead ? wanted.end() - read_ahead : 0;
  if (!options.lower.empty()) {
    const uint32_t first = index.LowerBound(options.lower);
    if (first < index.size()) begin = std::max(begin, IndexRecordHandle(index.value(first)).offset);
  }
  return {AlignDown(std::min(begin, wanted.offset), kPageSize), AlignUp(wanted.end(), kPageSize)};
}

Task<Status> TableIterator::State::FetchWindow(const PartHandle& wanted_in) {
  const PartHandle wanted = wanted_in;
  // In order when it follows what was read last, but for the page they share.
  const bool in_order =
      forward ? wanted.offset >= AlignDown(window_end - (window_end > 0), kPageSize) &&
                    wanted.offset <= window_end + kPageSize
              : wanted.end() <= window_begin + kPageSize && wanted.end() + kPageSize >= window_begin;
  if (bypass()) {
    read_ahead = kReadAheadBypass;
  } else {
    read_ahead = read_ahead > 0 && in_order ? std::min(read_ahead * 2, kReadAheadMax) : kReadAheadFirst;
  }
  const auto [begin, end] = WindowAround(wanted);
  window_begin = window_end = 0;  // Nothing is in it if the read fails.
  if (window.size() < end - begin) window = AlignedBuffer(end - begin);
  if (window.data() == nullptr) co_return Status::ResourceExhausted("no memory to read ahead");
  PARTITA_CO_TRY(co_await table->object_->ReadOne(begin, window.span().subspan(0, end - begin)));
  window_begin = begin;
  window_end = end;
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
  if (!s.StepBlock()) return s.state = IterState::kEnd;
  return s.Proceed();
}

}  // namespace partita
