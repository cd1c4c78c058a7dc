#include "engine/base/aligned_buffer.h"

#include <sys/mman.h>

#include <bit>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "engine/base/kept_blocks.h"

namespace partita {

namespace {

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PARTITA_ADDRESS_SANITIZER 1
#endif
#endif
#if defined(PARTITA_ADDRESS_SANITIZER)
constexpr bool kFromMalloc = true;  // Whose buffers have guarded ends.
#else
constexpr bool kFromMalloc = false;
#endif

// What is larger is made once, as at opening, and would keep out what is wanted all the time.
constexpr size_t kOneMax = 1u << 20;

// Large buffers that nobody uses, their pages still in memory. Nobody waits for another here, who may be of
// idle class and without a core: he does without.
class KeptBuffers {
 public:
  // Of `size` bytes, a power of two; null when none is kept.
  uint8_t* Take(size_t size) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return nullptr;
    for (size_t i = kept_.size(); i-- > 0;) {
      if (kept_[i].size != size) continue;
      uint8_t* const data = kept_[i].data;
      kept_[i] = kept_.back();
      kept_.pop_back();
      total_ -= size;
      return data;
    }
    return nullptr;
  }

  // False when there are enough: the caller still owns it.
  bool Keep(uint8_t* data, size_t size) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock() || size > kOneMax || total_ + size > AlignedBuffer::kKeptMax) return false;
    kept_.push_back({data, size});
    total_ += size;
    return true;
  }

 private:
  struct Buffer {
    uint8_t* data;
    size_t size;
  };
  std::mutex mutex_;
  std::vector<Buffer> kept_;
  size_t total_ = 0;
};

// Never destroyed: buffers may be freed while the process ends.
KeptBuffers& Kept() {
  static KeptBuffers& kept = *new KeptBuffers;
  return kept;
}

bool IsLarge(size_t size) { return size >= AlignedBuffer::kLargeMin && !kFromMalloc; }

// What one block is read into, of 32 reads.
using SmallBuffers = KeptBlocks<kPageSize, 4, 32, 512u << 10>;
constinit thread_local SmallBuffers small_buffers;

void OpenSmallBuffers() {
  struct Closer {
    ~Closer() {
      small_buffers.Close([](void* data) { std::free(data); });
    }
  };
  thread_local Closer closer;
  static_cast<void>(&closer);  // Makes it.
  small_buffers.Open();
}

}  // namespace

uint8_t* AlignedBuffer::Allocate(size_t size) {
  if (!IsLarge(size)) {
    if (void* const kept = small_buffers.Take(size); kept != nullptr) return static_cast<uint8_t*>(kept);
    return static_cast<uint8_t*>(std::aligned_alloc(kPageSize, size));
  }
  const size_t mapped_size = std::bit_ceil(size);
  if (uint8_t* const kept = Kept().Take(mapped_size); kept != nullptr) return kept;
  void* const fresh = mmap(nullptr, mapped_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return fresh == MAP_FAILED ? nullptr : static_cast<uint8_t*>(fresh);
}

void AlignedBuffer::Free(uint8_t* data, size_t size) {
  if (!IsLarge(size)) {
    if (data != nullptr && !kFromMalloc) {
      if (small_buffers.is_fresh()) OpenSmallBuffers();
      if (small_buffers.Keep(data, size)) return;
    }
    std::free(data);
  } else if (const size_t mapped_size = std::bit_ceil(size); !Kept().Keep(data, mapped_size)) {
    munmap(data, mapped_size);
  }
}

}  // namespace partita
