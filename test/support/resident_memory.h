#pragma once
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <vector>

#include "engine/base/aligned_buffer.h"

namespace partita {

// Of this process.
inline uint64_t ResidentBytes() {
  uint64_t size = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident * kPageSize;
}

// How many of the pages in which these bytes lie the kernel has memory behind.
inline size_t ResidentPages(const void* at, size_t bytes) {
  const uintptr_t begin = AlignDown(reinterpret_cast<uintptr_t>(at), kPageSize);
  const uintptr_t end = AlignUp(reinterpret_cast<uintptr_t>(at) + bytes, kPageSize);
  std::vector<unsigned char> pages((end - begin) / kPageSize);
  EXPECT_EQ(mincore(reinterpret_cast<void*>(begin), end - begin, pages.data()), 0);
  return static_cast<size_t>(
      std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return (page & 1) != 0; }));
}

}  // namespace partita
