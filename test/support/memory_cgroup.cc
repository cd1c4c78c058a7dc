#include "test/support/memory_cgroup.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

namespace partita {

namespace {

bool WriteText(const std::string& path, const std::string& text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t written = write(fd, text.data(), text.size());
  close(fd);
  return written == static_cast<ssize_t>(text.size());
}

}  // namespace

std::optional<MemoryCgroup> MemoryCgroup::Create(uint64_t limit_bytes, std::string* why_not) {
  // Version 2 has one tree, in which the parent must hand the controller on; version 1 a tree for memory.
  constexpr const char* kTree = "/sys/fs/cgroup/";
  constexpr const char* kTreeOfMemory = "/sys/fs/cgroup/memory/";
  const bool one_tree = access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0;
  if (one_tree) (void)WriteText(std::string(kTree) + "cgroup.subtree_control", "+memory");
  MemoryCgroup group((one_tree ? kTree : kTreeOfMemory) + ("partita-test-" + std::to_string(getpid())),
                     one_tree ? "/memory.max" : "/memory.limit_in_bytes");
  if (mkdir(group.path_.c_str(), 0755) != 0) {
    *why_not = "cannot make " + group.path_ + ": " + std::strerror(errno);
    group.path_.clear();
    return std::nullopt;
  }
  if (!group.SetLimit(limit_bytes)) {
    *why_not = "cannot bound memory in " + group.path_ + ": " + std::strerror(errno);
    return std::nullopt;
  }
  return group;
}

MemoryCgroup::~MemoryCgroup() {
  if (!path_.empty()) rmdir(path_.c_str());
}

bool MemoryCgroup::Join() const { return WriteText(path_ + "/cgroup.procs", "0"); }

bool MemoryCgroup::SetLimit(uint64_t bytes) const { return WriteText(path_ + file_, std::to_string(bytes)); }

}  // namespace partita
