#include "sstable/table_writer.h"

#include <algorithm>
#include <utility>

#include "engine/base/aligned_buffer.h"
#include "engine/base/assert.h"
#include "engine/base/deleted_keys.h"
#include "engine/base/site.h"
#include "engine/base/stored_value.h"
#include "sstable/footer_format.h"
#include "sstable/fuse_filter.h"
#include "sstable/index_record.h"
#include "sstable/key_hash.h"
#include "sstable/properties.h"

namespace partita {

namespace {

// The object's writer gathers larger pieces of them.
constexpr size_t kDrainSize = 64u << 10;
// Entities above this get a block of their own, so that reading a neighbour does not carry them.
constexpr size_t kOwnBlockValueSize = 2048;
// Content of an index block. Larger than a page, since with 16 zones an index record has 340 bytes and
// a lookup touches only the key area.
constexpr size_t kIndexBlockSize = 16 * 1024;
// A data block starts at a page boundary when that saves reading a page and costs at most an eighth
// of the block in padding. Measured: see bench/micro/block_bench.cc. Tables that are not compressed, those of
// level 0, have none: it took 2 to 9 % of each flush, of what lives for minutes.
constexpr size_t kPaddingShareMax = 8;
// A key that is not there costs a read of the disk wherever a filter lets it through, and level 0 has many
// files to ask. From so many bytes a row on a filter of 18 bits a key is less than a hundredth of its file.
constexpr uint64_t kRowBytesForLongFilter = 256;

size_t PagesTouched(uint64_t offset, size_t size) {
  return (offset % kPageSize + size + kPageSize - 1) / kPageSize;
}

struct FinishedBlock {
  PartHandle handle;
  uint32_t entry_count = 0;
  uint64_t key_sum = 0;
  std::string fence;  // The last key until the next block's first key is known.
};

}  // namespace

struct TableWriter::State {
  State(TableWriterOptions o, std::unique_ptr<ObjectWriter> w)
      : options(std::move(o)),
        object(std::move(w)),
        encoder(options.codec),
        plain_encoder(Codec::kStored),
        compression_settled(options.shrink_min == 0),
        zones(options.zones),
        key_sum_seed(KeySumSeed(options.store)) {
    properties.info.id = options.id;
  }

  void Account(const Entry& entry, bool new_key);
  void BeginBlockAt(std::string_view first_key);
  Status CloseBlock();
  void SettleCompression(std::string_view content);
  PartEncoder& block_encoder() { return options.codec == Codec::kStored ? plain_encoder : encoder; }
  uint64_t PaddingBefore(size_t size) const;
  PartHandle Place(std::string_view part, SealKind kind, uint64_t content_hash);
  Result<PartHandle> PlacePart(PartEncoder& with, SealKind kind, std::string_view content);
  Status BuildIndex(const ZoneMapBuilder::Output& zone_maps);
  Status BuildTail();
  Task<Status> WriteRest();

  TableWriterOptions options;
  std::unique_ptr<ObjectWriter> object;
  PartEncoder encoder;
  PartEncoder plain_encoder;  // Filters do not compress, nor what `shrink_min` refused.
  bool compression_settled;
  DataBlockBuilder block;
  bool block_is_full = false;     // The next key goes to another block, whatever its size.
  size_t block_limit = SIZE_MAX;  // Of this block alone.
  ZoneMapBuilder zones;
  const uint64_t key_sum_seed;
  uint64_t key_sum = 0;  // Of the block that is not closed yet.
  std::vector<FinishedBlock> blocks;
  std::vector<uint64_t> key_hashes;
  std::vector<uint64_t> partition_hashes;
  std::string last_key;
  Version last_version;
  size_t last_partition_size = 0;

  std::string pending;  // Placed, not yet written.
  uint64_t offset = 0;  // Where the next byte goes.
  std::string scratch;
  TableProperties properties;
  Footer footer;
  bool ended = false;  // Its footer is written.
  bool closed = false;
};

Task<Result<std::unique_ptr<TableWriter>>> TableWriter::Create(ObjectStore& store,
                                                               TableWriterOptions options) {
  if (options.block_size < kBlockSizeMin || options.block_size > kBlockSizeMax) {
    co_return Status::InvalidArgument("block size " + std::to_string(options.block_size) + ", allowed are " +
                                      std::to_string(kBlockSizeMin) + " to " + std::to_string(kBlockSizeMax));
  }
  Result<std::unique_ptr<ObjectWriter>> object = co_await store.Create(options.id);
  if (!object.ok()) co_return object.status();
  auto state = std::make_unique<State>(std::move(options), std::move(object).value());
  co_return std::unique_ptr<TableWriter>(new TableWriter(std::move(state)));
}

TableWriter::TableWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}

