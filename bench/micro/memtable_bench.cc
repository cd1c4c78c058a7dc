// Memtable against std::map at a million keys of 50 bytes with long common prefixes, as in the
// prototypes that chose the B+tree: insert, lookup, scan, and both at once. Values are 8 bytes, so
// what is measured is the index.
//
//   bench_memtable --benchmark_filter=Lookup
#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/chunk_pool.h"
#include "engine/base/user_key.h"
#include "memtable/memtable.h"

namespace partita {
namespace {

constexpr size_t kKeys = 1'000'000;
constexpr size_t kPoolBytes = size_t{512} << 20;

enum class Order { kRandom, kSorted };
enum class KeyShape { kStructured, kHex };

std::string MakeKey(KeyShape shape, size_t i, std::mt19937_64& random) {
  char partition[40];
  char row[40];
  if (shape == KeyShape::kStructured) {  // 16 rows a partition, 4 tables.
    std::snprintf(partition, sizeof partition, "customer-%08zu", i / 16);
    std::snprintf(row, sizeof row, "order-2026-%010u", static_cast<unsigned>(random() % 1'000'000'000));
  } else {
    std::snprintf(partition, sizeof partition, "%016llx", static_cast<unsigned long long>(random()));
    std::snprintf(row, sizeof row, "%016llx%08x", static_cast<unsigned long long>(random()),
                  static_cast<unsigned>(random()));
  }
  return EncodeUserKey(TableId(1 + static_cast<uint32_t>(i / 16 % 4)), partition, row);
}

// Keys in random order; the misses are keys of the same shape that are not among them.
struct Keys {
  std::vector<std::string> hits;
  std::vector<std::string> misses;

  explicit Keys(KeyShape shape) {
    std::mt19937_64 random(1);
    for (size_t i = 0; i < kKeys; ++i) {
      hits.push_back(MakeKey(shape, i, random));
      misses.push_back(hits.back());
      misses.back().back() = '#';
    }
    std::shuffle(hits.begin(), hits.end(), random);
    std::shuffle(misses.begin(), misses.end(), random);
  }
  static const Keys& Of(KeyShape shape) {
    static const Keys structured(KeyShape::kStructured);
    static const Keys hex(KeyShape::kHex);
    return shape == KeyShape::kStructured ? structured : hex;
  }
};

// One pool for all, touched once.
ChunkPool& Pool() {
  static ChunkPool* pool = [] {
    auto* fresh = new ChunkPool(kPoolBytes);
    std::vector<uint8_t*> chunks;
    while (uint8_t* chunk = fresh->Acquire()) {
      std::memset(chunk, 0, ChunkPool::kChunkSize);
      chunks.push_back(chunk);
    }
    for (uint8_t* chunk : chunks) fresh->Release(chunk);
    return fresh;
  }();
  return *pool;
}

void InsertOne(Memtable& memtable, std::string_view key, uint64_t version) {
  uint8_t* place = memtable.arena().Allocate(key.size() + 8);
  std::memcpy(place, key.data(), key.size());
  std::memcpy(place + key.size(), &version, 8);
  const char* bytes = reinterpret_cast<const char*>(place);
  if (!memtable.Reserve(1)) std::abort();
  memtable.Insert({{bytes, key.size()}, Version(version), EntryKind::kPut, {bytes + key.size(), 8}});
}

std::unique_ptr<Memtable> Filled(const std::vector<std::string>& keys, size_t count = kKeys) {
  auto memtable = std::make_unique<Memtable>(Pool());
  for (size_t i = 0; i < count; ++i) InsertOne(*memtable, keys[i], i + 1);
  return memtable;
}

const Memtable& Shared(KeyShape shape) {
  static const Memtable* structured = Filled(Keys::Of(KeyShape::kStructured).hits).release();
  static const Memtable* hex = Filled(Keys::Of(KeyShape::kHex).hits).release();
  return shape == KeyShape::kStructured ? *structured : *hex;
}

void BM_Insert(benchmark::State& state, KeyShape shape, Order order) {
  std::vector<std::string> keys = Keys::Of(shape).hits;
  if (order == Order::kSorted) std::sort(keys.begin(), keys.end());
  size_t bytes = 0;
  Pool();
  for (auto _ : state) {
    auto memtable = Filled(keys);
    bytes = memtable->memory_used();
    state.PauseTiming();
    memtable.reset();
    state.ResumeTiming();
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * kKeys));
  state.counters["bytes/entry"] = static_cast<double>(bytes) / kKeys;
}

void BM_Lookup(benchmark::State& state, KeyShape shape, bool hit) {
  const Memtable& memtable = Shared(shape);
  const std::vector<std::string>& keys = hit ? Keys::Of(shape).hits : Keys::Of(shape).misses;
  std::mt19937_64 random(2);
  uint64_t found = 0;
  for (auto _ : state) {
    const Lookup lookup = memtable.Get(keys[random() % kKeys], kVersionMax);
    found += lookup.state == LookupState::kFound ? 1 : 0;
  }
  if (hit && found != static_cast<uint64_t>(state.iterations())) state.SkipWithError("a key was missed");
  if (!hit && found != 0) state.SkipWithError("a key was found that is not there");
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()));
}

void BM_ScanStep(benchmark::State& state, KeyShape shape, Direction direction) {
  const Memtable& memtable = Shared(shape);
  auto it = memtable.NewIterator(direction);
  uint64_t sum = 0;
  for (auto _ : state) {
    IterState at = it->state() == IterState::kEntry ? it->Next() : it->SeekToFirst();
    if (at == IterState::kEntry) sum += it->entry().version.value + it->entry().user_key.size();
  }
  benchmark::DoNotOptimize(sum);
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()));
}

