#include "api/http/signature.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <random>

namespace partita::http {
namespace {

// By the library's own HMAC, which SigningKey does not use.
std::string SignedByLibrary(std::string_view key, std::string_view text) {
  uint8_t digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const uint8_t*>(text.data()),
       text.size(), digest, &size);
  uint8_t base64[EVP_MAX_MD_SIZE * 2];
  const int length = EVP_EncodeBlock(base64, digest, static_cast<int>(size));
  return std::string(reinterpret_cast<const char*>(base64), static_cast<size_t>(length));
}

TEST(SigningKeyTest, SignsAsHmacOfTheLibraryDoesForEveryLengthOfKeyAndText) {
  std::mt19937_64 random(1);
  const auto draw = [&](size_t size) {
    std::string bytes;
    while (bytes.size() < size) bytes.push_back(static_cast<char>(random()));
    return bytes;
  };
  for (size_t key_size = 1; key_size < 140; ++key_size) {
    const std::string key = draw(key_size);
    for (const size_t text_size : {size_t{0}, key_size, size_t{55}, size_t{56}, size_t{64}, size_t{500}}) {
      const std::string text = draw(text_size);
      EXPECT_EQ(SigningKey(key).Sign(text), SignedByLibrary(key, text)) << key_size << ", " << text_size;
      EXPECT_TRUE(SigningKey(key).Verify(text, SignedByLibrary(key, text)));
    }
  }
}

TEST(SigningKeyTest, RefusesEveryOtherSignatureAndText) {
  const SigningKey key("secret");
  const std::string text = "GET\n\n\nWed, 15 Jan 2025 10:20:30 GMT\n/contoso/orders()";
  const std::string signature = key.Sign(text);
  for (size_t i = 0; i < signature.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string other = signature;
      other[i] = static_cast<char>(other[i] ^ (1 << bit));
      EXPECT_FALSE(key.Verify(text, other));
    }
  }
  for (size_t i = 0; i < text.size(); ++i) {
    std::string other = text;
    other[i] = static_cast<char>(other[i] ^ 1);
    EXPECT_FALSE(key.Verify(other, signature));
  }
  EXPECT_FALSE(key.Verify(text, ""));
  EXPECT_FALSE(key.Verify(text, signature + "="));
  EXPECT_FALSE(key.Verify(text, signature.substr(0, signature.size() - 1)));
}

TEST(SigningKeyTest, TakesKeysInPaddedBase64Alone) {
  EXPECT_TRUE(SigningKey::FromBase64("c2VjcmV0").ok());
  EXPECT_TRUE(SigningKey::FromBase64("c2VjcmV0\n").ok()) << "a file's last line";
  for (const char* text : {"", "\n", "c2VjcmV", "c2Vj-cmV0", "*"}) {
    Result<SigningKey> key = SigningKey::FromBase64(text);
    EXPECT_EQ(key.code(), Code::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace partita::http
