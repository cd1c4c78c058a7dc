#pragma once
#include <cstdint>

#include "bench/load/engine.h"
#include "bench/peers/joined_key.h"

namespace partita::bench {

// Engine::Scan by an iterator as LevelDB and RocksDB have it. It goes no further than the last row asked for:
// one Next more would read the block after it, and the table.
template <typename Iterator, typename Slice>
void ScanByIterator(Iterator* iterator, const Slice& from, uint64_t limit, const RowVisitor& visit) {
  if (limit == 0) return;
  iterator->Seek(from);
  for (uint64_t visited = 1; iterator->Valid(); ++visited) {
    const Slice key = iterator->key(), value = iterator->value();
    if (!visit(JoinedKey::RowOf(key.data(), key.size()), {value.data(), value.size()})) return;
    if (visited == limit) return;
    iterator->Next();
  }
}

}  // namespace partita::bench
