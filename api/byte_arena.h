#pragma once
#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

namespace partita {

// Bytes that stay where they are until Clear, which keeps the memory for the next ones: but for pieces above
// kChunkBytes, each of which has its own and gives it back. So it holds at most twice what lay in it at once,
// and a chunk, however often it is filled. Not thread-safe.
class ByteArena {
 public:
  static constexpr size_t kChunkBytes = 64u << 10;

  std::string_view Copy(std::string_view bytes) {
    if (bytes.empty()) return {};
    char* copy = Take(bytes.size());
    std::memcpy(copy, bytes.data(), bytes.size());
    return {copy, bytes.size()};
  }

  void Clear() {
    large_.clear();
    large_bytes_ = 0;
    used_ = 0;
    left_ = 0;
  }

  // Memory that it has, used or not.
  size_t held_bytes() const { return chunks_.size() * kChunkBytes + large_bytes_; }

 private:
  char* Take(size_t size) {
    if (size > kChunkBytes) {
      large_.push_back(std::make_unique_for_overwrite<char[]>(size));
      large_bytes_ += size;
      return large_.back().get();
    }
    if (size > left_) {
      if (used_ == chunks_.size()) chunks_.push_back(std::make_unique_for_overwrite<char[]>(kChunkBytes));
      next_ = chunks_[used_++].get();
      left_ = kChunkBytes;
    }
    char* taken = next_;
    next_ += size;
    left_ -= size;
    return taken;
  }

  std::vector<std::unique_ptr<char[]>> chunks_, large_;
  size_t used_ = 0;  // Of chunks_, the last of which has left_ bytes from next_ on.
  char* next_ = nullptr;
  size_t left_ = 0;
  size_t large_bytes_ = 0;
};

}  // namespace partita
