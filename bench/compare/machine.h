#pragma once
#include <string>

namespace partita::bench {

// What was measured on, for people who read the result elsewhere.
struct Machine {
  std::string processor, kernel, file_system, core_mask;
  unsigned cores = 0, usable_cores = 1;  // The latter by the mask.
  unsigned long long memory_bytes = 0;

  // `directory` is where the stores lie.
  static Machine Describe(const std::string& directory);
  // One line.
  std::string ToText() const;
};

}  // namespace partita::bench