TableWriter::~TableWriter() { PARTITA_ASSERT(state_->closed); }

// --- Entries ---

Status TableWriter::Add(const Entry& entry) {
  State& s = *state_;
  if (entry.user_key.empty() || entry.user_key.size() > kUserKeySizeMax) {
    return Status::InvalidArgument("user key of " + std::to_string(entry.user_key.size()) +
                                   " bytes, allowed are 1 to " + std::to_string(kUserKeySizeMax));
  }
  if (SiteIsOn("table.write.value_check") && !StoredValueIntact(entry)) {
    return Status::Corruption("an entry's value differs from what its writer gave, on its way to object " +
                              std::to_string(s.options.id.value) + " (F51)");
  }
  const bool first = s.properties.info.entry_count == 0;
  const bool new_key = first || entry.user_key != s.last_key;
  if (!first) PARTITA_ASSERT(EntryBefore(s.last_key, s.last_version, entry.user_key, entry.version));

  // Versions of one key stay together whatever they weigh.
  if (new_key) {
    const bool large = entry.value.size() > kOwnBlockValueSize;
    const size_t with =
        s.block.content_size_with(entry.user_key.size(), entry.value.size()) + kPartHeaderSize;
    if (!s.block.empty() &&
        (large || s.block_is_full || with > std::min(s.block_limit, s.options.block_size)))
      PARTITA_TRY(s.CloseBlock());
    if (s.block.empty()) s.BeginBlockAt(entry.user_key);
    s.block_is_full = large;
  }
  s.block.Add(entry);
  s.Account(entry, new_key);
  return Status();
}

void TableWriter::State::Account(const Entry& entry, bool new_key) {
  TableInfo& info = properties.info;
  if (info.entry_count == 0) {
    info.smallest = entry.user_key;
    info.version_min = info.version_max = entry.version;
  }
  info.version_min = std::min(info.version_min, entry.version);
  info.version_max = std::max(info.version_max, entry.version);
  ++info.entry_count;
  if (entry.kind == EntryKind::kTombstone) ++info.tombstone_count;
  info.raw_bytes += entry.user_key.size() + entry.value.size();
  zones.Add(entry);
  last_version = entry.version;
  if (!new_key) return;
  // Every key once, the first and the last included (M28).
  key_hashes.push_back(Hash64(entry.user_key));
  key_sum += KeySumTerm(entry.user_key, key_sum_seed);
  std::string_view partition = PartitionPrefixOrAll(entry.user_key);
  if (partition_hashes.empty() || partition != std::string_view(last_key).substr(0, last_partition_size)) {
    partition_hashes.push_back(Hash64(partition));
    last_partition_size = partition.size();
  }
  last_key.assign(entry.user_key);
}

Status TableWriter::AddBlock(const PassThroughBlock& passed) {
  State& s = *state_;
  const DataBlock& decoded = *passed.decoded;
  std::string key = decoded.Key(0);
  PARTITA_ASSERT(s.properties.info.entry_count == 0 || key > s.last_key);
  PARTITA_ASSERT(s.options.shrink_min == 0);
  // The old seal was checked when the block was read; this finds what flipped in memory since (F51).
  if (SiteIsOn("table.pass.check") && PartContentHash(passed.stored) != passed.content_hash) {
    return Status::Corruption("a block changed in memory on its way to object " +
                              std::to_string(s.options.id.value));
  }
  if (!s.block.empty()) PARTITA_TRY(s.CloseBlock());
  s.BeginBlockAt(key);
  for (uint32_t i = 0; i < decoded.size(); ++i) {
    const bool new_key = !decoded.same_key_as_before(i);
    if (new_key) decoded.KeyTo(i, &key);
    const Entry entry{key, decoded.version(i), decoded.kind(i), decoded.value(i)};
    if (SiteIsOn("table.pass.value_check") && !StoredValueIntact(entry)) {
      return Status::Corruption(
          "a passed block holds a value that differs from what its writer gave, on its way to object " +
          std::to_string(s.options.id.value) + " (F51)");
    }
    s.Account(entry, new_key);
  }
  const PartHandle handle = s.Place(passed.stored, SealKind::kDataBlock, passed.content_hash);
  s.blocks.push_back({handle, decoded.size(), std::exchange(s.key_sum, 0), s.last_key});
  s.zones.FinishBlock();
  s.block_limit = SIZE_MAX;
  return Status();
}

