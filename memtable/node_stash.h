#pragma once
#include <cstddef>
#include <cstdint>

#include "memtable/arena.h"

namespace partita::memtable_internal {

// Pieces of one size, taken from an arena ahead of need, so that the writer's inserts cannot fail
// once they were reserved. Writer only. The arena frees the memory.
class Stash {
 public:
  // Pieces are `piece_size` bytes, aligned to `alignment`; the arena is asked for `pieces_a_block`
  // at a time. REQUIRES: alignment is a power of two >= 8, piece_size a multiple of it.
  Stash(Arena& arena, size_t piece_size, size_t alignment, size_t pieces_a_block)
      : arena_(arena), piece_size_(piece_size), alignment_(alignment), pieces_a_block_(pieces_a_block) {}
  Stash(const Stash&) = delete;
  Stash& operator=(const Stash&) = delete;

  // Makes at least `pieces` pieces available; false when the arena is exhausted.
  bool Reserve(size_t pieces) { return available_ >= pieces || Refill(pieces); }

  // REQUIRES: a piece is available.
  void* Take();

  size_t available() const { return available_; }

 private:
  // Lies at the start of a waiting block's first piece.
  struct Block {
    Block* next;
    size_t pieces;
  };

  bool Refill(size_t pieces);

  Arena& arena_;
  const size_t piece_size_;
  const size_t alignment_;
  const size_t pieces_a_block_;
  size_t available_ = 0;  // In the open block and all waiting ones.
  uint8_t* open_ = nullptr;
  size_t open_pieces_ = 0;
  Block* waiting_ = nullptr;
};

}  // namespace partita::memtable_internal
