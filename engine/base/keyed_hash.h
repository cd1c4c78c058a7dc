#pragma once
#include <cstdint>
#include <string_view>

namespace partita {

struct Hash128 {
  uint64_t low = 0;
  uint64_t high = 0;
  friend bool operator==(const Hash128&, const Hash128&) = default;
};

// A hash to tell texts apart by, whoever made them: SipHash-2-4. Who does not know `key` finds two texts of
// one hash by chance alone, and of that there is next to none with 128 bits.
//
// Not XXH3 with a secret seed: there are pairs of texts of 1 KiB, soon computed, of which under one seed in
// 60 all 128 bits are the same.
Hash128 KeyedHash(std::string_view bytes, const Hash128& key);

// A key that nobody knows.
Hash128 SecretHashKey();

}  // namespace partita
