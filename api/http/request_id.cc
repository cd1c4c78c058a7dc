#include "api/http/request_id.h"

#include <sys/random.h>

#include <chrono>
#include <cstdint>

namespace partita::http {

namespace {

// SplitMix64: every seed gives a full period, which is all that ids need.
class Generator {
 public:
  Generator() {
    if (getrandom(&state_, sizeof(state_), 0) != static_cast<ssize_t>(sizeof(state_))) {
      // Only a kernel without random numbers comes here. Clock and address still tell threads apart.
      state_ = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()) ^
               reinterpret_cast<uintptr_t>(this);
    }
  }
  uint64_t Next() {
    uint64_t z = state_ += 0x9E37'79B9'7F4A'7C15;
    z = (z ^ z >> 30) * 0xBF58'476D'1CE4'E5B9;
    z = (z ^ z >> 27) * 0x94D0'49BB'1331'11EB;
    return z ^ z >> 31;
  }

 private:
  uint64_t state_ = 0;
};

constexpr bool IsDash(size_t i) { return i == 8 || i == 13 || i == 18 || i == 23; }

}  // namespace

RequestId::RequestId() {
  thread_local Generator generator;
  uint64_t bits[2] = {generator.Next(), generator.Next()};
  size_t digit = 0;
  for (size_t i = 0; i < text_.size(); ++i) {
    if (IsDash(i)) {
      text_[i] = '-';
      continue;
    }
    text_[i] = "0123456789abcdef"[bits[digit / 16] >> 4 * (digit % 16) & 0xF];
    ++digit;
  }
  text_[14] = '4';                              // Version: random.
  text_[19] = "89ab"[bits[1] >> 4 * 15 & 0x3];  // Variant: the usual.
}

}  // namespace partita::http
