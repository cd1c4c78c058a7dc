#include "sstable/heap_frame.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "engine/base/aligned_buffer.h"

namespace partita {

namespace {

// Of most blocks; rarer ones do not stay with a thread.
constexpr size_t kKeptMax = 64u << 10;
// Blocks of one table are of about one size, and so are the frames for them.
constexpr size_t kUnit = 4096;

#if defined(__has_feature) && __has_feature(address_sanitizer)
constexpr bool kKeeps = false;  // Or it would not see who reads a frame that was left.
#else
constexpr bool kKeeps = true;
#endif

constexpr bool IsKept(size_t size) { return kKeeps && size <= kKeptMax; }
constexpr size_t Capacity(size_t size) {
  return IsKept(size) ? AlignUp(std::max<size_t>(size, 1), kUnit) : size;
}

struct Kept {
  uint8_t* frame = nullptr;
  size_t capacity = 0;
};

// What a thread keeps, until it ends; what it leaves later goes to the heap.
struct KeptFrames {
  std::array<Kept, 2> frames;
  bool ended = false;

  ~KeptFrames() {
    for (const Kept& kept : frames) std::free(kept.frame);
    frames = {};
    ended = true;
  }
};

KeptFrames& KeptByThread() {
  static thread_local KeptFrames kept;
  return kept;
}

}  // namespace

uint8_t* TakeHeapFrame(size_t size) {
  const size_t capacity = Capacity(size);
  for (Kept& kept : KeptByThread().frames) {
    if (kept.frame != nullptr && kept.capacity == capacity) return std::exchange(kept.frame, nullptr);
  }
  return static_cast<uint8_t*>(std::malloc(capacity));
}

void LeaveHeapFrame(uint8_t* frame, size_t size) {
  KeptFrames& kept = KeptByThread();
  if (IsKept(size) && !kept.ended) {
    // The newest is the first. Where both are there the older one goes: sizes that are not asked for any more
    // do not stay.
    auto& [newest, older] = kept.frames;
    if (newest.frame != nullptr) std::swap(newest, older);
    std::swap(frame, newest.frame);
    newest.capacity = Capacity(size);
  }
  std::free(frame);
}

}  // namespace partita
