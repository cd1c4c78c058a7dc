#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <new>

namespace partita {

// Blocks of the heap that a thread has let go of and keeps, by size, until it takes them again. A worker with
// many reads outstanding lets go of as many frames and buffers within a burst of completions, and wants them
// right after; malloc has seven of a size at hand, and of more, and of all above 1 KiB, it looks for room,
// splits it and joins it again.
//
// Blocks may come from other threads. Kept are blocks of `kSizes` sizes, the multiples of `kUnit` from 1 on,
// of each at most `kOfASize`, and of all together at most `kAllBytes`: what is kept lies beside the memory
// budget, and first come stays. Nothing is kept before Open, nor from Close on: so a thread_local of it has
// no destructor and costs no look whether it is made, and who opens it sees to Close at the thread's end.
template <size_t kUnit, size_t kSizes, size_t kOfASize, size_t kAllBytes>
class KeptBlocks {
 public:
  static constexpr size_t kBytesMax = kUnit * kSizes;
  static constexpr size_t Capacity(size_t size) { return (size + kUnit - 1) / kUnit * kUnit; }

  // Null: none is kept, or none of so many bytes ever is. `size` is not 0, here and below.
  void* Take(size_t size) {
    if (size > kBytesMax) return nullptr;
    List& list = lists_[(size - 1) / kUnit];
    Block* const block = list.first;
    if (block == nullptr) return nullptr;
    list.first = block->next;
    --list.count;
    bytes_ -= Capacity(size);
    return block;
  }

  // False: the caller still owns it. REQUIRES: of Capacity(size) bytes.
  bool Keep(void* data, size_t size) {
    if (size > kBytesMax || state_ != State::kOpen) return false;
    List& list = lists_[(size - 1) / kUnit];
    if (list.count == kOfASize || bytes_ + Capacity(size) > kAllBytes) return false;
    list.first = new (data) Block{list.first};
    ++list.count;
    bytes_ += Capacity(size);
    return true;
  }

  bool is_fresh() const { return state_ == State::kFresh; }
  void Open() { state_ = State::kOpen; }
  // Gives all to `free`; from then on nothing is kept.
  template <typename Free>
  void Close(Free free) {
    state_ = State::kClosed;
    for (List& list : lists_) {
      while (list.first != nullptr) {
        Block* const block = list.first;
        list.first = block->next;
        free(block);
      }
      list.count = 0;
    }
    bytes_ = 0;
  }

 private:
  enum class State : uint8_t { kFresh, kOpen, kClosed };
  struct Block {
    Block* next;
  };
  struct List {
    Block* first = nullptr;
    size_t count = 0;
  };

  std::array<List, kSizes> lists_{};
  size_t bytes_ = 0;
  State state_ = State::kFresh;
};

}  // namespace partita