void BM_SeekAndTwentySteps(benchmark::State& state, KeyShape shape) {
  const Memtable& memtable = Shared(shape);
  const std::vector<std::string>& keys = Keys::Of(shape).hits;
  std::mt19937_64 random(3);
  auto it = memtable.NewIterator(Direction::kForward);
  uint64_t sum = 0;
  for (auto _ : state) {
    IterState at = it->Seek(keys[random() % kKeys]);
    for (int i = 0; i < 20 && at == IterState::kEntry; ++i, at = it->Next()) sum += it->entry().version.value;
  }
  benchmark::DoNotOptimize(sum);
}

// Lookups while a writer on another thread inserts the second half at full speed.
void BM_LookupBesideWriter(benchmark::State& state, KeyShape shape) {
  const std::vector<std::string>& keys = Keys::Of(shape).hits;
  double writer_seconds = 0;
  uint64_t lookups = 0;
  for (auto _ : state) {
    state.PauseTiming();
    auto memtable = Filled(keys, kKeys / 2);
    std::atomic<bool> done{false};
    state.ResumeTiming();
    std::thread writer([&] {
      const auto start = std::chrono::steady_clock::now();
      for (size_t i = kKeys / 2; i < kKeys; ++i) InsertOne(*memtable, keys[i], i + 1);
      writer_seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      done.store(true, std::memory_order_release);
    });
    std::mt19937_64 random(4);
    while (!done.load(std::memory_order_acquire)) {
      if (memtable->Get(keys[random() % (kKeys / 2)], kVersionMax).state != LookupState::kFound) std::abort();
      ++lookups;
    }
    writer.join();
    state.PauseTiming();
    memtable.reset();
    state.ResumeTiming();
  }
  const double iterations = static_cast<double>(state.iterations());
  state.counters["writer_ns"] = writer_seconds * 1e9 / (iterations * kKeys / 2);
  state.counters["reader_ns"] = writer_seconds * 1e9 / static_cast<double>(lookups);
}

void BM_MapInsertRandom(benchmark::State& state) {
  const std::vector<std::string>& keys = Keys::Of(KeyShape::kStructured).hits;
  for (auto _ : state) {
    std::map<std::string, uint64_t> map;
    for (size_t i = 0; i < kKeys; ++i) map.emplace(keys[i], i);
    state.PauseTiming();
    map.clear();
    state.ResumeTiming();
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * kKeys));
}

void BM_MapLookupHit(benchmark::State& state) {
  const std::vector<std::string>& keys = Keys::Of(KeyShape::kStructured).hits;
  static const auto* map = [&] {
    auto* filled = new std::map<std::string, uint64_t>();
    for (size_t i = 0; i < kKeys; ++i) filled->emplace(keys[i], i);
    return filled;
  }();
  std::mt19937_64 random(2);
  for (auto _ : state) benchmark::DoNotOptimize(map->find(keys[random() % kKeys]));
}

constexpr auto kMillis = benchmark::kMillisecond;
BENCHMARK_CAPTURE(BM_Insert, structured_random, KeyShape::kStructured, Order::kRandom)->Unit(kMillis);
BENCHMARK_CAPTURE(BM_Insert, hex_random, KeyShape::kHex, Order::kRandom)->Unit(kMillis);
BENCHMARK_CAPTURE(BM_Insert, structured_sorted, KeyShape::kStructured, Order::kSorted)->Unit(kMillis);
BENCHMARK_CAPTURE(BM_Lookup, structured_hit, KeyShape::kStructured, true);
BENCHMARK_CAPTURE(BM_Lookup, structured_miss, KeyShape::kStructured, false);
BENCHMARK_CAPTURE(BM_Lookup, hex_hit, KeyShape::kHex, true);
BENCHMARK_CAPTURE(BM_Lookup, hex_miss, KeyShape::kHex, false);
BENCHMARK_CAPTURE(BM_ScanStep, structured_forward, KeyShape::kStructured, Direction::kForward);
BENCHMARK_CAPTURE(BM_ScanStep, structured_backward, KeyShape::kStructured, Direction::kBackward);
BENCHMARK_CAPTURE(BM_SeekAndTwentySteps, structured, KeyShape::kStructured);
BENCHMARK_CAPTURE(BM_LookupBesideWriter, structured, KeyShape::kStructured)->Unit(kMillis);
BENCHMARK(BM_MapInsertRandom)->Unit(kMillis);
BENCHMARK(BM_MapLookupHit);

}  // namespace
}  // namespace partita
