#pragma once
#include <cstdint>
#include <string_view>

#include "engine/base/checksum.h"
#include "engine/base/user_key.h"

namespace partita {

// The hashes of a user key that filters want, taken once per lookup and reused for every table.
struct KeyHash {
  uint64_t key = 0;        // Of the whole user key.
  uint64_t partition = 0;  // Of (table, PartitionKey, 0x00).
};

// A user key that is looked for. A view.
struct SoughtKey {
  std::string_view user_key;
  KeyHash hash;
};

// What the partition filter hashes. For bytes that are no user key it is the whole, so that
// untrusted keys get an answer (never found) instead of an assertion.
inline std::string_view PartitionPrefixOrAll(std::string_view user_key) {
  if (user_key.size() <= kTableIdSize) return user_key;
  size_t separator = user_key.find('\0', kTableIdSize);
  return separator == user_key.npos ? user_key : user_key.substr(0, separator + 1);
}

inline KeyHash HashKey(std::string_view user_key) {
  return {Hash64(user_key), Hash64(PartitionPrefixOrAll(user_key))};
}

// The hash for a partition without a RowKey; `prefix` is as PartitionPrefix() gives it.
inline uint64_t HashPartitionPrefix(std::string_view prefix) { return Hash64(prefix); }

}  // namespace partita
