#include "memtable/node_stash.h"

#include <new>

#include "engine/base/assert.h"

namespace partita::memtable_internal {

bool Stash::Refill(size_t pieces) {
  static_assert(sizeof(Block) <= 40, "a block's link lies in its first piece");
  while (available_ < pieces) {
    uint8_t* memory = arena_.Allocate(pieces_a_block_ * piece_size_ + alignment_ - 8);
    if (memory == nullptr) return false;
    const uintptr_t address = reinterpret_cast<uintptr_t>(memory);
    memory += (alignment_ - address % alignment_) % alignment_;
    waiting_ = new (memory) Block{waiting_, pieces_a_block_};
    available_ += pieces_a_block_;
  }
  return true;
}

void* Stash::Take() {
  PARTITA_ASSERT(available_ > 0);
  if (open_pieces_ == 0) {
    Block* block = waiting_;
    waiting_ = block->next;
    open_pieces_ = block->pieces;
    open_ = reinterpret_cast<uint8_t*>(block);
  }
  uint8_t* piece = open_;
  open_ += piece_size_;
  --open_pieces_;
  --available_;
  return piece;
}

}  // namespace partita::memtable_internal
