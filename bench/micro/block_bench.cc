// Tables: block search, cache hits, cached lookups, building and scanning; and what block size and
// packing cost (reported as counters of BM_BuildTable):
//   ratio            entity bytes / file bytes
//   pages_dense      4 KiB pages read for one block, blocks placed without padding
//   pages_aligned    the same, each block moved to a page boundary whenever that saves a page
//   pages            the same, as the writer does it (padding of at most an eighth of a block, and none
//                    where nothing is compressed)
//   pad_aligned, pad share of the data bytes that is padding
#include <benchmark/benchmark.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/base/aligned_buffer.h"
#include "engine/base/executor.h"
#include "engine/base/stored_value.h"
#include "engine/base/user_key.h"
#include "sstable/block_cache.h"
#include "sstable/data_block.h"
#include "sstable/table_reader.h"
#include "sstable/table_writer.h"
#include "test/support/memory_object_store.h"

namespace partita {
namespace {

constexpr StoreId kStore{1};

std::string BenchKey(uint64_t i) {
  return EncodeUserKey(TableId(1), "customer-" + std::to_string(10'000'000 + i / 16),
                       "order-2026-" + std::to_string(1'000'000'000 + i));
}

// About half compressible: words of a small vocabulary and random hex digits.
std::string BenchContent(std::mt19937_64& random, size_t size) {
  static const char* kWords[] = {"shipped ", "pending ", "customer ", "warehouse ", "address ", "invoice "};
  std::string content;
  while (content.size() < size) {
    if (random() % 3 == 0) {
      content += kWords[random() % 6];
    } else {
      char hex[17];
      std::snprintf(hex, sizeof hex, "%016llx", static_cast<unsigned long long>(random()));
      content += hex;
    }
  }
  content.resize(size);
  return content;
}

std::vector<std::pair<std::string, std::string>> BenchEntities(size_t count, size_t size) {
  std::mt19937_64 random(1);
  std::vector<std::pair<std::string, std::string>> entities;
  for (size_t i = 0; i < count; ++i) {
    std::string key = BenchKey(i);
    std::string value = MakeStoredValue(key, EntryKind::kPut, BenchContent(random, size));
    entities.emplace_back(std::move(key), std::move(value));
  }
  return entities;
}

TableInfo Write(ObjectStore& store, ObjectId id,
                const std::vector<std::pair<std::string, std::string>>& entities, Codec codec,
                size_t block_size) {
  TableWriterOptions options;
  options.store = kStore;
  options.id = id;
  options.codec = codec;
  options.block_size = block_size;
  auto created = RunBlocking(TableWriter::Create(store, options));
  TableWriter& writer = **created;
  uint64_t version = 1'000'000;
  for (const auto& [key, value] : entities) {
    (void)writer.Add({key, Version(++version), EntryKind::kPut, value});
    if (writer.NeedsDrain()) (void)RunBlocking(writer.Drain());
  }
  return *RunBlocking(writer.Finish());
}

// --- In memory ---

void BM_BlockSearch(benchmark::State& state) {
  const auto entities = BenchEntities(static_cast<size_t>(state.range(0)), 100);
  DataBlockBuilder builder;
  for (const auto& [key, value] : entities) builder.Add({key, Version(7), EntryKind::kPut, value});
  std::string content;
  builder.Finish(&content);
  std::mt19937_64 random(2);
  std::vector<std::string> keys;
  for (int i = 0; i < 1024; ++i) keys.push_back(entities[random() % entities.size()].first);
  size_t at = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(DataBlock(content).Find(keys[at++ & 1023], kVersionMax));
  }
}
BENCHMARK(BM_BlockSearch)->Arg(16)->Arg(64)->Arg(128);

void BM_BlockValidate(benchmark::State& state) {
  const auto entities =
      BenchEntities(static_cast<size_t>(state.range(0)), static_cast<size_t>(state.range(1)));
  DataBlockBuilder builder;
  for (const auto& [key, value] : entities) builder.Add({key, Version(7), EntryKind::kPut, value});
  std::string content;
  builder.Finish(&content);
  for (auto _ : state) benchmark::DoNotOptimize(DataBlock::Validate(content).ok());
}
BENCHMARK(BM_BlockValidate)->Args({15, 1000})->Args({128, 100});

BlockCache& SharedCache() {
  static BlockCache cache(256 << 20);
  return cache;
}

void BM_CacheHit(benchmark::State& state) {
  BlockCache& cache = SharedCache();
  constexpr uint64_t kBlocks = 8192;
  if (state.thread_index() == 0) {
    for (uint64_t i = 0; i < kBlocks; ++i) {
      const BlockKey key{ObjectId(1000), i * 8192};
      if (!cache.Lookup(key)) cache.Insert(key, cache.NewFrame(key, 16'000), CachePriority::kPoint);
    }
  }
  std::mt19937_64 random(static_cast<uint64_t>(state.thread_index()));
  uint64_t x = random();
  for (auto _ : state) {
    x = x * 6364136223846793005ULL + 1442695040888963407ULL;
    benchmark::DoNotOptimize(cache.Lookup({ObjectId(1000), (x >> 33) % kBlocks * 8192}));
  }
}
BENCHMARK(BM_CacheHit)->Threads(1)->Threads(2);

struct CachedTable {
  explicit CachedTable(size_t count, size_t size) : entities(BenchEntities(count, size)) {
    Write(store, ObjectId(1), entities, Codec::kLz4, kBlockSizeDefault);
    table = *RunBlocking(TableReader::Open(store, cache, kStore, ObjectId(1)));
    for (const auto& [key, value] : entities) {
      BlockPin pin;
      (void)RunBlocking(table->Get(HashKey(key), key, kVersionMax, &pin));
    }
  }
  MemoryObjectStore store;
  BlockCache cache{256 << 20};
  std::vector<std::pair<std::string, std::string>> entities;
  std::shared_ptr<TableReader> table;
};
CachedTable& SmallEntities() {
  static CachedTable table(500'000, 100);
  return table;
}
CachedTable& LargeEntities() {
  static CachedTable table(100'000, 1000);
  return table;
}

void CachedGet(benchmark::State& state, CachedTable& t) {
  std::mt19937_64 random(static_cast<uint64_t>(state.thread_index()) + 9);
  uint64_t x = random();
  std::string key;
  for (auto _ : state) {
    x = x * 6364136223846793005ULL + 1442695040888963407ULL;
    const std::string& wanted = t.entities[(x >> 33) % t.entities.size()].first;
    BlockPin pin;
    TableLookup got = t.table->TryGet(HashKey(wanted), wanted, kVersionMax, &pin);
    if (got.needs_io) state.SkipWithError("not cached");
    benchmark::DoNotOptimize(got.lookup.value.data());
  }
}
void BM_CachedGet100B(benchmark::State& state) { CachedGet(state, SmallEntities()); }
void BM_CachedGet1KiB(benchmark::State& state) { CachedGet(state, LargeEntities()); }
BENCHMARK(BM_CachedGet100B)->Threads(1)->Threads(2);
BENCHMARK(BM_CachedGet1KiB)->Threads(1)->Threads(2);

void BM_MissingGet(benchmark::State& state) {
  CachedTable& t = SmallEntities();
  std::vector<std::string> keys;
  for (uint64_t i = 0; i < 4096; ++i) keys.push_back(BenchKey(i * 120) + "x");
  size_t at = 0;
  for (auto _ : state) {
    const std::string& wanted = keys[at++ & 4095];
    BlockPin pin;
    benchmark::DoNotOptimize(t.table->TryGet(HashKey(wanted), wanted, kVersionMax, &pin));
  }
}
BENCHMARK(BM_MissingGet);

void BM_Scan(benchmark::State& state) {
  CachedTable& t = state.range(0) == 100 ? SmallEntities() : LargeEntities();
  const auto caching = static_cast<IterCaching>(state.range(1));
  uint64_t bytes = 0, entries = 0;
  for (auto _ : state) {
    auto it = t.table->NewIterator(static_cast<Direction>(state.range(2)),
                                   {.caching = caching, .lower = "", .upper = ""});
    for (IterState s = it->SeekToFirst(); s != IterState::kEnd;) {
      if (s == IterState::kNeedsIo) {
        (void)RunBlocking(it->Fetch());
        s = it->state();
        continue;
      }
      bytes += it->entry().user_key.size() + it->entry().value.size();
      ++entries;
      s = it->Next();
    }
  }
  state.SetBytesProcessed(static_cast<int64_t>(bytes));
  state.SetItemsProcessed(static_cast<int64_t>(entries));
}
BENCHMARK(BM_Scan)
    ->ArgNames({"value", "caching", "direction"})
    ->Args({100, 0, 0})
    ->Args({100, 0, 1})
    ->Args({100, 2, 0})
    ->Args({1000, 0, 0})
    ->Args({1000, 2, 0})
    ->Unit(benchmark::kMillisecond);

// --- Building ---

struct Packing {
  double pages = 0;    // Read for one block.
  double padding = 0;  // Share of the data bytes.
};

// Places blocks of these sizes with padding of at most size / share; 0: none, 1: whenever it saves a page.
Packing Pack(const std::vector<uint32_t>& sizes, size_t share) {
  uint64_t offset = 0, padding = 0, pages = 0, data = 0;
  for (uint32_t size : sizes) {
    const uint64_t gap = AlignUp(offset, kPageSize) - offset;
    const bool saves =
        (offset % kPageSize + size + kPageSize - 1) / kPageSize > (size + kPageSize - 1) / kPageSize;
    if (share > 0 && saves && (share == 1 || gap <= size / share)) {
      offset += gap;
      padding += gap;
    }
    pages += (offset % kPageSize + size + kPageSize - 1) / kPageSize;
    offset += size;
    data += size;
  }
  return {static_cast<double>(pages) / static_cast<double>(sizes.size()),
          static_cast<double>(padding) / static_cast<double>(data)};
}

// Stored sizes of the data blocks, in order.
std::vector<uint32_t> StoredSizes(const TableReader& table) {
  std::vector<uint32_t> sizes;
  auto it =
      table.NewIterator(Direction::kForward, {.caching = IterCaching::kBypass, .lower = "", .upper = ""});
  for (IterState s = it->SeekToFirst(); s != IterState::kEnd;) {
    if (s == IterState::kNeedsIo) {
      (void)RunBlocking(it->Fetch());
      s = it->state();
      continue;
    }
    sizes.push_back(static_cast<uint32_t>(it->CurrentPassThrough()->stored.size()));
    s = it->SkipBlock();
  }
  return sizes;
}

void BM_BuildTable(benchmark::State& state) {
  const auto entities = BenchEntities(16 * 1024 * 1024 / static_cast<size_t>(state.range(0)),
                                      static_cast<size_t>(state.range(0)));
  MemoryObjectStore store;
  TableInfo info;
  for (auto _ : state) {
    (void)RunBlocking(store.Remove(ObjectId(1)));
    info = Write(store, ObjectId(1), entities, state.range(1) == 0 ? Codec::kStored : Codec::kLz4,
                 static_cast<size_t>(state.range(2)));
    state.SetBytesProcessed(state.bytes_processed() + static_cast<int64_t>(info.raw_bytes));
  }
  BlockCache cache(1 << 20);
  auto table = *RunBlocking(TableReader::Open(store, cache, kStore, ObjectId(1)));
  const std::vector<uint32_t> sizes = StoredSizes(*table);
  const Packing dense = Pack(sizes, 0), aligned = Pack(sizes, 1),
                ours = Pack(sizes, state.range(1) == 0 ? 0 : 8);
  state.counters["ratio"] = static_cast<double>(info.raw_bytes) / static_cast<double>(info.file_size);
  state.counters["pages_dense"] = dense.pages;
  state.counters["pages_aligned"] = aligned.pages;
  state.counters["pages"] = ours.pages;
  state.counters["pad_aligned"] = aligned.padding;
  state.counters["pad"] = ours.padding;
  state.counters["resident_B"] =
      static_cast<double>(table->resident_bytes()) / static_cast<double>(info.entry_count);
}
BENCHMARK(BM_BuildTable)
    ->ArgNames({"value", "lz4", "block"})
    ->ArgsProduct({{1000}, {0, 1}, {4096, 8192, 12288, 16384}})
    ->ArgsProduct({{100}, {0, 1}, {8192}})
    ->Unit(benchmark::kMillisecond);

void BM_PassThrough(benchmark::State& state) {
  CachedTable& t = LargeEntities();
  uint64_t bytes = 0;
  for (auto _ : state) {
    (void)RunBlocking(t.store.Remove(ObjectId(2)));
    TableWriterOptions options;
    options.store = kStore;
    options.id = ObjectId(2);
    auto created = RunBlocking(TableWriter::Create(t.store, options));
    TableWriter& writer = **created;
    auto it = t.table->NewIterator(Direction::kForward,
                                   {.caching = IterCaching::kBypass, .lower = "", .upper = ""});
    for (IterState s = it->SeekToFirst(); s != IterState::kEnd;) {
      if (s == IterState::kNeedsIo) {
        (void)RunBlocking(it->Fetch());
        s = it->state();
        continue;
      }
      (void)writer.AddBlock(*it->CurrentPassThrough());
      if (writer.NeedsDrain()) (void)RunBlocking(writer.Drain());
      s = it->SkipBlock();
    }
    bytes += RunBlocking(writer.Finish())->raw_bytes;
  }
  state.SetBytesProcessed(static_cast<int64_t>(bytes));
}
BENCHMARK(BM_PassThrough)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace partita
