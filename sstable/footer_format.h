#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/ids.h"
#include "engine/base/status.h"
#include "sstable/part_format.h"

namespace partita {

// A table file ends with this footer, and its size is a multiple of kPageSize. All integers are
// little-endian.
//
//   offset  size  field
//        0    16  top_index          offset 8, stored_size 4, content_size 4
//       16    16  properties
//       32    16  key_filter
//       48    16  partition_filter
//       64     8  index_begin        first byte after the data blocks; index blocks lie in
//       72     8  index_end          [index_begin, index_end)
//       80     8  entry_count        puts and tombstones; a full read must find as many (F47)
//       88     8  tombstone_count
//       96     8  version_max        no entry has a higher one; the clock resumes above it (F18)
//      104     8  file_size          a longer or shorter file shows at once
//      112     2  format             kTableFormat; 1: no sums of keys in the index
//      114     2  reserved           zero, checked on read
//      116     4  magic              kTableMagic
//      120     8  seal               XXH3-64 over bytes [0, 120), XOR Identity(store, object,
//                                    offset, kFooter)
//
// Why the identity: bytes that the disk put in the wrong place have a right content hash, only their
// place is wrong (F41). The footer's offset is file_size - kFooterSize, so a truncated file fails too.
//
// Reader: bad seal -> read once more past all caches (F52), then kCorruption, the file's key range is
// damaged (F48). Newer format -> kUnsupported (F66).
inline constexpr size_t kFooterSize = 4 * 16 + 6 * 8 + 2 + 2 + 4 + 8;
static_assert(kFooterSize == 128);
inline constexpr uint16_t kTableFormat = 2;          // What is written.
inline constexpr uint16_t kTableFormatMin = 1;       // The oldest that is read.
inline constexpr uint32_t kTableMagic = 0x6C625470;  // "pTbl"

struct Footer {
  PartHandle top_index;
  PartHandle properties;
  PartHandle key_filter;
  PartHandle partition_filter;
  uint64_t index_begin = 0;
  uint64_t index_end = 0;
  uint64_t entry_count = 0;
  uint64_t tombstone_count = 0;
  Version version_max;
  uint64_t file_size = 0;

  friend bool operator==(const Footer&, const Footer&) = default;
};

// Appends the sealed footer. REQUIRES: it will lie at footer.file_size - kFooterSize.
void AppendFooter(std::string* out, const Footer& footer, StoreId store, ObjectId object);

// Decodes the last kFooterSize bytes of a file of `file_size` bytes. Checks the seal first, then that
// every part lies within the file. kCorruption, kUnsupported.
Status DecodeFooter(std::string_view bytes, uint64_t file_size, StoreId store, ObjectId object,
                    Footer* footer);

}  // namespace partita
