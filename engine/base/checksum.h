#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "engine/base/ids.h"

namespace partita {

// XXH3-64 of the bytes.
uint64_t Hash64(std::string_view bytes);
uint64_t Hash64(std::span<const uint8_t> bytes);
uint64_t Hash64WithSeed(std::string_view bytes, uint64_t seed);

// XXH3-64 of several pieces as if they were one.
class StreamHash {
 public:
  StreamHash();
  ~StreamHash();
  StreamHash(const StreamHash&) = delete;
  StreamHash& operator=(const StreamHash&) = delete;
  void Update(std::string_view bytes);
  uint64_t Digest() const;

 private:
  void* state_;
};

// What kind of bytes a seal covers. On disk: append only, never renumber.
enum class SealKind : uint8_t {
  kLogSegmentHeader = 1,
  kLogFrame = 2,
  kLogTail = 3,
  kDataBlock = 4,
  kIndexBlock = 5,
  kFilterBlock = 6,
  kFooter = 7,
  kMeta = 8,  // A value of the meta store: catalog, manifest.
  kProperties = 9,
};

// Where bytes belong. Mixed into their checksum, so that rotted, torn, lost, misdirected and
// swapped bytes all fail it (F41): bytes that the disk put in the wrong place have a right content
// hash, only their place is wrong.
struct Identity {
  StoreId store;
  uint64_t file = 0;    // ObjectId, SegmentId, or the hash of a meta key.
  uint64_t offset = 0;  // Of the first sealed byte in the file.
  SealKind kind = SealKind::kDataBlock;
  uint64_t generation = 0;  // Incarnation or generation where the place is rewritten; else 0.

  // A well-mixed word; differs with high probability when any field differs.
  uint64_t Mix() const;
};

// Seal = XXH3-64(content) XOR identity.Mix(). A copied block is re-sealed from the same content
// hash (`seal ^ old.Mix() ^ new.Mix()`), so the check survives the copy (DESIGN 6).
uint64_t Seal(std::string_view content, const Identity& identity);
inline bool SealMatches(std::string_view content, const Identity& identity, uint64_t seal) {
  return Seal(content, identity) == seal;
}

}  // namespace partita
