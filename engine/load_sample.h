#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "engine/base/ids.h"

namespace partita {

enum class LoadKind : uint8_t {
  kRead,       // A point read; one row, found or not.
  kWrite,      // A write or transaction, whatever was decided of it; its operations are the rows.
  kScan,       // A slice of a scan; rows are the entries that it looked at, bytes what it gave.
  kThrottled,  // A call that was refused as over a throughput target; rows as above, of a page one.
};
inline constexpr size_t kLoadKinds = 4;

// One call that stands for `weight` calls like it (load_sampler.h).
struct LoadSample {
  // Of a longer one only the beginning is kept, cut between characters; such have no zero byte at their end.
  static constexpr size_t kPartitionBytesMax = 128;

  uint64_t time_ns = 0;  // Clock::RecentNanos.
  uint64_t hash = 0;     // Of the whole partition prefix.
  double weight = 0;
  uint64_t bytes = 0;  // Of keys and contents, of one call; here and below.
  uint32_t rows = 0;
  uint32_t cpu_ns = 0;  // Of the thread, in the engine; never 0 where consumers see it.
  LoadKind kind = LoadKind::kRead;
  uint8_t partition_size = 0;
  std::array<char, kPartitionBytesMax> partition_bytes{};

  // The partition's prefix of user keys: table, PartitionKey, zero byte (engine/base/user_key.h).
  std::string_view partition() const { return {partition_bytes.data(), partition_size}; }
};

// Where samples go. One call at a time; it must be short, as it may run on a shard's worker.
class LoadConsumer {
 public:
  virtual ~LoadConsumer() = default;
  // Samples of one thread, in its order. Valid during the call.
  virtual void Take(std::span<const LoadSample> samples) = 0;
};

}  // namespace partita
