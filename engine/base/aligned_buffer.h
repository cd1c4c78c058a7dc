#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

namespace partita {

// The unit that everything on disk is laid out in: a format constant, not a device query.
inline constexpr size_t kPageSize = 4096;

inline constexpr uint64_t AlignUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}
inline constexpr uint64_t AlignDown(uint64_t value, uint64_t alignment) {
  return value / alignment * alignment;
}

// Owned memory aligned to kPageSize, whose size is a multiple of it: what direct I/O wants.
// Contents start undefined.
//
// From kLargeMin on it comes from the kernel and not from malloc, whose heaps, one a thread, would keep the
// holes that such buffers leave: a dozen background threads held three times the memory budget. A few are
// kept for the next one that asks, of any thread, since the first touch of fresh memory costs more than what
// is read into it.
class AlignedBuffer {
 public:
  static constexpr size_t kLargeMin = 256u << 10;
  // Of all kept ones together: the pieces that two merges have in hand.
  static constexpr size_t kKeptMax = 8u << 20;

  AlignedBuffer() = default;
  // Rounds `size` up to kPageSize. An empty buffer on allocation failure: check data().
  explicit AlignedBuffer(size_t size) : size_(AlignUp(size, kPageSize)) {
    if (size_ > 0) data_ = Allocate(size_);
    if (data_ == nullptr) size_ = 0;
  }
  AlignedBuffer(AlignedBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    if (this != &other) {
      Free(data_, size_);
      data_ = std::exchange(other.data_, nullptr);
      size_ = std::exchange(other.size_, 0);
    }
    return *this;
  }
  ~AlignedBuffer() { Free(data_, size_); }

  uint8_t* data() { return data_; }
  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  std::span<uint8_t> span() { return {data_, size_}; }
  std::string_view view(size_t offset, size_t size) const {
    return {reinterpret_cast<const char*>(data_) + offset, size};
  }

 private:
  static uint8_t* Allocate(size_t size);
  static void Free(uint8_t* data, size_t size);

  uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace partita
