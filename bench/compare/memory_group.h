#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "engine/base/result.h"

namespace partita::bench {

// A control group with a limit on memory, page cache included, below the one that this process is in
// (beside it with version 2, where a group with processes has no groups below). Removed by Remove or
// the destructor.
class MemoryGroup {
 public:
  // kUnsupported with the reason where such groups cannot be made: no rights, or no controller.
  static Result<MemoryGroup> Create(uint64_t bytes_max);
  MemoryGroup(MemoryGroup&& other) noexcept;
  MemoryGroup& operator=(MemoryGroup&& other) noexcept;
  ~MemoryGroup();

  // Moves the calling process into it, for good.
  Status Enter() const;

 private:
  explicit MemoryGroup(std::string directory) : directory_(std::move(directory)) {}
  std::string directory_;  // Empty: moved from.
};

}  // namespace partita::bench
