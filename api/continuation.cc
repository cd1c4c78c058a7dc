#include "api/continuation.h"

#include <array>

#include "engine/base/checksum.h"
#include "engine/base/coding.h"
#include "engine/base/user_key.h"

namespace partita {

namespace {

constexpr uint8_t kContinuationFormat = 1;
constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

std::string Base64Url(std::string_view bytes) {
  std::string text;
  uint32_t bits = 0;
  int count = 0;
  for (char c : bytes) {
    bits = bits << 8 | static_cast<uint8_t>(c);
    count += 8;
    while (count >= 6) {
      count -= 6;
      text.push_back(kAlphabet[bits >> count & 63]);
    }
  }
  if (count > 0) text.push_back(kAlphabet[bits << (6 - count) & 63]);
  return text;
}

bool FromBase64Url(std::string_view text, std::string* bytes) {
  uint32_t bits = 0;
  int count = 0;
  for (char c : text) {
    size_t value = kAlphabet.find(c);
    if (value == kAlphabet.npos) return false;
    bits = bits << 6 | static_cast<uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes->push_back(static_cast<char>(bits >> count & 255));
  }
  return true;
}

}  // namespace

std::string EncodeContinuation(const Continuation& continuation) {
  std::string bytes;
  bytes.push_back(static_cast<char>(kContinuationFormat));
  bytes.push_back(continuation.direction == Direction::kForward ? 0 : 1);
  AppendLe32(&bytes, continuation.table.value);
  bytes.append(continuation.user_key);
  AppendLe32(&bytes, static_cast<uint32_t>(Hash64(bytes)));
  return Base64Url(bytes);
}

Result<Continuation> DecodeContinuation(std::string_view text) {
  Status malformed = Status::InvalidArgument("the continuation is not one that a scan returned");
  std::string bytes;
  if (!FromBase64Url(text, &bytes) || bytes.size() < 2 + 4 + 4) return malformed;
  std::string_view body = std::string_view(bytes).substr(0, bytes.size() - 4);
  if (LoadLe32(bytes.data() + body.size()) != static_cast<uint32_t>(Hash64(body))) return malformed;
  if (static_cast<uint8_t>(body[0]) != kContinuationFormat || static_cast<uint8_t>(body[1]) > 1)
    return malformed;
  Continuation continuation;
  continuation.direction = body[1] == 0 ? Direction::kForward : Direction::kBackward;
  continuation.table = TableId(LoadLe32(body.data() + 2));
  continuation.user_key = std::string(body.substr(6));
  return continuation;
}

}  // namespace partita
