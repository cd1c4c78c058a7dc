#pragma once
#include "engine/base/checksum.h"
#include "engine/base/ids.h"

namespace partita {

// Whose log bytes are: part of every seal in it, so that bytes of another store, shard, segment,
// place or incarnation can never pass for these (F30, F41).
struct LogIdentity {
  StoreId store;
  ShardId shard;

  // The identity of bytes at `offset` of a segment, or of the tail (`segment` 0).
  Identity At(SealKind kind, SegmentId segment, Incarnation incarnation, uint64_t offset) const {
    return {store, segment.value, offset, kind, uint64_t{shard.value} << 32 | incarnation.value};
  }
};

}  // namespace partita
