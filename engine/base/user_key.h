#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/ids.h"
#include "engine/base/result.h"

namespace partita {

// User key: what orders the store, compared with memcmp (DESIGN 4).
//
//   offset  size  field
//        0     4  table id, big-endian
//        4     p  PartitionKey
//      4+p     1  0x00
//      5+p     r  RowKey
//
// Neither key holds a 0x00 byte (forbidden in the table model; checked in raw mode), so the first
// zero after the table id is the separator, and order by bytes is order by (table, PartitionKey,
// RowKey). In the table model the two keys are *ordered text*: UTF-8 with the lead bytes EE and EF
// written as F5 and F6, which sorts like UTF-16 code units under memcmp. Raw mode stores bytes as
// they are.
inline constexpr size_t kTableIdSize = 4;
inline constexpr size_t kUserKeySizeMax = 32 * 1024;  // Of it all; memtables and tables take no more.

// UTF-8 <-> ordered text. Both keep the length; ordered text of valid UTF-8 is never ambiguous,
// as F5 and F6 do not occur in UTF-8. REQUIRES: valid UTF-8, or its ordered form.
void AppendOrderedText(std::string* out, std::string_view utf8);
void AppendUtf8(std::string* out, std::string_view ordered);
std::string OrderedText(std::string_view utf8);
std::string Utf8FromOrdered(std::string_view ordered);

// Pieces of an encoded user key; views into it.
struct UserKeyParts {
  TableId table;
  std::string_view partition_key;
  std::string_view row_key;
};

// REQUIRES: no zero byte in either key.
void AppendUserKey(std::string* out, TableId table, std::string_view partition_key, std::string_view row_key);
std::string EncodeUserKey(TableId table, std::string_view partition_key, std::string_view row_key);

// kCorruption when the bytes are not a user key.
Result<UserKeyParts> DecodeUserKey(std::string_view user_key);

// (table, PartitionKey, 0x00): the common prefix of a partition's keys, what the partition filter hashes.
// REQUIRES: a valid user key.
std::string_view PartitionPrefix(std::string_view user_key);

// The first key of a table's interval, and the first after it.
std::string TableLowerBound(TableId table);
std::string TableUpperBound(TableId table);

// The smallest string greater than every string with this prefix; empty when there is none.
std::string PrefixSuccessor(std::string_view prefix);

// Whether [lower, upper) and [other_lower, other_upper) share a key, which neither is without. An empty upper
// end is behind all keys.
inline bool KeyRangesOverlap(std::string_view lower, std::string_view upper, std::string_view other_lower,
                             std::string_view other_upper) {
  return (upper.empty() || other_lower < upper) && (other_upper.empty() || lower < other_upper);
}

// Whether [lower, upper) holds the key. An empty upper end is behind all keys.
inline bool IsInKeyRange(std::string_view key, std::string_view lower, std::string_view upper) {
  return key >= lower && (upper.empty() || key < upper);
}

// Which of two upper ends comes first; an empty one is behind all keys. A view into what was given.
inline std::string_view NearerEnd(std::string_view a, std::string_view b) {
  return a.empty() || (!b.empty() && b < a) ? b : a;
}

}  // namespace partita
