#include <utility>

#include "engine/base/memory_budget.h"
#include "engine/inspect.h"
#include "engine/io/device_probe.h"

// What `partita doctor` tells: the machine as found, and what the engine makes of it.

namespace partita {

namespace {

// What a store of some size has open at once: table files, log segments, rings, the directory.
constexpr uint64_t kDescriptorsRecommended = 4096;

std::string YesNo(const std::optional<bool>& value) {
  if (!value.has_value()) return "unknown";
  return *value ? "yes" : "no";
}

ReportValue NumberOrUnknown(const std::optional<uint32_t>& value) {
  if (!value.has_value()) return std::string("unknown");
  return uint64_t{*value};
}

void DescribeKernel(const DeviceReport& device, bool uses_io_uring, Report* report) {
  report->Add("kernel", device.kernel, "at least 6.1 is needed for io_uring as the engine uses it");
  if (uses_io_uring && !device.kernel_new_enough) {
    report->damages.push_back("kernel " + device.kernel +
                              " is older than 6.1; use --io threads, or a newer kernel");
  }
  report->Add("io_uring", device.io_uring,
              device.io_uring ? device.io_uring_features : device.io_uring_problem);
  if (uses_io_uring && !device.io_uring) {
    report->damages.push_back("io_uring: " + device.io_uring_problem + "; until then use --io threads");
  }
  report->Add("open_files_max", device.descriptors_max,
              "RLIMIT_NOFILE; each table file and log segment in use takes one");
  if (device.descriptors_max < kDescriptorsRecommended) {
    report->damages.push_back(
        "open files are limited to " + std::to_string(device.descriptors_max) +
        "; raise the limit to 4096 or more (ulimit -n 4096) for stores beyond some 50 GiB");
  }
  report->Add("locked_memory_bytes_max", device.memlock_bytes_max,
              "RLIMIT_MEMLOCK; registered buffers count against it");
}

void DescribeDevice(const DeviceReport& device, Report* report) {
  report->Add("file_system", device.file_system);
  report->Add("block_device", device.block_device.empty() ? "unknown" : device.block_device,
              device.block_device.empty() ? "the file system has none, or sysfs is hidden" : "");
  report->Add("free_bytes", device.free_bytes);
  report->Add("total_bytes", device.total_bytes);
  report->Add("rotational", YesNo(device.rotational));
  report->Add("logical_block_bytes", NumberOrUnknown(device.logical_block_size));
  report->Add("physical_block_bytes", NumberOrUnknown(device.physical_block_size),
              "files are written in 4 KiB pages whatever it is");
  report->Add(
      "direct_io", YesNo(device.direct_io),
      device.direct_io == false
          ? "files go through the page cache: as durable, but slower, and a scrub may read from memory"
          : "");
  report->Add("volatile_write_cache", YesNo(device.volatile_cache));
  report->Add("write_through_fua", YesNo(device.fua));
}

void DescribeFlushPolicy(const DeviceReport& device, Report* report) {
  const std::string lost = WhyFlushesAreLost(device);
  report->Add("durability_max", std::string(lost.empty() ? "power" : "process"),
              lost.empty() ? "nothing speaks against it" : lost + "; see --allow-volatile-storage");
  const bool guessed = !device.volatile_cache.has_value();
  if (device.flush_only()) {
    report->Add("flush_policy", std::string("write, then fdatasync: one flush for all who gathered"),
                guessed ? "the device does not say; this is the safe choice, and as durable"
                        : "the device has a cache to be flushed and cannot write through it");
  } else {
    report->Add("flush_policy", std::string("write, then fdatasync; the device makes flushes cheap"),
                "its cache is protected or absent, or it writes through");
  }
  if (device.commit_latency_ns.has_value()) {
    report->Add("commit_latency_us", static_cast<double>(*device.commit_latency_ns) / 1e3,
                "median of " + std::to_string(device.commit_samples) +
                    ": 4 KiB overwritten and flushed; what a lone durable write costs");
  } else {
    report->Add("commit_latency_us", std::string("not measured"), device.commit_problem);
  }
}

Status DescribeMemory(const DiagnoseOptions& options, Report* report) {
  PARTITA_ASSIGN(MemoryPlan plan, DeriveMemoryPlan(options.memory_bytes, options.shards));
  report->Add("shards", uint64_t{options.shards}, "one worker thread each; --shards");
  report->Add("budget_bytes", uint64_t{plan.budget_bytes}, "--memory; everything below is derived from it");
  report->Add(
      "memtables_bytes", uint64_t{plan.memtable_bytes},
      "5/16, up to 256 MiB a shard: each doubling saves a share of the merge into level 1; lent to the "
      "cache while idle");
  report->Add("memtable_freeze_bytes", uint64_t{plan.memtable_freeze_bytes},
              "a shard flushes its memtable at this size: one active and three waiting, at most 64 MiB");
  report->Add("cache_bytes", uint64_t{plan.cache_bytes},
              "the rest: a miss costs a read of the disk; index blocks and filters are charged to it");
  report->Add("compaction_bytes", uint64_t{plan.compaction_bytes},
              "1/8, up to 64 MiB a shard: read-ahead and output");
  report->Add("log_buffer_bytes", uint64_t{plan.log_buffer_bytes},
              "1/32 over the shards, 2 to 8 MiB each: one filled while one is written");
  report->Add("request_bytes", uint64_t{plan.request_bytes},
              "1/16, up to 512 MiB: requests and pages under way");
  report->Add("fixed_bytes", uint64_t{plan.fixed_bytes},
              "on top of the budget: program, stacks, rings, counters, the mapped ends of the logs");
  return Status();
}

}  // namespace

Result<Report> Diagnose(const DiagnoseOptions& options) {
  PARTITA_ASSIGN(DeviceReport device, ProbeDevice(options.directory, ProbeCommits::kMeasure));
  Report report;
  report.title = "doctor for " + options.directory;
  DescribeKernel(device, options.uses_io_uring, &report);
  DescribeDevice(device, &report);
  DescribeFlushPolicy(device, &report);
  PARTITA_TRY(DescribeMemory(options, &report));
  return report;
}

}  // namespace partita
