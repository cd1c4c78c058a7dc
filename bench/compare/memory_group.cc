#include "bench/compare/memory_group.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <utility>

namespace partita::bench {
namespace {

bool WriteText(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  return static_cast<bool>(file.flush());
}

// Where the group is made, and the name of its limit's file.
struct Place {
  std::string parent;
  std::string limit_file;
};

// From the lines "number:controllers:path" of /proc/self/cgroup.
std::optional<Place> FindPlace() {
  std::ifstream groups("/proc/self/cgroup");
  std::optional<Place> found;
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1),
                      path = line.substr(second + 1);
    if (controllers == "memory") return Place{"/sys/fs/cgroup/memory" + path, "memory.limit_in_bytes"};
    if (controllers.empty()) {
      const std::filesystem::path own("/sys/fs/cgroup" + path);
      found = Place{path == "/" ? own.string() : own.parent_path().string(), "memory.max"};
    }
  }
  return found;
}

}  // namespace

Result<MemoryGroup> MemoryGroup::Create(uint64_t bytes_max) {
  const std::optional<Place> place = FindPlace();
  if (!place.has_value()) return Status(Code::kUnsupported, "this process is in no control group");
  static int number = 0;
  const std::string directory =
      place->parent + "/partita-bench-" + std::to_string(getpid()) + "-" + std::to_string(++number);
  std::error_code error;
  if (!std::filesystem::create_directory(directory, error)) {
    return Status(Code::kUnsupported, directory + ": " + error.message());
  }
  MemoryGroup group(directory);
  if (!std::filesystem::exists(directory + "/" + place->limit_file, error) ||
      !WriteText(directory + "/" + place->limit_file, std::to_string(bytes_max))) {
    return Status(Code::kUnsupported, directory + " takes no limit on memory");
  }
  return group;
}

MemoryGroup::MemoryGroup(MemoryGroup&& other) noexcept : directory_(std::exchange(other.directory_, {})) {}

MemoryGroup& MemoryGroup::operator=(MemoryGroup&& other) noexcept {
  std::swap(directory_, other.directory_);
  return *this;
}

MemoryGroup::~MemoryGroup() {
  // Refused while a process is in it; what it still holds of the page cache goes to the group above.
  if (!directory_.empty()) rmdir(directory_.c_str());
}

Status MemoryGroup::Enter() const {
  return WriteText(directory_ + "/cgroup.procs", std::to_string(getpid()))
             ? Status()
             : Status::IoError("cannot enter " + directory_);
}

}  // namespace partita::bench
