// SHA256_Init and its sisters are called deprecated since OpenSSL 3, in favour of EVP, whose contexts are
// allocated and copied with their provider's: 390 ns a signature against 155 ns this way (a SharedKey text
// of 86 bytes, a machine with SHA extensions). They stay part of OpenSSL 3.
#define OPENSSL_SUPPRESS_DEPRECATED
#include "api/http/signature.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/sha.h>

#include <algorithm>
#include <cstring>

#include "api/value_text.h"
#include "engine/base/assert.h"

namespace partita::http {

namespace {

constexpr size_t kHashBlockSize = SHA256_CBLOCK;
using Block = std::array<uint8_t, kHashBlockSize>;
using Digest = std::array<uint8_t, SHA256_DIGEST_LENGTH>;

// The state of SHA-256 after one block: the key XOR the padding byte.
std::array<uint32_t, 8> StateAfter(const Block& key, uint8_t padding) {
  Block block;
  for (size_t i = 0; i < kHashBlockSize; ++i) block[i] = key[i] ^ padding;
  SHA256_CTX context;
  SHA256_Init(&context);
  SHA256_Update(&context, block.data(), block.size());
  std::array<uint32_t, 8> state;
  std::copy(std::begin(context.h), std::end(context.h), state.begin());
  OPENSSL_cleanse(block.data(), block.size());
  OPENSSL_cleanse(&context, sizeof context);
  return state;
}

// The hash of that block and `bytes`.
Digest Continue(const std::array<uint32_t, 8>& state, const void* bytes, size_t size) {
  SHA256_CTX context;
  SHA256_Init(&context);
  std::copy(state.begin(), state.end(), std::begin(context.h));
  context.Nl = kHashBlockSize * 8;  // Bits so far.
  SHA256_Update(&context, bytes, size);
  Digest digest;
  SHA256_Final(digest.data(), &context);
  return digest;
}

}  // namespace

SigningKey::SigningKey(std::string_view key) {
  Block padded{};
  if (key.size() > kHashBlockSize) {
    SHA256(reinterpret_cast<const uint8_t*>(key.data()), key.size(), padded.data());
  } else {
    std::memcpy(padded.data(), key.data(), key.size());
  }
  inner_ = StateAfter(padded, 0x36);
  outer_ = StateAfter(padded, 0x5c);
  OPENSSL_cleanse(padded.data(), padded.size());
}

Result<SigningKey> SigningKey::FromBase64(std::string_view text) {
  Result<PropertyValue> value = ParseValueText(PropertyType::kBinary, text);
  if (!value.ok() || value->if_binary()->bytes.empty()) {
    return Status::InvalidArgument("an account key must be base64, with padding");
  }
  return SigningKey(value->if_binary()->bytes);
}

void SigningKey::SignTo(std::string_view text, char (&signature)[kSignatureSize + 1]) const {
  const Digest inner = Continue(inner_, text.data(), text.size());
  const Digest outer = Continue(outer_, inner.data(), inner.size());
  const int size = EVP_EncodeBlock(reinterpret_cast<uint8_t*>(signature), outer.data(), int{outer.size()});
  PARTITA_ASSERT(size == int{kSignatureSize});
}

std::string SigningKey::Sign(std::string_view text) const {
  char signature[kSignatureSize + 1];
  SignTo(text, signature);
  return std::string(signature, kSignatureSize);
}

bool SigningKey::Verify(std::string_view text, std::string_view signature) const {
  char expected[kSignatureSize + 1];
  SignTo(text, expected);
  // Compared as base64: another spelling of the same bytes is refused, which no client sends.
  return signature.size() == kSignatureSize && CRYPTO_memcmp(expected, signature.data(), kSignatureSize) == 0;
}

}  // namespace partita::http