// The fence of the block before is settled by the first key of this one.
void TableWriter::State::BeginBlockAt(std::string_view first_key) {
  if (!blocks.empty()) blocks.back().fence = FenceBetween(blocks.back().fence, first_key);
}

Status TableWriter::State::CloseBlock() {
  const uint32_t entries = static_cast<uint32_t>(block.entry_count());
  scratch.clear();
  block.Finish(&scratch);
  PARTITA_DEBUG_ASSERT(DataBlock::Validate(scratch).ok());
  if (!compression_settled) SettleCompression(scratch);
  Result<PartHandle> handle = PlacePart(block_encoder(), SealKind::kDataBlock, scratch);
  if (!handle.ok()) return handle.status();
  blocks.push_back({*handle, entries, std::exchange(key_sum, 0), last_key});
  zones.FinishBlock();
  block_is_full = false;
  block_limit = SIZE_MAX;
  return Status();
}

// Whether the file is compressed. Blocks that say little, such as a small entity before a large one, do not
// settle it; they are compressed, as each part names its own codec. Tombstones are not, however alike: a
// level is merged down for its weight, and what they delete takes room until then.
void TableWriter::State::SettleCompression(std::string_view content) {
  if (content.size() < options.block_size / 2 || content.size() > kPartContentMax) return;
  compression_settled = true;
  const std::string_view part = encoder.Encode(SealKind::kDataBlock, content);
  const TableInfo& info = properties.info;
  if (part.size() * options.shrink_min > content.size() || info.tombstone_count * 2 > info.entry_count) {
    options.codec = Codec::kStored;
  }
}

// --- Places ---

uint64_t TableWriter::State::PaddingBefore(size_t size) const {
  if (options.codec == Codec::kStored) return 0;
  const uint64_t padding = AlignUp(offset, kPageSize) - offset;
  if (PagesTouched(offset, size) == PagesTouched(0, size)) return 0;
  return padding <= size / kPaddingShareMax ? padding : 0;
}

PartHandle TableWriter::State::Place(std::string_view part, SealKind kind, uint64_t content_hash) {
  if (kind == SealKind::kDataBlock) {
    const uint64_t padding = PaddingBefore(part.size());
    pending.append(padding, '\0');
    offset += padding;
    properties.padding_bytes += padding;
    properties.data_bytes += part.size();
    ++properties.data_blocks;
  }
  const PartHandle handle{offset, static_cast<uint32_t>(part.size()), LoadLe32(part.data() + 12)};
  char seal[8];
  StoreLe64(seal, content_hash ^ PartIdentity(options.store, options.id, offset, kind).Mix());
  pending.append(seal, 8);
  pending.append(part.substr(8));
  offset += part.size();
  return handle;
}

Result<PartHandle> TableWriter::State::PlacePart(PartEncoder& with, SealKind kind, std::string_view content) {
  if (content.size() > kPartContentMax)
    return Status::InvalidArgument("a part above " + std::to_string(kPartContentMax) + " bytes");
  const std::string_view part = with.Encode(kind, content);
  return Place(part, kind, PartContentHash(part));
}

bool TableWriter::NeedsDrain() const { return state_->pending.size() >= kDrainSize; }

Task<Status> TableWriter::Drain() {
  State& s = *state_;
  if (s.pending.empty()) co_return Status();
  Status written = co_await s.object->Append(s.pending);
  s.pending.clear();
  co_return written;
}

uint64_t TableWriter::estimated_size() const {
  const State& s = *state_;
  return s.offset + s.block.content_size() + s.key_hashes.size() * 9 / 8 + s.blocks.size() * 64 + kPageSize;
}
size_t TableWriter::block_fill() const {
  return state_->block.empty() || state_->block_is_full ? 0 : state_->block.content_size();
}
void TableWriter::LimitBlock(size_t content_size) { state_->block_limit = content_size; }
uint64_t TableWriter::entry_count() const { return state_->properties.info.entry_count; }
std::string_view TableWriter::last_key() const { return state_->last_key; }

// --- The end of the file ---

