// Key filters: the binary fuse filter that tables use, beside a blocked Bloom filter (one cache line a
// key) of 10 and 12 bits a key. Counters: false-positive rate in percent, bits a key.
#include <benchmark/benchmark.h>

#include <random>
#include <vector>

#include "sstable/fuse_filter.h"
#include "sstable/key_hash.h"

namespace partita {
namespace {

std::vector<uint64_t> Hashes(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint64_t> hashes(count);
  for (uint64_t& hash : hashes) hash = random();
  return hashes;
}

// The rival: 512-bit blocks, k bits set from one hash.
class BlockedBloom {
 public:
  BlockedBloom(size_t keys, double bits, int probes)
      : blocks_(static_cast<size_t>(static_cast<double>(keys) * bits / 512) + 1),
        words_(blocks_ * 8),
        probes_(probes) {}
  void Add(uint64_t hash) {
    uint64_t* block = BlockOf(hash);
    for (int i = 0; i < probes_; ++i) {
      const uint32_t bit = Bit(hash, i);
      block[bit / 64] |= 1ULL << (bit % 64);
    }
  }
  bool MayContain(uint64_t hash) {
    const uint64_t* block = BlockOf(hash);
    for (int i = 0; i < probes_; ++i) {
      const uint32_t bit = Bit(hash, i);
      if ((block[bit / 64] >> (bit % 64) & 1) == 0) return false;
    }
    return true;
  }
  size_t bytes() const { return words_.size() * 8; }

 private:
  uint64_t* BlockOf(uint64_t hash) {
    return &words_[static_cast<size_t>((static_cast<unsigned __int128>(hash) * blocks_) >> 64) * 8];
  }
  static uint32_t Bit(uint64_t hash, int i) {
    return (static_cast<uint32_t>(hash) * 0x9E3779B1u +
            static_cast<uint32_t>(i) * (static_cast<uint32_t>(hash >> 9) | 1)) >>
           23;
  }
  size_t blocks_;
  std::vector<uint64_t> words_;
  int probes_;
};

template <typename Ask>
void Report(benchmark::State& state, size_t keys, size_t bytes, Ask ask) {
  size_t passed = 0;
  const std::vector<uint64_t> others = Hashes(1'000'000, 77);
  for (uint64_t hash : others) passed += ask(hash);
  state.counters["fpr_percent"] = static_cast<double>(passed) / 10'000;
  state.counters["bits_per_key"] = static_cast<double>(bytes) * 8 / static_cast<double>(keys);
}

void BM_FuseQuery(benchmark::State& state) {
  const size_t keys = static_cast<size_t>(state.range(0));
  std::vector<uint64_t> hashes = Hashes(keys, 1);
  FuseFilter filter;
  (void)filter.Load(BuildFuseFilter(&hashes, FilterWidth::k16Bits), hashes.size()).ok();
  const std::vector<uint64_t> asked = Hashes(4096, 2);
  size_t at = 0;
  for (auto _ : state) benchmark::DoNotOptimize(filter.MayContain(asked[at++ & 4095]));
  Report(state, keys, filter.memory_bytes(), [&](uint64_t hash) { return filter.MayContain(hash); });
}
BENCHMARK(BM_FuseQuery)->Arg(1000)->Arg(60'000)->Arg(600'000)->Arg(10'000'000);

void BM_BloomQuery(benchmark::State& state) {
  const size_t keys = static_cast<size_t>(state.range(0));
  BlockedBloom filter(keys, static_cast<double>(state.range(1)), state.range(1) == 10 ? 6 : 7);
  for (uint64_t hash : Hashes(keys, 1)) filter.Add(hash);
  const std::vector<uint64_t> asked = Hashes(4096, 2);
  size_t at = 0;
  for (auto _ : state) benchmark::DoNotOptimize(filter.MayContain(asked[at++ & 4095]));
  Report(state, keys, filter.bytes(), [&](uint64_t hash) { return filter.MayContain(hash); });
}
BENCHMARK(BM_BloomQuery)->ArgsProduct({{60'000, 600'000, 10'000'000}, {10, 12}});

void BM_FuseBuild(benchmark::State& state) {
  const std::vector<uint64_t> hashes = Hashes(static_cast<size_t>(state.range(0)), 1);
  for (auto _ : state) {
    std::vector<uint64_t> given = hashes;
    benchmark::DoNotOptimize(BuildFuseFilter(&given, FilterWidth::k16Bits));
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_FuseBuild)->Arg(1000)->Arg(60'000)->Arg(600'000);

void BM_BloomBuild(benchmark::State& state) {
  const std::vector<uint64_t> hashes = Hashes(static_cast<size_t>(state.range(0)), 1);
  for (auto _ : state) {
    BlockedBloom filter(hashes.size(), 10, 6);
    for (uint64_t hash : hashes) filter.Add(hash);
    benchmark::DoNotOptimize(filter.bytes());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_BloomBuild)->Arg(60'000)->Arg(600'000);

void BM_HashKey(benchmark::State& state) {
  const std::string key = EncodeUserKey(TableId(1), "customer-00012345", "order-2026-0001234567");
  for (auto _ : state) benchmark::DoNotOptimize(HashKey(key));
}
BENCHMARK(BM_HashKey);

}  // namespace
}  // namespace partita
