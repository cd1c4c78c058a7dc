#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/entry.h"
#include "engine/base/result.h"

namespace partita {

// A stored value: the content that a writer gave, led by the checksum taken where the write
// entered. It travels unchanged from there through log, memtable, flush and compaction, and is
// verified at each of them, so a bit flipped in memory is found before it is written down as
// valid (F51).
//
//   offset  size  field
//        0     4  checksum: low half of XXH3-64 over user key, kind and content (not the version,
//                 which is given later)
//        4     n  content: an entity record, or raw bytes; empty for a tombstone
inline constexpr size_t kStoredValueHeaderSize = 4;

uint32_t StoredValueChecksum(std::string_view user_key, EntryKind kind, std::string_view content);

// Writes header and content to `to`, which has kStoredValueHeaderSize + content.size() bytes.
void WriteStoredValue(std::string_view user_key, EntryKind kind, std::string_view content, uint8_t* to);
std::string MakeStoredValue(std::string_view user_key, EntryKind kind, std::string_view content);

// True when the stored value of this entry is intact.
bool StoredValueIntact(const Entry& entry);

// The content, unverified. REQUIRES: value.size() >= kStoredValueHeaderSize.
inline std::string_view StoredValueContent(std::string_view value) {
  return value.substr(kStoredValueHeaderSize);
}

}  // namespace partita
