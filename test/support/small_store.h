#pragma once
#include <cstdint>

#include "engine/store.h"

namespace partita {

// A new store in which a few rows make a flush, a file, a segment.
inline StoreOptions SmallStoreOptions(uint32_t shards, uint64_t memtable_data_bytes = 32u << 10) {
  StoreOptions options;
  options.create_if_missing = true;
  options.memory_bytes = 64u << 20;
  options.shards = shards;
  options.memtable_data_bytes = memtable_data_bytes;
  options.table_file_bytes = 2 * memtable_data_bytes;
  options.log_segment_bytes = 256u << 10;
  options.log_tail_bytes = 64u << 10;
  options.reserve_bytes = 1u << 20;
  options.caches_flushes = false;  // So that what is read comes from the disk.
  return options;
}

}  // namespace partita
