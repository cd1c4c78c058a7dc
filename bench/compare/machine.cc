#include "bench/compare/machine.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "bench/load/measurement.h"
#include "engine/io/thread_setup.h"

namespace partita::bench {
namespace {

std::string ProcessorName() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name") && line.find(": ") != std::string::npos) {
      return line.substr(line.find(": ") + 2);
    }
  }
  return "unknown processor";
}

// The type of the mount that holds the longest part of the path.
std::string FileSystemOf(const std::string& directory) {
  std::error_code error;
  const std::string path = std::filesystem::weakly_canonical(directory, error).string() + "/";
  std::ifstream mounts("/proc/self/mounts");
  std::string best, type = "unknown file system";
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string device, point, kind;
    words >> device >> point >> kind;
    const std::string prefix = point.ends_with('/') ? point : point + "/";
    if (!path.starts_with(prefix) || prefix.size() < best.size()) continue;
    best = prefix;
    type = kind;
  }
  return type;
}

std::string CoreMask() {
  std::string mask;
  for (int core : AllowedCpus()) mask += (mask.empty() ? "" : ",") + std::to_string(core);
  return mask;
}

}  // namespace

Machine Machine::Describe(const std::string& directory) {
  Machine machine;
  machine.processor = ProcessorName();
  machine.cores = std::thread::hardware_concurrency();
  machine.core_mask = CoreMask();
  machine.usable_cores = UsableCores();
  machine.file_system = FileSystemOf(directory);
  utsname name{};
  if (uname(&name) == 0) machine.kernel = std::string(name.sysname) + " " + name.release;
  machine.memory_bytes = static_cast<unsigned long long>(sysconf(_SC_PHYS_PAGES)) *
                         static_cast<unsigned long long>(sysconf(_SC_PAGESIZE));
  return machine;
}

std::string Machine::ToText() const {
  return std::to_string(cores) + " cores (used: " + core_mask + ") of " + processor + ", " +
         std::to_string(memory_bytes >> 30) + " GiB, " + file_system + ", " + kernel;
}

}  // namespace partita::bench
