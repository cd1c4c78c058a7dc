#include "engine/base/checksum.h"

#include <xxhash.h>
#ifdef PARTITA_XXHASH_DISPATCH
#include <xxh_x86dispatch.h>  // The same hashes by the widest registers of this machine.
#endif

#include "engine/base/coding.h"
#include "engine/base/site.h"

namespace partita {

uint64_t Hash64(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }
uint64_t Hash64(std::span<const uint8_t> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }
uint64_t Hash64WithSeed(std::string_view bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

StreamHash::StreamHash() : state_(XXH3_createState()) {
  XXH3_64bits_reset(static_cast<XXH3_state_t*>(state_));
}
StreamHash::~StreamHash() { XXH3_freeState(static_cast<XXH3_state_t*>(state_)); }
void StreamHash::Update(std::string_view bytes) {
  XXH3_64bits_update(static_cast<XXH3_state_t*>(state_), bytes.data(), bytes.size());
}
uint64_t StreamHash::Digest() const { return XXH3_64bits_digest(static_cast<const XXH3_state_t*>(state_)); }

uint64_t Identity::Mix() const {
  if (!SiteIsOn("identity.check")) return 0;
  uint8_t fields[8 * 4 + 1];
  StoreLe64(fields, store.value);
  StoreLe64(fields + 8, file);
  StoreLe64(fields + 16, offset);
  StoreLe64(fields + 24, generation);
  fields[32] = static_cast<uint8_t>(kind);
  return XXH3_64bits(fields, sizeof fields);
}

uint64_t Seal(std::string_view content, const Identity& identity) { return Hash64(content) ^ identity.Mix(); }

}  // namespace partita
