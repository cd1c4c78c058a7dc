#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "engine/base/result.h"

namespace partita {

// What a machine and the device under a directory can do: for `partita doctor`, and for the choice
// of the log's flush policy (DESIGN 5). nullopt or an empty string where it cannot be seen, e.g.
// sysfs is absent in a container or the file system has no block device.
struct DeviceReport {
  std::string kernel;              // e.g. "6.1.0-18-amd64"
  bool kernel_new_enough = false;  // At least 6.1.
  bool io_uring = false;           // A ring with everything needed can be set up.
  std::string io_uring_problem;    // Why not, and what to do; empty when it can.
  std::string io_uring_features;   // e.g. "single-issuer, defer-taskrun, registered-ring".

  std::string file_system;             // e.g. "ext4"; "unknown"
  std::string mount_options;           // Of the file system itself: e.g. "rw,nobarrier"; empty: unknown.
  std::string block_device;            // e.g. "vda"; of a partition, the whole disk.
  std::optional<bool> volatile_cache;  // The device's write cache must be flushed.
  std::optional<bool> fua;             // The device can write through its cache.
  std::optional<uint32_t> logical_block_size;
  std::optional<uint32_t> physical_block_size;
  std::optional<bool> rotational;
  // O_DIRECT works; otherwise files go through the page cache. Known once a file was written.
  std::optional<bool> direct_io;

  // 4 KiB overwrite + fdatasync of a recycled file, the median of `commit_samples`.
  std::optional<uint64_t> commit_latency_ns;
  uint32_t commit_samples = 0;
  std::string commit_problem;  // Why it was not measured, e.g. a read-only mount.

  uint64_t descriptors_max = 0;    // RLIMIT_NOFILE, soft
  uint64_t memlock_bytes_max = 0;  // RLIMIT_MEMLOCK, soft; UINT64_MAX: unlimited
  uint64_t free_bytes = 0;
  uint64_t total_bytes = 0;

  // A cache to be flushed and no write-through: one flush for all who gathered is the policy.
  // Unknown counts as such, the safe guess; both policies are equally durable.
  bool flush_only() const { return volatile_cache.value_or(true) && !fua.value_or(false); }
};

enum class ProbeCommits : uint8_t {
  kMeasure,  // Writes a small temporary file in the directory, at most 200 ms, and removes it.
  kSkip,     // Changes nothing.
};

// Looks at `directory`, which must exist: kNotFound, or kIoError when it cannot be looked at.
// Blocking, for start-up and the command line.
Result<DeviceReport> ProbeDevice(const std::string& directory, ProbeCommits commits);

// Why what is flushed there does not survive a loss of power (F5), as far as a machine tells; empty: nothing
// speaks against it. What a device only pretends to flush nobody can see.
std::string WhyFlushesAreLost(const DeviceReport& report);
// The same of a directory; looks at no more than it needs, and changes nothing. Errors as ProbeDevice.
Result<std::string> WhyFlushesAreLost(const std::string& directory);

}  // namespace partita
