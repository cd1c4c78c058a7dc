// A value of the local meta store: the file meta/KEY. All integers are little-endian.
//
//   offset  size  field
//        0     4  magic        kMetaMagic
//        4     2  format       kMetaFormat
//        6     2  reserved     zero, checked on read
//        8     8  store        id of the store this value belongs to, never 0
//       16     8  generation   from 1 on, rises by one with each swap
//       24     8  length       of the value; the file has exactly kMetaHeaderSize + length bytes
//       32     8  seal         XXH3-64 over bytes [0, 32) and the value,
//                              XOR Identity(store, file, 0, kMeta, generation)
//       40     n  value
//
// In the identity, `file` is Hash64(key): one key's file under another key's name fails (F41).
// The store's id also stands in the clear, because the root key must be readable before anyone
// knows which store this is, and so that a foreign store's file is told from a rotten one (F66).
//
// Reader: a file too short, a wrong magic, length or seal -> kCorruption; another store's id ->
// kCorruption naming both ids; newer format -> kUnsupported, before its seal is looked at, as a
// newer format may seal differently.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/ids.h"
#include "engine/base/meta_store.h"
#include "engine/base/result.h"

namespace partita {

inline constexpr uint32_t kMetaMagic = 0x41544d50;  // "PMTA"
inline constexpr uint16_t kMetaFormat = 1;
inline constexpr size_t kMetaHeaderSize = 4 + 2 + 2 + 8 + 8 + 8 + 8;
static_assert(kMetaHeaderSize == 40);

// A bound, so that a wrong file size cannot ask for unbounded memory (F42).
inline constexpr uint64_t kMetaValueSizeMax = 256ull << 20;

struct MetaRecord {
  StoreId store;
  MetaValue value;
};

// The bytes of the file. REQUIRES: store and generation are not 0.
std::string EncodeMeta(std::string_view key, StoreId store, uint64_t generation, std::string_view value);

// `name` is for messages. Verifies everything but whose store it is.
Result<MetaRecord> DecodeMeta(std::string_view key, std::string_view name, std::string_view file);

}  // namespace partita
