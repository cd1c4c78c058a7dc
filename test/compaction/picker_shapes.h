#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "compaction/picker.h"

namespace partita {

// Shapes for tests of what is picked.

inline constexpr uint64_t kMiB = 1 << 20;

inline FileShape ShapedFile(uint64_t id, std::string lower, std::string last, uint64_t size = 32 * kMiB) {
  FileShape file;
  file.id = ObjectId(id);
  file.span = {std::move(lower), last + '\0'};
  file.size = size;
  file.entries = size / 1024;
  file.version_max = Version(id);
  file.bottom_compression = true;
  return file;
}

inline std::vector<uint64_t> Ids(const CompactionPlan& plan) {
  std::vector<uint64_t> ids;
  for (const PlanInput& input : plan.inputs) ids.push_back(input.id.value);
  return ids;
}

}  // namespace partita
