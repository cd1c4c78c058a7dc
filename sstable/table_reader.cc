#include "sstable/table_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/base/assert.h"
#include "engine/base/checksum.h"
#include "engine/base/given_version.h"
#include "engine/base/heap_bytes.h"
#include "engine/base/timed_waits.h"
#include "sstable/cached_rows.h"
#include "sstable/read_ahead_pool.h"

namespace partita {

namespace {

std::string_view KindName(SealKind kind) {
  switch (kind) {
    case SealKind::kDataBlock:
      return "data block";
    case SealKind::kIndexBlock:
      return "index block";
    case SealKind::kFilterBlock:
      return "filter";
    case SealKind::kProperties:
      return "properties";
    case SealKind::kFooter:
      return "footer";
    default:
      return "part";
  }
}

// Of blocks that are read together; more are read one such batch after the other.
constexpr uint64_t kReadTogetherBytes = 1u << 20;

// Read at once to open a table: footer, top index, properties and, of tables of 32 MiB with rows of 1 KiB,
// the filters. Each alone would be another wait for the device.
constexpr uint64_t kTailToOpen = 128u << 10;

// Where partitions have so many keys on the average, their filter is so many times smaller than the keys',
// and stays in the processor's caches: a lookup asks it first.
constexpr uint64_t kKeysAPartitionMin = 8;

// Worth another read past all caches: the bytes were wrong, or did not come.
bool MayBeTransient(const Status& status) {
  return status.code() == Code::kCorruption || status.code() == Code::kIoError;
}

Status OnlyDeadline(const Status& status) {
  return status.code() == Code::kDeadlineExceeded ? status : Status();
}

}  // namespace

TableReader::TableReader(std::shared_ptr<ObjectReader> object, BlockCache& cache, StoreId store)
    : object_(std::move(object)), cache_(cache), store_(store), places_(cache), resident_(cache) {}

void TableReader::SetMarks(std::vector<SizeMark> marks) {
  marks_ = std::move(marks);
  marks_.shrink_to_fit();
  is_marked_ = true;
  uint64_t bytes = HeapBytes(marks_);
  for (const SizeMark& mark : marks_) bytes += HeapBytes(mark.key);
  resident_.Set(resident_.bytes() + bytes);
}

std::optional<TableReader::SizeMark> TableReader::Marked(std::string_view key) const {
  if (!is_marked_) return std::nullopt;
  if (key <= info().smallest) return SizeMark();
  if (key > info().largest) return SizeMark{"", info().entry_count, footer_.file_size};
  const auto mark = std::lower_bound(marks_.begin(), marks_.end(), key,
                                     [](const SizeMark& one, std::string_view at) { return one.key < at; });
  if (mark == marks_.end()) return std::nullopt;
  const bool nothing_between = mark != marks_.begin() && std::prev(mark)->entries == mark->entries;
  if (mark->key != key && !nothing_between) return std::nullopt;
  return SizeMark{"", mark->entries, mark->bytes};
}

bool TableReader::IsMarked(std::string_view lower, std::string_view upper) const {
  return Marked(lower).has_value() && (upper.empty() ? is_marked_ : Marked(upper).has_value());
}

uint64_t TableReader::BytesWithin(std::string_view lower, std::string_view upper) const {
  if (IsMarked(lower, upper)) {
    const SizeMark begin = *Marked(lower);
    const SizeMark end = upper.empty() ? SizeMark{"", info().entry_count, footer_.file_size} : *Marked(upper);
    if (begin.entries >= end.entries) return 0;
    // Of the block at hand a writer knows only what it takes uncompressed.
    return end.bytes > begin.bytes ? end.bytes - begin.bytes : 1;
  }
  const uint32_t begin = top_index_.LowerBound(lower);
  const uint32_t last = upper.empty() ? top_index_.size() : top_index_.LowerBound(upper);
  const uint32_t end = std::min(last + 1, top_index_.size());
  if (begin >= end) return 0;
  const double blocks = static_cast<double>(data_blocks_before_[end] - data_blocks_before_[begin]);
  const double all = static_cast<double>(std::max<uint64_t>(data_blocks_before_.back(), 1));
  return static_cast<uint64_t>(blocks / all * static_cast<double>(footer_.file_size));
}

// --- Opening ---

Task<Result<std::shared_ptr<TableReader>>> TableReader::Open(ObjectStore& store, BlockCache& cache,
                                                             StoreId store_id, ObjectId id) {
  Result<std::shared_ptr<ObjectReader>> object = co_await store.Open(id);
  if (!object.ok()) co_return object.status();
  std::shared_ptr<TableReader> reader(new TableReader(std::move(object).value(), cache, store_id));
  const Tail tail = co_await reader->ReadTail(kTailToOpen, ReadCaching::kNormal);
  PARTITA_CO_TRY(co_await reader->OpenFooter(tail));
  PARTITA_CO_TRY(co_await reader->OpenProperties(tail));
  PARTITA_CO_TRY(co_await reader->OpenTopIndex(tail));
  const Footer& footer = reader->footer_;
  const TableProperties& properties = reader->properties_;
  PARTITA_CO_TRY(
      co_await reader->OpenFilter(tail, footer.key_filter, properties.key_count, &reader->key_filter_));
  PARTITA_CO_TRY(co_await reader->OpenFilter(tail, footer.partition_filter, properties.partition_count,
                                             &reader->partition_filter_));
  reader->asks_partition_first_ = properties.key_count / kKeysAPartitionMin >= properties.partition_count;
  reader->resident_.Set(sizeof(TableReader) + properties.memory_bytes() +
                        HeapBytes(reader->top_index_content_) + HeapBytes(reader->data_blocks_before_) +
                        reader->key_filter_.memory_bytes() + reader->partition_filter_.memory_bytes());
  co_return reader;
}

Task<TableReader::Tail> TableReader::ReadTail(uint64_t size, ReadCaching caching) const {
  const uint64_t file_size = object_->size();
  Tail tail;
  if (file_size == 0 || file_size % kPageSize != 0) co_return tail;
  tail.begin = file_size - std::min(AlignUp(size, kPageSize), file_size);
  tail.buffer = AlignedBuffer(file_size - tail.begin);
  if (tail.buffer.data() == nullptr) {
    tail.read = Status::ResourceExhausted("no memory to read the end of " + name());
    co_return tail;
  }
  tail.read = co_await object_->ReadOne(tail.begin, tail.buffer.span(), caching);
  if (!tail.read.ok()) tail.buffer = AlignedBuffer();  // Some of it may be read alone.
  co_return tail;
}

Status TableReader::TakeFooter(std::string_view bytes) {
  return DecodeFooter(bytes, object_->size(), store_, object_->id(), &footer_);
}

Task<Status> TableReader::OpenFooter(const Tail& tail) {
  const uint64_t size = object_->size();
  if (size < kPageSize || size % kPageSize != 0) {
    co_return Status::Corruption(name() + ": " + std::to_string(size) +
                                 " bytes, expected a multiple of 4096: truncated, or not a table file (F48)");
  }
  const uint64_t offset = size - kFooterSize;
  Status status = tail.read;
  if (status.ok()) status = TakeFooter(tail.Bytes(offset, kFooterSize));
  if (!MayBeTransient(status)) co_return status.ok() ? status : status.WithContext(name());
  // The footer's bytes were bad, or one page of all that was to be read.
  AlignedBuffer page(kPageSize);
  if (page.data() == nullptr) co_return Status::ResourceExhausted("no memory to open " + name());
  status = co_await object_->ReadOne(size - kPageSize, page.span(), ReadCaching::kPastCaches);
  if (status.ok()) status = TakeFooter(page.view(kPageSize - kFooterSize, kFooterSize));
  if (status.ok() && tail.read.ok()) cache_.faults().transient.fetch_add(1);
  if (!MayBeTransient(status)) co_return status.ok() ? status : status.WithContext(name());
  cache_.faults().damaged_parts.fetch_add(1);
  co_return Damaged(status, offset, SealKind::kFooter);
}

Task<Status> TableReader::OpenProperties(const Tail& tail) {
  Result<StoredPart> part = co_await ReadPart(footer_.properties, SealKind::kProperties, nullptr, &tail);
  if (!part.ok()) co_return part.status();
  std::string content(footer_.properties.content_size, '\0');
  Status status = DecodePart(part->bytes, reinterpret_cast<uint8_t*>(content.data()));
  if (status.ok()) {
    Result<TableProperties> properties = DecodeProperties(content);
    status = properties.status();
    if (status.ok()) properties_ = std::move(properties).value();
  }
  // The same facts from two places of the file (STYLE 4).
  const TableInfo& info = properties_.info;
  if (status.ok() &&
      (info.id != object_->id() || info.entry_count != footer_.entry_count ||
       info.tombstone_count != footer_.tombstone_count || info.version_max != footer_.version_max)) {
    status = Status::Corruption("properties that contradict the footer");
  }
  if (status.ok() && info.version_max > kVersionGivenMax)
    status = Status::Corruption("properties with a version that no clock gives");
  if (!status.ok()) co_return Damaged(status, footer_.properties.offset, SealKind::kProperties);
  properties_.info.file_size = footer_.file_size;
  co_return status;
}

Task<Status> TableReader::OpenTopIndex(const Tail& tail) {
  Result<StoredPart> part = co_await ReadPart(footer_.top_index, SealKind::kIndexBlock, nullptr, &tail);
  if (!part.ok()) co_return part.status();
  std::string content(footer_.top_index.content_size, '\0');
  Status status = DecodePart(part->bytes, reinterpret_cast<uint8_t*>(content.data()));
  if (status.ok()) status = ValidateIndex(content, IndexBlocks());
  if (!status.ok()) co_return Damaged(status, footer_.top_index.offset, SealKind::kIndexBlock);
  top_index_content_ = std::move(content);
  top_index_ = DataBlock(top_index_content_);
  data_blocks_before_.reserve(top_index_.size() + 1);
  uint64_t data_blocks = 0;
  for (uint32_t i = 0; i < top_index_.size(); ++i) {
    data_blocks_before_.push_back(data_blocks);
    data_blocks += IndexRecordEntryCount(top_index_.value(i));
  }
  data_blocks_before_.push_back(data_blocks);
  places_.Open(top_index_);
  co_return status;
}

// Only a lack of memory fails, and who is told to stop: a damaged filter is an answer, "maybe" (F45).
Task<Status> TableReader::OpenFilter(const Tail& tail, PartHandle handle, uint64_t keys, FuseFilter* filter) {
  if (handle.stored_size == 0) co_return Status();  // The writer could not build it.
  Result<StoredPart> part = co_await ReadPart(handle, SealKind::kFilterBlock, nullptr, &tail);
  Status status = part.status();
  if (status.ok()) {
    std::string content(handle.content_size, '\0');
    status = DecodePart(part->bytes, reinterpret_cast<uint8_t*>(content.data()));
    if (status.ok()) status = filter->Load(std::move(content), keys);
  }
  if (status.code() == Code::kResourceExhausted || status.code() == Code::kCancelled) co_return status;
  if (!status.ok()) cache_.faults().damaged_filters.fetch_add(1);
  co_return Status();
}

Status TableReader::CheckIs(const TableInfo& named) const {
  if (info() == named) return Status();
  return Status::Corruption(name() + ": is another file than the manifest names (F41)");
}

// --- Parts and blocks ---

Status TableReader::Damaged(const Status& cause, uint64_t offset, SealKind kind) const {
  std::string where = name() + ", offset " + std::to_string(offset) + ", " + std::string(KindName(kind));
  // Bytes that cannot be read are damage to whoever asks for the keys in them.
  if (cause.code() == Code::kIoError)
    return Status::Corruption(where + ": cannot be read: " + cause.message() + " (F43)");
  return Status(cause.code(), where + ": " + cause.message() + " (F43)");
}

Task<Result<AlignedBuffer>> TableReader::ReadPages(std::shared_ptr<ObjectReader> object, uint64_t begin,
                                                   AlignedBuffer pages, ReadCaching caching) {
  const ObjectRead read{begin, pages.span()};
  PARTITA_CO_TRY(co_await object->Read(std::span<const ObjectRead>(&read, 1), caching));
  co_return std::move(pages);
}

Task<Result<TableReader::StoredPart>> TableReader::ReadPartOnce(PartHandle handle, SealKind kind,
                                                                ReadCaching caching, TimedWaits* waits,
                                                                const Tail* tail) const {
  StoredPart part;
  if (tail != nullptr && tail->Holds(handle.offset, handle.stored_size)) {
    part.bytes = tail->Bytes(handle.offset, handle.stored_size);
  } else {
    // The file is a whole number of pages, so the pages around a part lie within it.
    const uint64_t begin = AlignDown(handle.offset, kPageSize);
    const uint64_t end = AlignUp(handle.end(), kPageSize);
    AlignedBuffer pages(end - begin);
    if (pages.data() == nullptr) co_return Status::ResourceExhausted("no memory to read from " + name());
    PARTITA_CO_ASSIGN(part.buffer,
                      co_await TimedWaits::InTime(waits, ReadPages(object_, begin, std::move(pages), caching),
                                                  {object_->id(), begin, end}, end - begin));
    part.bytes = part.buffer.view(handle.offset - begin, handle.stored_size);
  }
  PARTITA_CO_TRY(CheckPart(part.bytes, handle, IdentityOf(handle.offset, kind)));
  co_return part;
}

Task<Result<TableReader::StoredPart>> TableReader::ReadPart(PartHandle handle, SealKind kind,
                                                            TimedWaits* waits, const Tail* tail,
                                                            bool was_bad) const {
  Result<StoredPart> part = co_await ReadPartOnce(handle, kind, ReadCaching::kNormal, waits, tail);
  if (part.ok() && was_bad) cache_.faults().transient.fetch_add(1);
  if (part.ok()) co_return part;
  if (!MayBeTransient(part.status())) co_return part.status().WithContext(name());
  part = co_await ReadPartAgain(handle, kind, waits);
  if (part.ok()) {
    cache_.faults().transient.fetch_add(1);
    co_return part;
  }
  if (!MayBeTransient(part.status())) co_return part.status().WithContext(name());
  if (kind != SealKind::kFilterBlock) cache_.faults().damaged_parts.fetch_add(1);  // OpenFilter counts those.
  co_return Damaged(part.status(), handle.offset, kind);
}

// Of its own, so that the frame of nearly every read is small.
Task<Result<TableReader::StoredPart>> TableReader::ReadPartAgain(PartHandle handle, SealKind kind,
                                                                 TimedWaits* waits) const {
  co_return co_await ReadPartOnce(handle, kind, ReadCaching::kPastCaches, waits);
}

Status TableReader::ValidateData(std::string_view content) {
  PARTITA_TRY(DataBlock::Validate(content));
  return DataBlock(content).ValidateEntities();
}

Status TableReader::ValidateIndex(std::string_view content, const PartBounds& bounds) {
  PARTITA_TRY(DataBlock::Validate(content));
  const DataBlock index(content);
  for (uint32_t i = 0; i < index.size(); ++i) {
    if (!ValidIndexRecord(index.value(i), bounds)) {
      return Status::Corruption("index entry " + std::to_string(i) +
                                " points outside the blocks of its level");
    }
  }
  return Status();
}

Result<BlockPin> TableReader::DecodeBlock(std::string_view part, const LoadRequest& request) const {
  const PartHandle& handle = request.handle;
  BlockFrame frame = request.fill_cache ? cache_.NewFrame(KeyOf(handle), handle.content_size, request.evicts)
                                        : BlockCache::NewHeapFrame(handle.content_size);
  return DecodeInto(std::move(frame), part, request);
}

Result<BlockPin> TableReader::DecodeInto(BlockFrame frame, std::string_view part,
                                         const LoadRequest& request) const {
  const PartHandle& handle = request.handle;
  if (frame.data() == nullptr) return Status::ResourceExhausted("no memory for a block of " + name());
  Status status = DecodePart(part, frame.data());
  if (status.ok()) {
    status = request.kind == SealKind::kIndexBlock ? ValidateIndex(frame.view(), DataBlocks())
                                                   : ValidateData(frame.view());
  }
  if (!status.ok()) {
    if (status.code() == Code::kCorruption) cache_.faults().damaged_parts.fetch_add(1);
    return Damaged(status, handle.offset, request.kind);
  }
  if (request.is_miss) cache_.CountMiss();
  return cache_.Insert(KeyOf(handle), std::move(frame), request.priority);
}

auto TableReader::DecodeRow(std::string_view part, const PartHandle& handle, const SoughtKey& key,
                            BlockFrame* scratch) const -> LoadedForRow {
  using What = LoadedForRow::What;
  constexpr size_t kFrontBytes = 512;  // What lies before the values of most blocks.
  if (scratch->data() == nullptr || scratch->size() < 2 * kFrontBytes) return {};
  if (!DecodeFront(part, kFrontBytes, scratch->data())) return {};
  const std::string_view content = scratch->view();
  const uint64_t values_begin = DataBlock::ValuesBegin(content);
  if (values_begin > kFrontBytes || !ValidateData(content).ok()) return {};
  const DataBlock block(content);
  const uint32_t at = block.LowerBound(key.user_key);
  if (at == block.size() || block.CompareKey(at, key.user_key) != 0)
    return {.what = What::kNothing, .pin = {}};
  if (!IsWorthCutting(block, at)) return {};
  uint32_t last = at;
  while (last + 1 < block.size() && block.same_key_as_before(last + 1)) ++last;
  if (!DecodeFront(part, values_begin + block.columns().value_end(last), scratch->data())) return {};
  const CachedRow row = CutRow(KeyOf(handle), key.hash.key, block, at);
  cache_.TryAddRow(row.key, row.content);
  BlockFrame alone = BlockCache::NewHeapFrame(row.content.size());
  if (alone.data() == nullptr) return {};
  row.content.copy(reinterpret_cast<char*>(alone.data()), alone.size());
  return {.what = What::kRow, .pin = cache_.Insert(KeyOf(handle), std::move(alone), CachePriority::kPoint)};
}

auto TableReader::DecodeForRow(std::string_view part, const LoadRequest& request) const
    -> Result<LoadedForRow> {
  BlockFrame frame = cache_.NewFrame(KeyOf(request.handle), request.handle.content_size, request.evicts);
  LoadedForRow loaded;
  if (frame.from_heap()) loaded = DecodeRow(part, request.handle, *request.row, &frame);
  if (loaded.what == LoadedForRow::What::kBlock) {
    PARTITA_ASSIGN(loaded.pin, DecodeInto(std::move(frame), part, request));
  } else {
    cache_.CountMiss();
  }
  return loaded;
}

auto TableReader::LoadForRow(LoadRequest request) const -> Task<Result<LoadedForRow>> {
  Result<StoredPart> part = co_await ReadPart(request.handle, request.kind, request.waits);
  if (!part.ok()) co_return part.status();
  co_return DecodeForRow(part->bytes, request);
}

Task<Result<BlockPin>> TableReader::LoadBlock(LoadRequest request) const {
  Result<StoredPart> part =
      co_await ReadPart(request.handle, request.kind, request.waits, nullptr, request.was_bad);
  if (!part.ok()) co_return part.status();
  co_return DecodeBlock(part->bytes, request);
}

// --- Lookups ---

BlockPin TableReader::EnterIndex(uint32_t top_at) const {
  BlockPlace* place = places_.OfIndex(top_at);
  const char* prefetched = place != nullptr ? cache_.Prefetch(*place) : nullptr;
  BlockPin pin = cache_.Lookup(KeyOf(IndexRecordHandle(top_index_.value(top_at))), place);
  if (!pin) return pin;
  if (pin.content().data() != prefetched) DataBlock::Prefetch(pin.content());
  DataBlock(pin.content()).PrefetchValueEnds();
  return pin;
}

BlockPin TableReader::EnterData(const DataBlock& index, uint32_t top_at, uint32_t at) const {
  BlockPlace* place = places_.OfData(top_at, at);
  const char* prefetched = place != nullptr ? cache_.Prefetch(*place) : nullptr;
  BlockPin pin = cache_.Lookup(KeyOf(IndexRecordHandle(index.value(at))), place);
  if (pin && pin.content().data() != prefetched) DataBlock::Prefetch(pin.content());
  return pin;
}

bool TableReader::PrefetchData(uint32_t top_at, uint32_t at) const {
  const BlockPlace* place = places_.OfData(top_at, at);
  return place != nullptr && cache_.Prefetch(*place) != nullptr;
}

Task<Result<BlockPin>> TableReader::LoadIndex(uint32_t top_at) const {
  BlockPin pin = EnterIndex(top_at);
  if (pin) co_return std::move(pin);
  const LoadRequest request{.handle = IndexRecordHandle(top_index_.value(top_at)),
                            .kind = SealKind::kIndexBlock,
                            .priority = CachePriority::kIndex,
                            .waits = cache_.waits()};
  co_return co_await LoadBlock(request);
}

TableLookup TableReader::TryGet(const KeyHash& hash, std::string_view user_key, Version at_most,
                                BlockPin* pin) const {
  TableLookup result;
  if (LacksPartition(hash)) return result;
  const SoughtKey key{user_key, hash};
  if (BlockPin row = EnterKnownRow(key)) {
    result.lookup = FindInRow(std::move(row), user_key, at_most, pin);
    return result;
  }
  if (!key_filter_.MayContain(hash.key)) return result;
  const uint32_t top = top_index_.LowerBound(user_key);
  if (top == top_index_.size()) return result;
  const BlockPin index_pin = EnterIndex(top);
  if (!index_pin) {
    result.needs_io = true;
    return result;
  }
  const DataBlock index(index_pin.content());
  const uint32_t at = index.LowerBound(user_key);
  if (at == index.size()) return result;
  const PartHandle handle = IndexRecordHandle(index.value(at));
  BlockPin data_pin = EnterData(index, top, at);
  if (!data_pin) data_pin = EnterRow(handle, key);
  if (!data_pin) {
    result.needs_io = true;
    return result;
  }
  result.lookup = FindIn(&data_pin, handle, key, at_most);
  if (result.lookup.state == LookupState::kFound) {
    DataBlock::Prefetch(result.lookup.value);  // Whoever asked is about to copy it.
    *pin = std::move(data_pin);
  }
  return result;
}

Task<Result<Lookup>> TableReader::Get(KeyHash hash, std::string_view user_key, Version at_most,
                                      BlockPin* pin) const {
  if (LacksPartition(hash)) co_return Lookup();
  const SoughtKey key{user_key, hash};
  if (BlockPin row = EnterKnownRow(key)) co_return FindInRow(std::move(row), user_key, at_most, pin);
  if (!key_filter_.MayContain(hash.key)) co_return Lookup();
  const uint32_t top = top_index_.LowerBound(user_key);
  if (top == top_index_.size()) co_return Lookup();
  PARTITA_CO_ASSIGN(const BlockPin index_pin, co_await LoadIndex(top));
  const DataBlock index(index_pin.content());
  const uint32_t at = index.LowerBound(user_key);
  if (at == index.size()) co_return Lookup();
  const PartHandle handle = IndexRecordHandle(index.value(at));
  cache_.PrefetchMiss(KeyOf(handle), CachedRowKey(KeyOf(handle), hash.key));
  BlockPin data_pin = EnterData(index, top, at);
  if (!data_pin) data_pin = EnterRow(handle, key);
  if (!data_pin) {
    const LoadRequest request{.handle = handle,
                              .kind = SealKind::kDataBlock,
                              .priority = CachePriority::kPoint,
                              .evicts = cache_.MissedOften(KeyOf(handle)),
                              .waits = cache_.waits(),
                              .row = &key};
    PARTITA_CO_ASSIGN(LoadedForRow loaded, co_await LoadForRow(request));
    if (loaded.what == LoadedForRow::What::kNothing) co_return Lookup();
    if (loaded.what == LoadedForRow::What::kRow)
      co_return FindInRow(std::move(loaded.pin), user_key, at_most, pin);
    data_pin = std::move(loaded.pin);
  }
  const Lookup lookup = FindIn(&data_pin, handle, key, at_most);
  if (lookup.state == LookupState::kFound) *pin = std::move(data_pin);
  co_return lookup;
}

Task<Result<Lookup>> TableReader::GetAnew(KeyHash hash, std::string_view user_key, Version at_most,
                                          BlockPin* pin) const {
  if (!MayHold(hash)) co_return Lookup();
  const uint32_t top = top_index_.LowerBound(user_key);
  if (top == top_index_.size()) co_return Lookup();
  PARTITA_CO_ASSIGN(const BlockPin index_pin, co_await LoadIndex(top));
  const DataBlock index(index_pin.content());
  const uint32_t at = index.LowerBound(user_key);
  if (at == index.size()) co_return Lookup();
  const PartHandle handle = IndexRecordHandle(index.value(at));
  const LoadRequest request{.handle = handle, .fill_cache = false, .waits = cache_.waits()};
  PARTITA_CO_ASSIGN(BlockPin data_pin, co_await LoadBlock(request));
  const Lookup lookup = DataBlock(data_pin.content()).Find(user_key, at_most);
  const auto block_differs = [&](const BlockPin& cached) {
    return cached && cached.content() != data_pin.content();
  };
  const auto row_differs = [&](const BlockPin& cached) {
    if (!cached) return false;
    const Lookup known = DataBlock(cached.content()).Find(user_key, at_most);
    return known.version != lookup.version || known.value != lookup.value;
  };
  if (block_differs(cache_.Lookup(KeyOf(handle)))) cache_.Drop(KeyOf(handle));
  if (row_differs(EnterRow(handle, {user_key, hash}))) cache_.Drop(CachedRowKey(KeyOf(handle), hash.key));
  if (lookup.state == LookupState::kFound) *pin = std::move(data_pin);
  co_return lookup;
}

BlockPin TableReader::EnterKnownRow(const SoughtKey& key) const {
  BlockPin pin = cache_.LookupRowByHash(object_->id(), key.hash.key);
  // Another key may have the same hash.
  if (pin && DataBlock(pin.content()).CompareKey(0, key.user_key) != 0) pin.Release();
  return pin;
}

BlockPin TableReader::EnterRow(const PartHandle& handle, const SoughtKey& key) const {
  BlockPin pin = cache_.LookupRow(CachedRowKey(KeyOf(handle), key.hash.key));
  // Another key may have the same hash.
  if (pin && DataBlock(pin.content()).CompareKey(0, key.user_key) != 0) pin.Release();
  return pin;
}

Lookup TableReader::FindInRow(BlockPin row, std::string_view user_key, Version at_most, BlockPin* pin) {
  const Lookup lookup = DataBlock(row.content()).Find(user_key, at_most);
  if (lookup.state == LookupState::kFound) {
    DataBlock::Prefetch(lookup.value);  // Whoever asked is about to copy it.
    *pin = std::move(row);
  }
  return lookup;
}

Lookup TableReader::FindIn(BlockPin* pin, const PartHandle& handle, const SoughtKey& key,
                           Version at_most) const {
  const DataBlock block(pin->content());
  uint32_t at = block.size();
  const Lookup lookup = block.Find(key.user_key, at_most, &at);
  if (at == block.size()) return lookup;
  if (pin->cached()) {
    pin->MarkEntry(at);
    return lookup;
  }
  if (IsWorthCutting(block, at)) {
    const CachedRow row = CutRow(KeyOf(handle), key.hash.key, block, at);
    cache_.TryAddRow(row.key, row.content);
    return lookup;
  }
  BlockFrame frame = cache_.NewFrame(KeyOf(handle), pin->content().size());
  if (frame.from_heap()) return lookup;
  std::memcpy(frame.data(), pin->content().data(), frame.size());
  *pin = cache_.Insert(KeyOf(handle), std::move(frame), CachePriority::kPoint);
  return DataBlock(pin->content()).Find(key.user_key, at_most);
}

Task<Status> TableReader::ReadTogether(std::span<const std::string_view> user_keys) const {
  std::vector<PartHandle> missing;
  uint64_t bytes = 0;
  BlockPin index_pin;
  uint32_t top = 0;
  for (const std::string_view user_key : user_keys) {
    const uint32_t key_top = top_index_.LowerBound(user_key);
    if (key_top == top_index_.size()) break;
    if (!index_pin || key_top != top) {
      top = key_top;
      Result<BlockPin> loaded = co_await LoadIndex(top);
      if (!loaded.ok()) co_return OnlyDeadline(loaded.status());
      index_pin = std::move(loaded).value();
    }
    const DataBlock index(index_pin.content());
    const uint32_t at = index.LowerBound(user_key);
    if (at == index.size()) continue;
    const PartHandle handle = IndexRecordHandle(index.value(at));
    // Behind the one before, or of the same block; an index that says otherwise is for Get to deal with.
    if (!missing.empty() && handle.offset < missing.back().end()) continue;
    // The cache might not take a very large one, and Get would read it again.
    if (handle.content_size > kReadTogetherBytes / 8 || cache_.Contains(KeyOf(handle)) ||
        cache_.Contains(CachedRowKey(KeyOf(handle), Hash64(user_key))))
      continue;
    missing.push_back(handle);
    bytes += handle.stored_size;
    if (bytes >= kReadTogetherBytes) {
      PARTITA_CO_TRY(co_await ReadBatch(missing));
      missing.clear();
      bytes = 0;
    }
  }
  if (!missing.empty()) PARTITA_CO_TRY(co_await ReadBatch(missing));
  co_return Status();
}

Task<Status> TableReader::ReadBatch(std::span<const PartHandle> handles) const {
  std::vector<ReadAheadRun> runs;
  size_t at = 0;
  for (const PartHandle& handle : handles) {
    const uint64_t begin = AlignDown(handle.offset, kPageSize), end = AlignUp(handle.end(), kPageSize);
    if (runs.empty() || begin > runs.back().end) runs.push_back({begin, begin, at});
    at += end - runs.back().end;
    runs.back().end = end;
  }
  const std::shared_ptr<ReadAheadPiece> piece =
      ReadAheadPool::Prepare(nullptr, object_, std::move(runs), AlignedBuffer());
  if (piece == nullptr) co_return Status();
  Status read = co_await ReadAheadPiece::ArriveInTime(cache_.waits(), piece);
  if (!read.ok()) co_return OnlyDeadline(read.WithContext(name()));
  for (const PartHandle& handle : handles) {
    const std::string_view part = piece->Find(handle);
    if (!CheckPart(part, handle, IdentityOf(handle.offset, SealKind::kDataBlock)).ok()) continue;
    (void)DecodeBlock(part, {.handle = handle, .priority = CachePriority::kPoint});
  }
  co_return Status();
}

std::unique_ptr<TableIterator> TableReader::NewIterator(Direction direction, IterOptions options) const {
  return std::make_unique<TableIterator>(shared_from_this(), direction, std::move(options));
}

}  // namespace partita
