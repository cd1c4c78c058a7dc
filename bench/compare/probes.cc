#include "bench/compare/probes.h"

#include <lz4.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <random>
#include <vector>

#include "bench/compare/device_probe.h"
#include "bench/load/row_generator.h"
#include "bench/load/tally.h"

namespace partita::bench {
namespace {

// Repeats `act`, which answers how much it did, for `seconds`; what it did a second.
template <typename Act>
double RateOf(double seconds, const Act& act) {
  const uint64_t started = NowNanos();
  const auto span = static_cast<uint64_t>(seconds * 1e9);
  double done = 0;
  uint64_t now = started;
  while (now - started < span) {
    done += static_cast<double>(act());
    now = NowNanos();
  }
  return done * 1e9 / static_cast<double>(now - started);
}

// What the compiler must not find out that nobody needs.
volatile uint64_t sink;

void RunMemoryProbes(size_t value_size, double seconds, Probes* probes) {
  constexpr size_t kTable = size_t{256} << 20, kPart = size_t{32} << 20;
  std::vector<char> table(kTable, 'x'), copy(kPart);
  size_t at = 0;
  probes->copy_bytes = RateOf(seconds, [&] {
    std::memcpy(copy.data(), &table[at], kPart);
    at = (at + kPart) % kTable;
    return kPart;
  });
  std::mt19937_64 random(1);
  probes->random_copies = RateOf(seconds, [&] {
    constexpr int kRows = 1000;
    for (int i = 0; i < kRows; ++i) {
      std::memcpy(copy.data(), &table[random() % (kTable / value_size) * value_size], value_size);
      sink = static_cast<uint64_t>(copy[i]);
    }
    return kRows;
  });
  probes->xxh3_bytes = RateOf(seconds, [&] {
    constexpr size_t kBlock = size_t{16} << 10;
    at = (at + kBlock) % kTable;
    sink = XXH3_64bits(&table[at], kBlock);
    return kBlock;
  });
}

void RunCompressionProbes(size_t value_size, double seconds, Probes* probes) {
  constexpr int kBlock = 8 << 10;
  const ValueGenerator values(value_size, /*seed=*/1);
  std::string rows, value;
  for (uint64_t index = 0; rows.size() < size_t{64} * kBlock; ++index) {
    values.Fill(index, 0, &value);
    rows += value;
  }
  std::string packed(LZ4_COMPRESSBOUND(kBlock), '\0'), unpacked(kBlock, '\0');
  size_t block = 0;
  int packed_size = 0;
  probes->pack_bytes = RateOf(seconds, [&] {
    block = (block + 1) % 64;
    packed_size = LZ4_compress_default(&rows[block * size_t{kBlock}], packed.data(), kBlock,
                                       static_cast<int>(packed.size()));
    return kBlock;
  });
  probes->unpack_bytes = RateOf(seconds, [&] {
    const int size = LZ4_decompress_safe(packed.data(), unpacked.data(), packed_size, kBlock);
    sink = static_cast<uint64_t>(size);
    return kBlock;
  });
}

constexpr std::array kInfos = {
    ProbeInfo{&Probes::random_reads_1, "random reads, 1", "4 KiB past the page cache, one at a time"},
    ProbeInfo{&Probes::random_reads_32, "random reads, 32", "the same, 32 outstanding"},
    ProbeInfo{&Probes::random_reads_64, "random reads, 64", "the same, 64 outstanding"},
    ProbeInfo{&Probes::read_bytes, "sequential read", "bytes, 1 MiB at a time"},
    ProbeInfo{&Probes::write_bytes, "sequential write", "bytes, 1 MiB at a time, flush at the end"},
    ProbeInfo{&Probes::flushes, "flushes", "4 KiB over old bytes and fdatasync, one thread"},
    ProbeInfo{&Probes::dsync_writes, "DSYNC writes", "4 KiB over old bytes with RWF_DSYNC, one thread"},
    ProbeInfo{&Probes::copy_bytes, "memcpy", "bytes, one thread, beyond the caches"},
    ProbeInfo{&Probes::random_copies, "random copies", "a value from a random place of 256 MiB, one thread"},
    ProbeInfo{&Probes::xxh3_bytes, "xxh3", "bytes, one thread"},
    ProbeInfo{&Probes::pack_bytes, "lz4", "bytes of rows compressed, one thread"},
    ProbeInfo{&Probes::unpack_bytes, "lz4 back", "bytes of rows decompressed, one thread"},
};

}  // namespace

std::span<const ProbeInfo> ProbeInfos() { return kInfos; }

Result<Probes> RunProbes(const std::string& directory, size_t value_size, double seconds) {
  Probes probes;
  const double each = seconds / static_cast<double>(kInfos.size());
  PARTITA_ASSIGN(const std::unique_ptr<DeviceProbe> device, DeviceProbe::Open(directory));
  probes.write_bytes = device->write_bytes_per_second();
  PARTITA_ASSIGN(probes.random_reads_1, device->RandomReads(1, each));
  PARTITA_ASSIGN(probes.random_reads_32, device->RandomReads(32, each));
  PARTITA_ASSIGN(probes.random_reads_64, device->RandomReads(64, each));
  PARTITA_ASSIGN(probes.read_bytes, device->SequentialBytes(each));
  PARTITA_ASSIGN(probes.flushes, device->Flushes(DeviceProbe::FlushBy::kFdatasync, each));
  PARTITA_ASSIGN(probes.dsync_writes, device->Flushes(DeviceProbe::FlushBy::kDsync, each));
  RunMemoryProbes(value_size, each, &probes);
  RunCompressionProbes(value_size, each, &probes);
  return probes;
}

std::optional<Limit> LimitOf(std::string_view workload, const Probes& probes, uint64_t row_bytes,
                             uint32_t cores, double memory_times) {
  const size_t colon = workload.find(':');
  const std::string_view name = workload.substr(0, colon);
  double parallel = 1;
  if (colon != std::string_view::npos) {
    std::from_chars(workload.data() + colon + 1, workload.data() + workload.size(), parallel);
  }
  const double all = cores, used = std::min(parallel, all), row = static_cast<double>(row_bytes);
  // Between those that were measured the next one is never too low; beyond 64 a device has no more to give.
  if (name == "read-cold" || name == "async-read") {
    // Rows that are kept compressed fit the memory twice as well: one in eight at most is answered from it.
    constexpr double kColdTimes = 16;
    if (memory_times < kColdTimes) return std::nullopt;
    if (parallel <= 1) return Limit{probes.random_reads_1, "random reads, 1"};
    if (parallel <= 32) return Limit{probes.random_reads_32, "random reads, 32"};
    return Limit{probes.random_reads_64, "random reads, 64"};
  }
  // One flush carries at most one write of each writer.
  if (name == "sync-write" || name == "async-write" || name == "egt-if") {
    return Limit{std::max(probes.flushes, probes.dsync_writes) * parallel, "flushes x writers"};
  }
  // Each row is compressed at least once.
  if (name.starts_with("fill-") || name == "overwrite") {
    return Limit{probes.pack_bytes * all / row, "lz4 x cores"};
  }
  if (name == "egt-100") return Limit{probes.pack_bytes * all / row / 100, "lz4 x cores"};
  if (name == "read-hot") return Limit{probes.random_copies * used, "random copies"};
  if (name == "scan-hot") return Limit{probes.copy_bytes * used / row / 100, "memcpy"};
  return std::nullopt;
}

}  // namespace partita::bench
