#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "engine/base/assert.h"

namespace partita {

// Memory that the kernel gives in one piece, for what is large, lives as long as its owner and is read at
// random: in pages of 4 KiB each such read walks page tables first, which under a hypervisor costs as much as
// the read.
//
// It is zero, and costs address space only until it is touched. Of 2 MiB or more it begins at a huge page,
// and huge pages are asked for (Linux gives them to those who ask, where it is set as distributions set it);
// where they are refused small ones serve as well. A plain owner: movable, thread-compatible.
class LargeMemory {
 public:
  static constexpr size_t kHugePageSize = size_t{2} << 20;

  LargeMemory() = default;
  // data() is null when the kernel refuses, which takes a limit on address space. REQUIRES: bytes > 0.
  explicit LargeMemory(size_t bytes);
  LargeMemory(LargeMemory&& other) noexcept { *this = std::move(other); }
  LargeMemory& operator=(LargeMemory&& other) noexcept;
  ~LargeMemory() { Release(); }

  uint8_t* data() const { return data_; }
  size_t size() const { return size_; }

  // Gives the memory of [offset, offset + bytes) back to the kernel; it is zero when it is touched again.
  // REQUIRES: whole pages within size(), which nobody uses.
  void GiveBack(size_t offset, size_t bytes);

  // Has the kernel give the memory of [offset, offset + bytes) now, where it has not yet. Changes nothing
  // there, and is safe beside whoever uses it or gives it back. REQUIRES: within size().
  void Touch(size_t offset, size_t bytes) const;

 private:
  void Release();

  uint8_t* data_ = nullptr;
  size_t size_ = 0;
  void* mapping_ = nullptr;
  size_t mapping_size_ = 0;
};

// Touches memory ahead of its use, from its front, so that whoever uses it does not wait until the kernel has
// found and cleared a huge page: under a hypervisor up to 4 ms (research/prototypes.md, "Fresh memory is
// slow"). One thread touches, beside all others. What is given back at that moment may be there again, to the
// end of a huge page.
class MemoryToucher {
 public:
  // The next huge page, if it ends by `end`; or what is left of the memory, if that does. False: neither.
  bool TouchNext(const LargeMemory& memory, size_t end);
  // What lies behind was given back.
  void Forget(size_t end);

 private:
  std::atomic<size_t> touched_{0};
};

// `count` objects in such memory, each begun as zero bytes. Nothing runs for them, at the beginning or the
// end, so that an array of a hundred million is there at once.
template <typename T>
class LargeArray {
 public:
  static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= 4096);

  // REQUIRES: count > 0.
  explicit LargeArray(size_t count) : memory_(count * sizeof(T)) {
    PARTITA_ASSERT(memory_.data() != nullptr);  // It takes a limit on address space, or on what is promised.
  }

  T* get() const { return reinterpret_cast<T*>(memory_.data()); }
  T& operator[](size_t i) const { return get()[i]; }
  // As MemoryToucher, of all of it.
  bool TouchNext() { return toucher_.TouchNext(memory_, memory_.size()); }

 private:
  LargeMemory memory_;
  MemoryToucher toucher_;
};

}  // namespace partita
