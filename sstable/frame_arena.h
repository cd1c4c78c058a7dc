#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/base/large_memory.h"

namespace partita {

// Memory reserved once and divided into frames of whole granules, first one fitting best; free
// neighbours are joined at once. Not thread-safe: the cache partition that owns it locks.
//
// Each extent (run of granules, used or free) carries its length and state in `tags_` at its first
// and last granule, so that neighbours are found without a search; free ones are listed by length.
class FrameArena {
 public:
  static constexpr size_t kGranule = 1024;
  static constexpr uint32_t kNone = UINT32_MAX;
  // Bookkeeping beside each granule.
  static constexpr size_t kOverheadPerGranule = 3 * sizeof(uint32_t);

  // Address space for `granules`, and for `granules_behind` that lie behind them and are not its own to give:
  // Open and Close say when they are somebody's. Memory is touched by use.
  explicit FrameArena(uint32_t granules, uint32_t granules_behind = 0);
  ~FrameArena();
  FrameArena(const FrameArena&) = delete;
  FrameArena& operator=(const FrameArena&) = delete;

  // The first granule of a used extent of that length, or kNone. REQUIRES: granules > 0.
  uint32_t Allocate(uint32_t granules);
  // Gives a used extent back. Returns the first granule of the free extent that it is part of now.
  uint32_t Free(uint32_t first);
  // Takes `granules` from the front of a free extent. REQUIRES: it is free and long enough.
  uint32_t AllocateAt(uint32_t first, uint32_t granules);

  // Close gives the memory back to the kernel as well. REQUIRES: they lie behind granules().
  void Open(uint32_t first, uint32_t granules);
  void Close(uint32_t first, uint32_t granules);

  // Gives the memory of a used extent back to the kernel, but for pages that it has a part of.
  void GiveBack(uint32_t first);

  // The next huge page of the bookkeeping, or of the memory, from its front, if it lies before this granule.
  // False: there is none. Needs no lock, but one thread at a time.
  bool TouchNext(uint32_t end) {
    return tags_.TouchNext() || next_.TouchNext() || previous_.TouchNext() ||
           toucher_.TouchNext(memory_, size_t{end} * kGranule);
  }

  bool IsFree(uint32_t first) const { return (tags_[first] & kFreeBit) != 0; }
  uint32_t LengthOf(uint32_t first) const { return tags_[first] & ~kFreeBit; }
  uint32_t granules() const { return granules_; }
  uint32_t used_granules() const { return used_; }

  uint8_t* At(uint32_t granule) const { return base_ + static_cast<size_t>(granule) * kGranule; }
  uint32_t GranuleOf(const uint8_t* data) const { return static_cast<uint32_t>((data - base_) / kGranule); }

  void CheckInvariants() const;

 private:
  static constexpr uint32_t kFreeBit = 1u << 31;
  static constexpr uint32_t kExactBins = 64;  // Lengths 1..63 have a list each, greater ones by power of two.
  static constexpr uint32_t kBins = kExactBins + 32;

  static uint32_t BinOf(uint32_t length);
  void SetExtent(uint32_t first, uint32_t length, bool free);
  void PushFree(uint32_t first, uint32_t length);
  void Unlink(uint32_t first);

  uint32_t granules_;
  uint32_t used_ = 0;
  LargeMemory memory_;
  uint8_t* base_ = nullptr;  // Of memory_.
  MemoryToucher toucher_;
  LargeArray<uint32_t> tags_;
  LargeArray<uint32_t> next_;  // Of a free extent's first granule, in its bin.
  LargeArray<uint32_t> previous_;
  std::array<uint32_t, kBins> bins_;
};

}  // namespace partita
