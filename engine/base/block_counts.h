#pragma once
#include <cstdint>

namespace partita {

// What a scan took of table files.
struct BlockCounts {
  uint64_t blocks_read = 0;     // Data blocks whose entries were looked at, from the cache or not.
  uint64_t blocks_skipped = 0;  // Data blocks that zone maps ruled out unread, whole files' included.
  uint64_t files_skipped = 0;   // Files of which not even the index was read.
  uint64_t bytes_read = 0;      // From the device: index blocks and read-ahead included.

  BlockCounts& operator+=(const BlockCounts& other) {
    blocks_read += other.blocks_read;
    blocks_skipped += other.blocks_skipped;
    files_skipped += other.files_skipped;
    bytes_read += other.bytes_read;
    return *this;
  }
  friend bool operator==(const BlockCounts&, const BlockCounts&) = default;
};

}  // namespace partita
