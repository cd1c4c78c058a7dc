#include "sstable/frame_arena.h"

#include <bit>

#include "engine/base/aligned_buffer.h"
#include "engine/base/assert.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PARTITA_POISONS_FREE_FRAMES
#endif
#endif
#ifdef PARTITA_POISONS_FREE_FRAMES
#include <sanitizer/asan_interface.h>
#define PARTITA_POISON(at, size) ASAN_POISON_MEMORY_REGION(at, size)
#define PARTITA_UNPOISON(at, size) ASAN_UNPOISON_MEMORY_REGION(at, size)
#else
#define PARTITA_POISON(at, size) (void)(at), (void)(size)
#define PARTITA_UNPOISON(at, size) (void)(at), (void)(size)
#endif

namespace partita {

FrameArena::FrameArena(uint32_t granules, uint32_t granules_behind)
    : granules_(granules),
      memory_(AlignUp((size_t{granules} + granules_behind) * kGranule, kPageSize)),
      base_(memory_.data()),
      tags_(granules),
      next_(granules),
      previous_(granules) {
  PARTITA_ASSERT(granules > 0);
  PARTITA_ASSERT(base_ != nullptr);  // Address space only; it takes a limit on it to fail.
  bins_.fill(kNone);
  PARTITA_POISON(base_, memory_.size());
  SetExtent(0, granules, /*free=*/true);
  PushFree(0, granules);
}

FrameArena::~FrameArena() { PARTITA_UNPOISON(base_, memory_.size()); }

uint32_t FrameArena::BinOf(uint32_t length) {
  return length < kExactBins ? length : kExactBins + static_cast<uint32_t>(std::bit_width(length)) - 7;
}

void FrameArena::SetExtent(uint32_t first, uint32_t length, bool free) {
  tags_[first] = tags_[first + length - 1] = length | (free ? kFreeBit : 0);
}

void FrameArena::PushFree(uint32_t first, uint32_t length) {
  uint32_t& head = bins_[BinOf(length)];
  next_[first] = head;
  previous_[first] = kNone;
  if (head != kNone) previous_[head] = first;
  head = first;
}

void FrameArena::Unlink(uint32_t first) {
  if (previous_[first] != kNone) {
    next_[previous_[first]] = next_[first];
  } else {
    bins_[BinOf(LengthOf(first))] = next_[first];
  }
  if (next_[first] != kNone) previous_[next_[first]] = previous_[first];
}

uint32_t FrameArena::Allocate(uint32_t granules) {
  PARTITA_ASSERT(granules > 0);
  for (uint32_t bin = BinOf(granules); bin < kBins; ++bin) {
    for (uint32_t first = bins_[bin]; first != kNone; first = next_[first]) {
      if (LengthOf(first) >= granules) return AllocateAt(first, granules);
    }
  }
  return kNone;
}

uint32_t FrameArena::AllocateAt(uint32_t first, uint32_t granules) {
  PARTITA_ASSERT(IsFree(first));
  const uint32_t length = LengthOf(first);
  PARTITA_ASSERT(length >= granules);
  Unlink(first);
  if (length > granules) {
    SetExtent(first + granules, length - granules, /*free=*/true);
    PushFree(first + granules, length - granules);
  }
  SetExtent(first, granules, /*free=*/false);
  used_ += granules;
  PARTITA_UNPOISON(At(first), granules * kGranule);
  return first;
}

uint32_t FrameArena::Free(uint32_t first) {
  PARTITA_ASSERT(!IsFree(first));
  uint32_t length = LengthOf(first);
  used_ -= length;
  PARTITA_POISON(At(first), length * kGranule);
  if (uint32_t after = first + length; after < granules_ && IsFree(after)) {
    Unlink(after);
    length += LengthOf(after);
  }
  if (first > 0 && (tags_[first - 1] & kFreeBit) != 0) {
    const uint32_t before = tags_[first - 1] & ~kFreeBit;
    first -= before;
    Unlink(first);
    length += before;
  }
  SetExtent(first, length, /*free=*/true);
  PushFree(first, length);
  return first;
}

void FrameArena::Open(uint32_t first, uint32_t granules) {
  PARTITA_ASSERT(first >= granules_);
  PARTITA_UNPOISON(At(first), size_t{granules} * kGranule);
}

void FrameArena::Close(uint32_t first, uint32_t granules) {
  PARTITA_ASSERT(first >= granules_);
  PARTITA_POISON(At(first), size_t{granules} * kGranule);
  // What lies behind is closed already; a page in front that is used in part stays.
  const size_t begin = AlignUp(size_t{first} * kGranule, kPageSize);
  const size_t end = AlignUp((size_t{first} + granules) * kGranule, kPageSize);
  if (begin >= end) return;
  toucher_.Forget(begin);
  memory_.GiveBack(begin, end - begin);
}

void FrameArena::GiveBack(uint32_t first) {
  PARTITA_ASSERT(!IsFree(first));
  const size_t begin = AlignUp(size_t{first} * kGranule, kPageSize);
  const size_t end = (size_t{first} + LengthOf(first)) * kGranule / kPageSize * kPageSize;
  if (begin >= end) return;
  toucher_.Forget(begin);
  memory_.GiveBack(begin, end - begin);
}

void FrameArena::CheckInvariants() const {
  uint32_t used = 0;
  bool before_free = false;
  for (uint32_t at = 0; at < granules_;) {
    const uint32_t length = LengthOf(at);
    PARTITA_ASSERT(length > 0);
    PARTITA_ASSERT(at + length <= granules_);
    PARTITA_ASSERT(tags_[at + length - 1] == tags_[at]);
    PARTITA_ASSERT(!(before_free && IsFree(at)));  // Free neighbours are joined.
    before_free = IsFree(at);
    if (!IsFree(at)) used += length;
    at += length;
  }
  PARTITA_ASSERT(used == used_);
}

}  // namespace partita
