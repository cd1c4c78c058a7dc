#pragma once
#include <string>
#include <string_view>

#include "engine/base/checksum.h"
#include "engine/base/coding.h"
#include "engine/io/local_object_store.h"
#include "engine/io/sim_disk.h"
#include "sstable/part_format.h"

namespace partita {

// Changes the last value of the table's block at `offset` and seals the block anew: memory that rotted before
// it was written. Of a compressed block that leaves bytes that do not decompress.
inline void RotASealedValue(SimDisk& disk, StoreId store, const std::string& path, uint64_t offset = 0) {
  std::string bytes = *disk.ReadFile(path);
  const ObjectId id = *ParseObjectName(path.substr(path.find('/') + 1));
  char* const block = bytes.data() + offset;
  const uint32_t stored = LoadLe32(block + 8);
  block[stored - 1] ^= 1;
  const uint64_t content = Hash64(std::string_view(block, stored).substr(8));
  StoreLe64(block, content ^ PartIdentity(store, id, offset, SealKind::kDataBlock).Mix());
  disk.WriteFile(path, bytes);
}

}  // namespace partita
