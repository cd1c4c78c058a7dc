#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "engine/base/checksum.h"
#include "engine/base/ids.h"

namespace partita {

// Sums of key hashes: two sets of keys with the same sum are the same set, but for a chance of 2^-64. Each
// data block's index record has the sum of its keys, so that it is known without reading the block whether
// they are just those of another set.
//
// Who chooses keys and could make two sets that differ come to the same would hide rows of blocks that he has
// keys in. The seed is from the store's id, which no client is shown (who has the store's files or a backup
// has it). XXH3 is no cryptographic hash: its way of long inputs has pairs that collide under one seed in a
// hundred, so long keys go the way of short ones, piece by piece.
inline uint64_t KeySumSeed(StoreId store) {
  constexpr uint64_t kPurpose = 0x6B65'7973'756D'7331;
  return Identity{.store = store, .file = kPurpose}.Mix();
}
inline uint64_t KeySumTerm(std::string_view user_key, uint64_t seed) {
  constexpr size_t kPiece = 240;  // As XXH3 has it.
  for (; user_key.size() > kPiece; user_key.remove_prefix(kPiece)) {
    seed = Hash64WithSeed(user_key.substr(0, kPiece), seed);
  }
  return Hash64WithSeed(user_key, seed);
}

// What is known of the keys of a data block that was not read.
struct BlockKeys {
  uint64_t sum;         // Of KeySumTerm of each key.
  uint64_t seed;        // Of that.
  uint32_t count_max;   // There are no more of them.
  Version version_max;  // Of no key is an entry in the block newer.
  // What of the block its cursor shows; elsewhere other tables may have keys between its own. An empty upper
  // is no bound.
  std::string_view shown_lower, shown_upper;
};

// Knows keys that were deleted lately: blocks that hold nothing else need not be read (table_scan.h). Whoever
// deletes from the front of a table and asks for the first row would read all that was deleted.
//
// Belongs to one scan; used by one thread at a time.
class DeletedKeys {
 public:
  virtual ~DeletedKeys() = default;

  // True: the keys in [lower, upper) that the scan knows to be deleted, by what is newer than version_max,
  // are just those of the block, all of which lie there.
  virtual bool AreAll(std::string_view lower, std::string_view upper, const BlockKeys& keys) = 0;

  // Entries that AreAll has looked at so far.
  virtual size_t looks() const = 0;
};

}  // namespace partita
