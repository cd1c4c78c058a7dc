// Feeds arbitrary bytes to every reader of a table file's formats (F77). The first byte picks the
// format. Seals are made good, as an attacker who can compute them would; what is accepted is then read
// in every way, so that a sanitizer sees any step outside.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "engine/base/assert.h"
#include "engine/base/coding.h"
#include "engine/base/executor.h"
#include "engine/base/stored_value.h"
#include "engine/base/user_key.h"
#include "sstable/data_block.h"
#include "sstable/footer_format.h"
#include "sstable/fuse_filter.h"
#include "sstable/index_record.h"
#include "sstable/level_set.h"
#include "sstable/properties.h"
#include "sstable/rising_lookup.h"
#include "sstable/table_reader.h"
#include "test/support/memory_object_store.h"

namespace partita {
namespace {

constexpr StoreId kStore{1};
constexpr ObjectId kObject{1};

void ReadBlock(std::string_view content) {
  if (!DataBlock::Validate(content).ok()) return;
  const DataBlock block(content);
  const bool entities = block.ValidateEntities().ok();
  for (uint32_t i = 0; i < block.size(); ++i) {
    const std::string key = block.Key(i);
    (void)block.Find(key, block.version(i));
    (void)block.LowerBound(key.substr(0, key.size() / 2));
    (void)StoredValueIntact({key, block.version(i), block.kind(i), block.value(i)});
    if (entities) {
      (void)PartitionPrefix(key);
      (void)StoredValueContent(block.value(i));
    }
    if (!ValidIndexRecord(block.value(i), {0, 1 << 20})) continue;
    (void)IndexRecordZones(block.value(i));
    (void)IndexRecordKeySum(block.value(i));
    const ZoneMapView zones = IndexRecordZoneView(block.value(i));
    Zone zone;
    for (int property = 0; zones.valid() && property < 256; ++property) {
      (void)zones.Find(static_cast<uint8_t>(property), &zone);
    }
  }
}

void ReadPart(std::string part) {
  if (part.size() < kPartHeaderSize) return;
  const PartHandle handle{0, static_cast<uint32_t>(part.size()), LoadLe32(part.data() + 12)};
  if (handle.content_size > 1 << 20) return;
  const Identity identity = PartIdentity(kStore, kObject, 0, SealKind::kDataBlock);
  StoreLe64(part.data(), PartContentHash(part) ^ identity.Mix());
  if (!CheckPart(part, handle, identity).ok()) return;
  std::unique_ptr<uint8_t[]> content(new uint8_t[handle.content_size]);
  const bool whole = DecodePart(part, content.get()).ok();
  const size_t front_size = handle.content_size / 2;
  std::unique_ptr<uint8_t[]> front(new uint8_t[front_size]);
  const bool in_part = DecodeFront(part, front_size, front.get());
  PARTITA_ASSERT(!whole || !in_part || std::memcmp(front.get(), content.get(), front_size) == 0);
  if (!whole) return;
  ReadBlock({reinterpret_cast<const char*>(content.get()), handle.content_size});
}

// Makes the seal of the part at `offset` good, if there is room for one.
void Reseal(std::string* file, uint64_t offset, uint32_t size, SealKind kind) {
  if (size < kPartHeaderSize || offset > file->size() || size > file->size() - offset) return;
  const std::string_view part = std::string_view(*file).substr(offset, size);
  StoreLe64(file->data() + offset, PartContentHash(part) ^ PartIdentity(kStore, kObject, offset, kind).Mix());
}

void ReadFile(std::string file) {
  file.resize(std::max<size_t>(AlignUp(file.size(), kPageSize), kPageSize));
  char* footer = file.data() + file.size() - kFooterSize;
  StoreLe64(footer + 104, file.size());
  StoreLe16(footer + 112, kTableFormat);
  StoreLe16(footer + 114, 0);
  StoreLe32(footer + 116, kTableMagic);
  const SealKind kinds[] = {SealKind::kIndexBlock, SealKind::kProperties, SealKind::kFilterBlock,
                            SealKind::kFilterBlock};
  for (size_t i = 0; i < 4; ++i)
    Reseal(&file, LoadLe64(footer + 16 * i), LoadLe32(footer + 16 * i + 8), kinds[i]);
  const Identity identity = PartIdentity(kStore, kObject, file.size() - kFooterSize, SealKind::kFooter);
  StoreLe64(footer + 120, Seal(std::string_view(footer, 120), identity));

  MemoryObjectStore store;
  store.Put(kObject, std::move(file));
  BlockCache cache(256 << 10);
  auto table = RunBlocking(TableReader::Open(store, cache, kStore, kObject));
  if (!table.ok()) return;
  BlockPin pin;
  const std::string key = (*table)->info().smallest;
  (void)RunBlocking((*table)->Get(HashKey(key), key, kVersionMax, &pin));
  const std::string largest = (*table)->info().largest;
  const std::string_view keys[] = {key, largest};
  (void)RunBlocking((*table)->ReadTogether(keys));
  RisingLookup lookup(**table);
  for (const std::string_view user_key : keys) {
    if (user_key >= keys[0]) (void)lookup.TryGet({user_key, HashKey(user_key)}, kVersionMax, &pin);
  }
  for (Direction direction : {Direction::kForward, Direction::kBackward}) {
    auto it = (*table)->NewIterator(direction);
    IterState state = it->SeekToFirst();
    for (int steps = 0; steps < 10'000 && state != IterState::kEnd; ++steps) {
      if (state == IterState::kNeedsIo) {
        if (!RunBlocking(it->Fetch()).ok()) break;
        state = it->state();
      } else {
        state = it->Next();
      }
    }
  }
  TableVerifyReport report;
  (void)RunBlocking((*table)->Verify(&report));
}

}  // namespace
}  // namespace partita

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace partita;
  if (size == 0) return 0;
  // A copy of exactly this size, so that one byte too far is seen.
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 6) {
    case 0:
      ReadBlock(bytes);
      break;
    case 1: {
      FuseFilter filter;
      if (filter.Load(bytes, UINT64_MAX).ok()) {
        for (uint64_t hash = 0; hash < 64; ++hash) (void)filter.MayContain(hash * 0x9E3779B97F4A7C15ULL);
      }
      break;
    }
    case 2:
      (void)DecodeProperties(bytes);
      break;
    case 3:
      ReadPart(bytes);
      break;
    case 4: {
      ByteReader reader(bytes);
      (void)ReadFileMeta(&reader);
      break;
    }
    default:
      ReadFile(bytes);
  }
  return 0;
}
