#include "engine/io/device_probe.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "engine/base/aligned_buffer.h"
#include "engine/io/errno_status.h"
#include "engine/io/system_clock.h"
#include "engine/io/transfer.h"
#include "engine/io/uring.h"

namespace partita {

namespace {

constexpr size_t kProbePages = 16;
constexpr uint32_t kCommitSamplesMax = 50;
constexpr uint64_t kCommitNanosMax = 200'000'000;

void ProbeKernel(DeviceReport* report) {
  utsname name{};
  if (uname(&name) != 0) return;
  report->kernel = name.release;
  int major = 0, minor = 0;
  if (std::sscanf(name.release, "%d.%d", &major, &minor) != 2) return;
  report->kernel_new_enough = major > 6 || (major == 6 && minor >= 1);
}

void ProbeUring(DeviceReport* report) {
  Uring ring;
  Status opened = ring.Open({.submissions = 4, .completions = 8});
  report->io_uring = opened.ok();
  if (opened.ok()) {
    report->io_uring_features = ring.Features();
  } else {
    report->io_uring_problem = opened.message();
  }
}

void ProbeLimits(DeviceReport* report) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) report->descriptors_max = limit.rlim_cur;
  if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0) {
    report->memlock_bytes_max = limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
  }
}

std::optional<std::string> FirstLine(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return line;
}

std::optional<uint32_t> Number(const std::filesystem::path& path) {
  std::ifstream file(path);
  uint32_t value = 0;
  if (!(file >> value)) return std::nullopt;
  return value;
}

// Where sysfs describes the disk under a device number; empty when it does not.
std::filesystem::path DiskInSysfs(dev_t device) {
  const std::string number = std::to_string(major(device)) + ":" + std::to_string(minor(device));
  std::error_code error;
  std::filesystem::path disk = std::filesystem::canonical("/sys/dev/block/" + number, error);
  if (error) return {};
  // A partition has no queue of its own: its disk is the directory above.
  if (std::filesystem::exists(disk / "partition", error)) disk = disk.parent_path();
  return disk;
}

void ProbeDisk(dev_t device, DeviceReport* report) {
  const std::filesystem::path disk = DiskInSysfs(device);
  if (disk.empty()) return;
  report->block_device = disk.filename().string();
  const std::filesystem::path queue = disk / "queue";
  if (auto cache = FirstLine(queue / "write_cache")) report->volatile_cache = *cache == "write back";
  if (auto fua = Number(queue / "fua")) report->fua = *fua != 0;
  if (auto rotational = Number(queue / "rotational")) report->rotational = *rotational != 0;
  report->logical_block_size = Number(queue / "logical_block_size");
  report->physical_block_size = Number(queue / "physical_block_size");
}

// A line of mountinfo: "36 35 98:0 /root /mount options optional... - ext4 /dev/sda1 options".
void ProbeFileSystem(dev_t device, DeviceReport* report) {
  report->file_system = "unknown";  // In a chroot the list may lack the mount that it lies on.
  const std::string wanted = std::to_string(major(device)) + ":" + std::to_string(minor(device));
  std::ifstream mounts("/proc/self/mountinfo");
  std::string line;
  while (std::getline(mounts, line)) {
    std::istringstream fields(line);
    std::string id, parent, number, field, type;
    fields >> id >> parent >> number;
    if (number != wanted) continue;
    while (fields >> field && field != "-") {
    }
    std::string source;
    if (fields >> type) report->file_system = type;
    fields >> source >> report->mount_options;
    return;
  }
}

// A chroot may hide the mount, but not this; and a tmpfs has other names, such as rootfs.
void ProbeFileSystemMagic(const std::string& directory, DeviceReport* report) {
  struct statfs magic {};
  if (statfs(directory.c_str(), &magic) != 0) return;
  if (magic.f_type == TMPFS_MAGIC) report->file_system = "tmpfs";
  if (magic.f_type == RAMFS_MAGIC) report->file_system = "ramfs";
}

bool HasOption(std::string_view options, std::string_view wanted) {
  return ("," + std::string(options) + ",").find("," + std::string(wanted) + ",") != std::string::npos;
}

// An unnamed file in `directory`, or one whose name is removed at once: nothing stays behind.
Result<int> OpenScratch(const std::string& directory, int more_flags) {
  int descriptor = open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC | more_flags, 0600);
  if (descriptor >= 0) return descriptor;
  const int error = errno;
  if (error != EOPNOTSUPP && error != EISDIR && error != EINVAL) {
    return ErrnoStatus("create a probe file in", directory, error);
  }
  const std::string path = directory + "/partita-probe-" + std::to_string(getpid());
  descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | more_flags, 0600);
  if (descriptor < 0) {
    const int failure = errno;
    // O_DIRECT may be refused after the name was made.
    if (failure == EINVAL) unlink(path.c_str());
    return ErrnoStatus("create", path, failure);
  }
  unlink(path.c_str());
  return descriptor;
}

