#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engine/base/result.h"

namespace partita::bench {

// What the machine itself can do, measured past every engine. Rates are a second.
struct Probes {
  double random_reads_1 = 0, random_reads_32 = 0, random_reads_64 = 0;  // Of 4 KiB, by so many outstanding.
  double read_bytes = 0, write_bytes = 0;                               // Sequentially, 1 MiB at a time.
  double flushes = 0;        // Write of 4 KiB over old bytes and fdatasync, one thread.
  double dsync_writes = 0;   // The same by RWF_DSYNC.
  double copy_bytes = 0;     // memcpy beyond the caches.
  double random_copies = 0;  // Of a value from a random place of 256 MiB.
  double xxh3_bytes = 0;
  double pack_bytes = 0, unpack_bytes = 0;  // Of rows by LZ4, blocks of 8 KiB.
};

// Measures them; `directory` must be on the device that the stores are on, and values of the load have
// `value_size` (as ValueGenerator's). Takes some `seconds`.
Result<Probes> RunProbes(const std::string& directory, size_t value_size, double seconds);

struct ProbeInfo {
  double Probes::*figure;
  std::string_view name, meaning;
};
std::span<const ProbeInfo> ProbeInfos();

// The rate that no engine can exceed in this workload ("name:parallel") by what the probes say, and which
// of them says it; nothing where none does. The rows have `row_bytes`; the processes run on `cores`, and
// there is `memory_times` as much data as memory: of cold reads a share is answered from memory, so that the
// device is their limit only with many times as much. Who compresses otherwise than LZ4 can exceed what that
// one says.
struct Limit {
  double rate = 0;
  std::string_view by;
};
std::optional<Limit> LimitOf(std::string_view workload, const Probes& probes, uint64_t row_bytes,
                             uint32_t cores, double memory_times);

}  // namespace partita::bench
