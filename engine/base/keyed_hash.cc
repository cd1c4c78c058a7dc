#include "engine/base/keyed_hash.h"

#include <bit>
#include <cstddef>
#include <cstring>
#include <random>

#include "engine/base/coding.h"

namespace partita {

namespace {

class SipState {
 public:
  explicit SipState(const Hash128& key)
      : v0_(key.low ^ 0x736f6d6570736575),
        v1_(key.high ^ 0x646f72616e646f6d ^ 0xee),
        v2_(key.low ^ 0x6c7967656e657261),
        v3_(key.high ^ 0x7465646279746573) {}

  void Add(uint64_t word) {
    v3_ ^= word;
    Round();
    Round();
    v0_ ^= word;
  }
  Hash128 End() {
    Hash128 hash;
    v2_ ^= 0xee;
    for (int i = 0; i < 4; ++i) Round();
    hash.low = v0_ ^ v1_ ^ v2_ ^ v3_;
    v1_ ^= 0xdd;
    for (int i = 0; i < 4; ++i) Round();
    hash.high = v0_ ^ v1_ ^ v2_ ^ v3_;
    return hash;
  }

 private:
  void Round() {
    v0_ += v1_;
    v1_ = std::rotl(v1_, 13) ^ v0_;
    v0_ = std::rotl(v0_, 32);
    v2_ += v3_;
    v3_ = std::rotl(v3_, 16) ^ v2_;
    v0_ += v3_;
    v3_ = std::rotl(v3_, 21) ^ v0_;
    v2_ += v1_;
    v1_ = std::rotl(v1_, 17) ^ v2_;
    v2_ = std::rotl(v2_, 32);
  }

  uint64_t v0_, v1_, v2_, v3_;
};

}  // namespace

Hash128 KeyedHash(std::string_view bytes, const Hash128& key) {
  SipState state(key);
  const char* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= sizeof(uint64_t); left -= sizeof(uint64_t), at += sizeof(uint64_t)) state.Add(LoadLe64(at));
  uint64_t last = 0;
  if (left > 0) std::memcpy(&last, at, left);
  state.Add(last | static_cast<uint64_t>(bytes.size()) << 56);
  return state.End();
}

Hash128 SecretHashKey() {
  std::random_device device;
  const auto word = [&device] { return static_cast<uint64_t>(device()) << 32 | device(); };
  return {word(), word()};
}

}  // namespace partita
