#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace partita {

// A control group of the kernel that bounds the memory of the processes in it, page cache included. What
// cannot be reclaimed beyond the limit ends a process by SIGKILL. Gone with the object, once empty.
class MemoryCgroup {
 public:
  // Nothing where groups cannot be made (no root, a container); `why_not` says why.
  static std::optional<MemoryCgroup> Create(uint64_t limit_bytes, std::string* why_not);
  MemoryCgroup(MemoryCgroup&& other) noexcept : path_(std::exchange(other.path_, "")), file_(other.file_) {}
  MemoryCgroup(const MemoryCgroup&) = delete;
  MemoryCgroup& operator=(const MemoryCgroup&) = delete;
  ~MemoryCgroup();

  // Puts the calling process in.
  bool Join() const;
  // False: the kernel refuses, since it cannot reclaim so much (version 1 of groups).
  bool SetLimit(uint64_t bytes) const;

 private:
  MemoryCgroup(std::string path, const char* file) : path_(std::move(path)), file_(file) {}

  std::string path_;
  const char* file_;  // Of the limit.
};

}  // namespace partita
