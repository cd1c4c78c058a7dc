#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "sstable/table_info.h"
#include "sstable/zone_map.h"

namespace partita {

// What a table file says of itself as a whole; the content of its properties part:
//
//   ...      table info          see table_info.h; file_size is 0 here (the footer has it)
//   varint   key_count           distinct user keys
//   varint   partition_count     runs of keys with one (table, PartitionKey)
//   varint   data_blocks, index_blocks
//   varint   data_bytes          stored bytes of the data blocks, without padding
//   varint   padding_bytes       zeros between data blocks
//   u8       codec               what the writer was told
//   u8       level + 128         of zstd; 128 since its time
//   varint   zone property count, then bytes: names, sorted
//   ...      zone map            of the whole file, see zone_map.h
struct TableProperties {
  TableInfo info;
  uint64_t key_count = 0;
  uint64_t partition_count = 0;
  uint64_t data_blocks = 0;
  uint64_t index_blocks = 0;
  uint64_t data_bytes = 0;
  uint64_t padding_bytes = 0;
  uint8_t codec = 0;
  int level = 0;  // Of former versions.
  std::vector<std::string> zone_properties;
  ZoneMap zones;

  size_t memory_bytes() const;  // Of the heap.

  friend bool operator==(const TableProperties&, const TableProperties&) = default;
};

void AppendProperties(std::string* out, const TableProperties& properties);
// kCorruption when the bytes are not exactly one properties record.
Result<TableProperties> DecodeProperties(std::string_view content);

}  // namespace partita
