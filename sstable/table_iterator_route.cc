#include <algorithm>

#include "sstable/table_iterator_state.h"

// What a table's cursor reads ahead: the blocks behind the one it is at, in the order in which it will come
// to them, and the index blocks that name them. Index blocks lie together behind all data; a cursor that goes
// on in order reads many at once, or each would end what is known of the way.

namespace partita {

namespace {

// Comparisons that one step of the way ahead spends on blocks that will be passed over: some 50 us.
constexpr size_t kRouteCostMax = 4096;

// Index blocks that are read together: those of some 10 MiB of data.
constexpr uint64_t kIndexesSizeMax = 256 * 1024;
// An index takes less than this part of its data.
constexpr uint64_t kIndexPartOfData = 16;

}  // namespace

Task<Status> TableIterator::State::FetchIndex() {
  TableReader::LoadRequest request{.handle = IndexRecordHandle(table->top_index_.value(top_at)),
                                   .kind = SealKind::kIndexBlock,
                                   .priority = CachePriority::kIndex,
                                   .fill_cache = options.caching == IterCaching::kFill,
                                   .is_miss = !bypass(),
                                   .waits = waits()};
  if (window.Awaits(request.handle)) {
    Status read = co_await window.Fetch(table->object_, request.handle, *this);
    // Reading it alone would be waited for, too.
    if (read.code() == Code::kDeadlineExceeded) co_return read.WithContext(table->name());
    if (read.ok()) index_pin = IndexFromWindow(request.handle);
    if (index_pin) co_return Status();
  }
  if (index_in_order) {
    Status read = co_await FetchIndexes(request.handle);
    if (read.code() == Code::kDeadlineExceeded) co_return read.WithContext(table->name());
    index_pin = IndexFromWindow(request.handle);
    if (index_pin) co_return Status();
  }
  CountRead(request.handle.stored_size);
  request.was_bad = suspect_index == request.handle.offset;
  PARTITA_CO_ASSIGN(index_pin, co_await table->LoadBlock(request));
  co_return Status();
}

// The pages of the index block and of those behind it that the scan will come to.
ReadAheadRun TableIterator::State::IndexRunFrom(PartHandle first, uint64_t size_max) const {
  size_max = std::min(size_max, window.bytes_left() / kIndexPartOfData + first.stored_size);
  ReadAheadRun run{AlignDown(first.offset, kPageSize), AlignUp(first.end(), kPageSize), 0};
  const DataBlock& top = table->top_index_;
  for (uint32_t i = top_at; !RouteEndsAt(top, i) && (!forward || i + 1 < top.size());) {
    i += forward ? 1 : -1;
    const PartHandle next = IndexRecordHandle(top.value(i));
    const uint64_t begin = std::min(run.begin, AlignDown(next.offset, kPageSize));
    const uint64_t end = std::max(run.end, AlignUp(next.end(), kPageSize));
    if (end - begin > size_max) break;
    run = {begin, end, 0};
  }
  return run;
}

// Reads the index block and those behind it into `indexes`; nothing is there after an error, or where memory
// is short.
Task<Status> TableIterator::State::FetchIndexes(PartHandle first) {
  if (indexes == nullptr || indexes->RunOf(first) == nullptr) {
    const ReadAheadRun run = IndexRunFrom(first, kIndexesSizeMax);
    ReadAheadPool* const pool = bypass() ? nullptr : options.read_ahead;
    AlignedBuffer buffer;
    indexes = nullptr;
    if (pool != nullptr) {
      buffer = pool->TakeBuffer(run.size());
      if (buffer.data() == nullptr) co_return Status();
    }
    indexes = ReadAheadPool::Prepare(pool, table->object_, {run}, std::move(buffer));
    if (indexes == nullptr) co_return Status();
    CountRead(run.size());
  }
  Status read = co_await ReadAheadPiece::ArriveInTime(waits(), indexes);
  if (!read.ok()) indexes = nullptr;
  co_return read;
}

// --- Before it is wanted ---

bool TableIterator::ReadsToEnd() const { return state_->route_ended && state_->window.MayBeginNext(); }
uint64_t TableIterator::read_in_stride() const { return state_->window.read_in_stride(); }
bool TableIterator::IsBeyondExpected() const { return state_->window.IsBeyondExpected(); }

void TableIterator::Anticipate() {
  PARTITA_ASSERT(state_->options.read_ahead != nullptr);
  if (!state_->sought) SeekToFirst();
  state_->Anticipate();
}

void TableIterator::State::Anticipate() {
  if (state != IterState::kNeedsIo) return;
  if (!has_index) {
    if (indexes == nullptr) BeginIndexes();
    if (indexes == nullptr || !indexes->is_there()) return;
    if (Proceed() != IterState::kNeedsIo || !has_index) return;
  }
  window.Begin(table->object_, handle, *this);
  CountRead(window.TakeBytesPlanned());
}

// Begins to read the index block and those behind it, if there is memory.
void TableIterator::State::BeginIndexes() {
  // No more of it than the scan has read ahead so far: it may be at its end.
  const uint64_t size_max = std::min(kIndexesSizeMax, options.read_in_stride / 2);
  const ReadAheadRun run = IndexRunFrom(IndexRecordHandle(table->top_index_.value(top_at)), size_max);
  AlignedBuffer buffer = options.read_ahead->TakeBuffer(run.size());
  if (buffer.data() == nullptr) return;
  indexes = options.read_ahead->Start(table->object_, {run}, std::move(buffer));
  CountRead(run.size());
}

// --- The way ahead ---

ReadAheadWindow::Options TableIterator::State::WindowOptions() const {
  ReadAheadWindow::Options window_options{.pool = options.read_ahead,
                                          .waits = waits(),
                                          .large = bypass(),
                                          .read_in_stride = options.read_in_stride};
  const TableInfo& info = table->info();
  // What so many entries, or bytes of them, take in a file that stores so many in file_size.
  const auto stored = [&](uint64_t expected, uint64_t all) {
    if (expected == 0 || all == 0) return UINT64_MAX;
    const double bytes =
        static_cast<double>(expected) * static_cast<double>(info.file_size) / static_cast<double>(all);
    return bytes < 1e18 ? static_cast<uint64_t>(bytes) + 1 : UINT64_MAX;
  };
  window_options.bytes_expected = std::min(stored(options.entries_expected, info.entry_count),
                                           stored(options.raw_bytes_expected, info.raw_bytes));
  if (window_options.bytes_expected < UINT64_MAX) {
    window_options.bytes_likely =
        static_cast<uint64_t>(static_cast<double>(window_options.bytes_expected) * options.expected_share);
  }
  return window_options;
}

void TableIterator::State::Restart() {
  route_top = top_at;
  route_at = index_at;
  route_pin.Release();
  route_asked_index = route_ended = false;
}

// True when no part behind entry `i` can hold a key within the bounds, which forward end with `upper`.
bool TableIterator::State::EndsAt(const DataBlock& fences, uint32_t i, std::string_view upper) const {
  const auto ends_at = [&](std::string_view bound) {
    if (bound.empty()) return false;
    // Forward: keys behind a fence are above it. Backward: those of the part in front are at or below its
    // own.
    return forward ? fences.CompareKey(i, bound) >= 0 : fences.CompareKey(i - 1, bound) < 0;
  };
  if (!forward && i == 0) return true;
  return ends_at(forward ? upper : options.lower) ||
         (options.scan != nullptr && ends_at(options.scan->until));
}

// The blocks behind the current one, and each index block before the blocks that it tells of.
std::optional<PartHandle> TableIterator::State::NextPart() {
  if (!has_index) return std::nullopt;  // The cursor waits for the index block that it would begin with.
  if (forward ? route_top < top_at : route_top > top_at) Restart();  // The cursor has overtaken it.
  const size_t cost_end = passing ? passing->looks_cost() + kRouteCostMax : 0;
  while (!passing || passing->looks_cost() <= cost_end) {
    const DataBlock& records = route_top == top_at ? index : route_index;
    const bool at_edge = forward ? route_at + 1 == records.size() : route_at == 0;
    if (at_edge) {
      const std::optional<PartHandle> next = NextIndexOfRoute();
      if (!next || route_asked_index || !LeavesOut(route_index)) return next;
      continue;
    }
    if (RouteEndsAt(records, route_at)) {
      route_ended = true;
      return std::nullopt;
    }
    route_at += forward ? 1 : -1;
    if (!LeavesOut(records)) return IndexRecordHandle(records.value(route_at));
  }
  return std::nullopt;
}

// True when the block that the route has come to will be passed over.
bool TableIterator::State::LeavesOut(const DataBlock& records) {
  return passing && passing->MayPass({records, route_at, route_top});
}

// Goes on in the next index block when it is in memory; names it once when it is not.
std::optional<PartHandle> TableIterator::State::NextIndexOfRoute() {
  const DataBlock& top = table->top_index_;
  route_ended = (forward && route_top + 1 == top.size()) || RouteEndsAt(top, route_top);
  if (route_ended) return std::nullopt;
  const uint32_t next = forward ? route_top + 1 : route_top - 1;
  const PartHandle where = IndexRecordHandle(top.value(next));
  BlockPin pin;
  if (!bypass()) pin = table->cache_.Lookup(table->KeyOf(where));
  if (!pin) pin = IndexFromWindow(where);
  if (!pin) {
    // In order, it will be read with those behind it.
    if (index_in_order || std::exchange(route_asked_index, true)) return std::nullopt;
    return where;
  }
  route_pin = std::move(pin);
  route_index = DataBlock(route_pin.content());
  route_top = next;
  route_at = forward ? 0 : route_index.size() - 1;
  route_asked_index = false;
  return IndexRecordHandle(route_index.value(route_at));
}

// An index block that was read along; none when it is not there or damaged: then it is read alone.
BlockPin TableIterator::State::IndexFromWindow(const PartHandle& where) {
  std::string_view bytes;
  if (window.Holds(where)) {
    bytes = window.Bytes(where);
  } else if (indexes != nullptr) {
    if (!indexes->is_there()) return BlockPin();
    bytes = indexes->Find(where);
  }
  if (bytes.empty()) {
    indexes = nullptr;  // The cursor is past them.
    return BlockPin();
  }
  const bool is_bad = !CheckPart(bytes, where, table->IdentityOf(where.offset, SealKind::kIndexBlock)).ok();
  suspect_index = is_bad ? where.offset : UINT64_MAX;
  if (is_bad) return BlockPin();
  Result<BlockPin> decoded = table->DecodeBlock(bytes, {.handle = where,
                                                        .kind = SealKind::kIndexBlock,
                                                        .priority = CachePriority::kIndex,
                                                        .fill_cache = options.caching == IterCaching::kFill,
                                                        .is_miss = !bypass()});
  return decoded.ok() ? std::move(decoded).value() : BlockPin();
}

}  // namespace partita
