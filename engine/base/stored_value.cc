#include "engine/base/stored_value.h"

#include <cstring>

#include "engine/base/checksum.h"
#include "engine/base/coding.h"

namespace partita {

uint32_t StoredValueChecksum(std::string_view user_key, EntryKind kind, std::string_view content) {
  // Chained through the seed rather than streamed: two short one-shot hashes cost less than a state.
  uint64_t seed = Hash64WithSeed(user_key, static_cast<uint64_t>(kind));
  return static_cast<uint32_t>(Hash64WithSeed(content, seed));
}

void WriteStoredValue(std::string_view user_key, EntryKind kind, std::string_view content, uint8_t* to) {
  StoreLe32(to, StoredValueChecksum(user_key, kind, content));
  if (content.empty()) return;  // A tombstone: memcpy wants no null, not even of no bytes.
  std::memcpy(to + kStoredValueHeaderSize, content.data(), content.size());
}

std::string MakeStoredValue(std::string_view user_key, EntryKind kind, std::string_view content) {
  std::string value(kStoredValueHeaderSize + content.size(), '\0');
  WriteStoredValue(user_key, kind, content, reinterpret_cast<uint8_t*>(value.data()));
  return value;
}

bool StoredValueIntact(const Entry& entry) {
  if (entry.value.size() < kStoredValueHeaderSize) return false;
  return LoadLe32(entry.value.data()) ==
         StoredValueChecksum(entry.user_key, entry.kind, StoredValueContent(entry.value));
}

}  // namespace partita
