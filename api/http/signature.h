#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/result.h"

namespace partita::http {

// HMAC-SHA256 under one account key: what SharedKey, SharedKeyLite and both kinds of SAS are signed
// with (spec 14.1).
//
// Value type, immutable, thread-safe. It holds the two SHA-256 states behind the padded key, so that a
// signature over a short text costs four blocks of SHA-256 instead of six, and neither an allocation
// nor a fetch of the algorithm; the key itself is not kept.
class SigningKey {
 public:
  // From the bytes of the key (not its base64).
  explicit SigningKey(std::string_view key);

  // Standard base64 with padding, of at least one byte. kInvalidArgument otherwise; the message does
  // not show the text.
  static Result<SigningKey> FromBase64(std::string_view text);

  // base64(HMAC-SHA256(key, text)), as it stands in a header or in `sig`: 44 characters.
  std::string Sign(std::string_view text) const;

  // True when `signature` is exactly Sign(text). How long it takes depends on the sizes alone.
  bool Verify(std::string_view text, std::string_view signature) const;

 private:
  static constexpr size_t kSignatureSize = 44;
  using State = std::array<uint32_t, 8>;

  void SignTo(std::string_view text, char (&signature)[kSignatureSize + 1]) const;

  State inner_;
  State outer_;
};

}  // namespace partita::http
