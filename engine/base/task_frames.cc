#include "engine/base/task_frames.h"

#include <new>

#include "engine/base/kept_blocks.h"

namespace partita {

namespace {

#if defined(__has_feature) && __has_feature(address_sanitizer)
constexpr bool kKeeps = false;  // Or it would not see who uses a frame that was left.
#else
constexpr bool kKeeps = true;
#endif

// A cold read of one row has a dozen frames of 112 to 1,344 bytes: those of 64 reads take 350 KiB.
using Frames = KeptBlocks<64, 32, 64, 384u << 10>;
constinit thread_local Frames frames;

void OpenFrames() {
  struct Closer {
    ~Closer() {
      frames.Close([](void* frame) { ::operator delete(frame); });
    }
  };
  thread_local Closer closer;
  static_cast<void>(&closer);  // Makes it.
  frames.Open();
}

}  // namespace

void* NewTaskFrame(size_t size) {
  if (void* const kept = frames.Take(size); kept != nullptr) return kept;
  return ::operator new(Frames::Capacity(size));
}

void FreeTaskFrame(void* frame, size_t size) noexcept {
  if (kKeeps) {
    if (frames.is_fresh()) OpenFrames();
    if (frames.Keep(frame, size)) return;
  }
  ::operator delete(frame);
}

}  // namespace partita