// Overwrites pages of a file whose space is written and flushed, as a recycled log segment's is.
Status MeasureCommits(const FileHandle& file, DeviceReport* report) {
  AlignedBuffer pages(kProbePages * kPageSize);
  if (pages.data() == nullptr) return Status::ResourceExhausted("no memory for the probe");
  std::memset(pages.data(), 0, pages.size());
  SystemClock clock;
  const uint64_t deadline = clock.MonotonicNanos() + kCommitNanosMax;
  PARTITA_TRY(BlockingWrite(file, 0, pages.span()));
  PARTITA_TRY(BlockingFlush(file));

  std::vector<uint64_t> samples;
  uint64_t begin = clock.MonotonicNanos();
  while (samples.size() < kCommitSamplesMax && (samples.empty() || begin < deadline)) {
    const uint64_t offset = samples.size() % kProbePages * kPageSize;
    PARTITA_TRY(BlockingWrite(file, offset, pages.span().subspan(0, kPageSize)));
    PARTITA_TRY(BlockingFlush(file));
    const uint64_t end = clock.MonotonicNanos();
    samples.push_back(end - begin);
    begin = end;
  }
  std::nth_element(samples.begin(), samples.begin() + samples.size() / 2, samples.end());
  report->commit_latency_ns = samples[samples.size() / 2];
  report->commit_samples = static_cast<uint32_t>(samples.size());
  return Status();
}

void ProbeWrites(const std::string& directory, DeviceReport* report) {
  Result<int> scratch = OpenScratch(directory, O_DIRECT);
  const bool direct = scratch.ok();
  if (!direct) scratch = OpenScratch(directory, 0);
  if (!scratch.ok()) {
    report->commit_problem = scratch.status().message();
    return;
  }
  report->direct_io = direct;
  Status measured = MeasureCommits(FileHandle{*scratch, direct, directory + "/(probe file)"}, report);
  close(*scratch);
  if (!measured.ok()) report->commit_problem = measured.message();
}

}  // namespace

Result<DeviceReport> ProbeDevice(const std::string& directory, ProbeCommits commits) {
  struct stat information {};
  if (stat(directory.c_str(), &information) != 0) return ErrnoStatus("look at", directory, errno);
  if (!S_ISDIR(information.st_mode)) return ErrnoStatus("look at", directory, ENOTDIR);
  struct statvfs space {};
  if (statvfs(directory.c_str(), &space) != 0) return ErrnoStatus("statvfs", directory, errno);

  DeviceReport report;
  report.free_bytes = static_cast<uint64_t>(space.f_bavail) * space.f_frsize;
  report.total_bytes = static_cast<uint64_t>(space.f_blocks) * space.f_frsize;
  ProbeKernel(&report);
  ProbeUring(&report);
  ProbeLimits(&report);
  ProbeDisk(information.st_dev, &report);
  ProbeFileSystem(information.st_dev, &report);
  ProbeFileSystemMagic(directory, &report);
  if (commits == ProbeCommits::kMeasure) {
    ProbeWrites(directory, &report);
  } else {
    report.commit_problem = "not asked for";
  }
  return report;
}

std::string WhyFlushesAreLost(const DeviceReport& report) {
  const std::string& type = report.file_system;
  if (type == "tmpfs" || type == "ramfs" || type == "hugetlbfs")
    return "it is a file system in memory (" + type + ")";
  if (report.block_device.starts_with("ram") || report.block_device.starts_with("zram"))
    return "its disk is in memory (" + report.block_device + ")";
  if (type == "overlay" && HasOption(report.mount_options, "volatile"))
    return "it is an overlay mounted 'volatile', which flushes nothing";
  // Allowed where there is no cache that could be lost.
  const bool cached = report.volatile_cache.value_or(true);
  for (const char* option : {"nobarrier", "barrier=0", "fsync_mode=nobarrier"}) {
    if (cached && HasOption(report.mount_options, option))
      return "it is mounted '" + std::string(option) + "', and the cache of its disk is not known to be safe";
  }
  return "";
}

Result<std::string> WhyFlushesAreLost(const std::string& directory) {
  struct stat information {};
  if (stat(directory.c_str(), &information) != 0) return ErrnoStatus("look at", directory, errno);
  DeviceReport report;
  ProbeDisk(information.st_dev, &report);
  ProbeFileSystem(information.st_dev, &report);
  ProbeFileSystemMagic(directory, &report);
  return WhyFlushesAreLost(report);
}

}  // namespace partita