Status TableWriter::State::BuildIndex(const ZoneMapBuilder::Output& zone_maps) {
  PARTITA_ASSERT(zone_maps.blocks.size() == blocks.size());
  footer.index_begin = offset;
  DataBlockBuilder index, top;
  std::string record, content;
  for (size_t i = 0; i < blocks.size(); ++i) {
    record.clear();
    AppendIndexRecord(&record, blocks[i].handle, blocks[i].entry_count);
    AppendZoneMap(&record, zone_maps.blocks[i]);
    AppendLe64(&record, blocks[i].key_sum);
    index.Add({.user_key = blocks[i].fence, .version = Version(0), .kind = EntryKind::kPut, .value = record});
    if (i + 1 < blocks.size() && index.content_size() < kIndexBlockSize) continue;
    const uint32_t count = static_cast<uint32_t>(index.entry_count());
    content.clear();
    index.Finish(&content);
    PARTITA_ASSIGN(const PartHandle handle, PlacePart(block_encoder(), SealKind::kIndexBlock, content));
    record.clear();
    AppendIndexRecord(&record, handle, count);
    top.Add({.user_key = blocks[i].fence, .version = Version(0), .kind = EntryKind::kPut, .value = record});
    ++properties.index_blocks;
  }
  footer.index_end = offset;
  content.clear();
  top.Finish(&content);
  scratch = std::move(content);  // Placed later, beside what is read with it.
  return Status();
}

Status TableWriter::State::BuildTail() {
  TableInfo& info = properties.info;
  info.largest = last_key;
  blocks.back().fence = last_key;
  ZoneMapBuilder::Output zone_maps = zones.Finish();
  PARTITA_TRY(BuildIndex(zone_maps));
  const std::string top_index = std::move(scratch);

  properties.key_count = key_hashes.size();
  properties.partition_count = partition_hashes.size();
  const bool few_keys = options.long_filters && offset / kRowBytesForLongFilter >= key_hashes.size();
  const std::string key_filter =
      BuildFuseFilter(&key_hashes, few_keys ? FilterWidth::k16Bits : FilterWidth::k8Bits);
  const std::string partition_filter = BuildFuseFilter(&partition_hashes, FilterWidth::k8Bits);
  if (!key_filter.empty()) {
    PARTITA_ASSIGN(footer.key_filter, PlacePart(plain_encoder, SealKind::kFilterBlock, key_filter));
  }
  if (!partition_filter.empty()) {
    PARTITA_ASSIGN(footer.partition_filter,
                   PlacePart(plain_encoder, SealKind::kFilterBlock, partition_filter));
  }
  properties.codec = static_cast<uint8_t>(options.codec);
  properties.zone_properties = std::move(zone_maps.properties);
  properties.zones = std::move(zone_maps.file);
  std::string content;
  AppendProperties(&content, properties);
  PARTITA_ASSIGN(footer.properties, PlacePart(plain_encoder, SealKind::kProperties, content));
  PARTITA_ASSIGN(footer.top_index, PlacePart(plain_encoder, SealKind::kIndexBlock, top_index));

  footer.entry_count = info.entry_count;
  footer.tombstone_count = info.tombstone_count;
  footer.version_max = info.version_max;
  footer.file_size = AlignUp(offset + kFooterSize, kPageSize);
  pending.append(footer.file_size - kFooterSize - offset, '\0');
  AppendFooter(&pending, footer, options.store, options.id);
  offset = footer.file_size;
  return Status();
}

// Hands on what is left of the table.
Task<Status> TableWriter::State::WriteRest() {
  PARTITA_ASSERT(properties.info.entry_count > 0 && !ended);
  properties.info.version_max = std::max(properties.info.version_max, options.counts_as);
  if (!block.empty()) PARTITA_CO_TRY(CloseBlock());
  PARTITA_CO_TRY(BuildTail());
  PARTITA_CO_TRY(co_await object->Append(pending));
  ended = true;
  pending = std::string();  // What is large goes before the file is durable.
  key_hashes = partition_hashes = {};
  blocks = {};
  co_return Status();
}

Task<Status> TableWriter::BeginFinish() {
  PARTITA_CO_TRY(co_await state_->WriteRest());
  co_return co_await state_->object->BeginFinish();
}

Task<Result<TableInfo>> TableWriter::Finish() {
  State& s = *state_;
  if (!s.ended) PARTITA_CO_TRY(co_await s.WriteRest());
  PARTITA_CO_TRY(co_await s.object->Finish());  // Durable before anything refers to it (F25).
  PARTITA_ASSERT(s.object->size() == s.footer.file_size);
  s.closed = true;
  TableInfo info = s.properties.info;
  info.file_size = s.footer.file_size;
  co_return info;
}

Task<void> TableWriter::Abandon() {
  state_->closed = true;
  co_await state_->object->Abandon();
}

}  // namespace partita
