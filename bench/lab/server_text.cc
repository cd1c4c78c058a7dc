#include "bench/lab/server_text.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "bench/lab/json_text.h"
#include "engine/base/text.h"

namespace partita::lab {
namespace {

constexpr size_t kBytesMax = 300;
// What is hidden is longer than what stands for it, by far less than so much: no secret is cut into view.
constexpr size_t kLookedAtMax = 64u << 10;
constexpr std::string_view kHidden = "(hidden)";
// What stands between the name and the value: as it is, in an address within an address, and in JSON.
constexpr std::array<std::string_view, 4> kEquals = {"=", "%3d", "%3D", "\\u003d"};
constexpr std::string_view kValueEnds = "&\"'<> \t\r\n;,\\";

std::string Decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned byte = 0;
    const char* const digits = text.data() + i + 1;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2) {
      out.push_back(static_cast<char>(byte));
      i += 2;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

std::string SignatureOf(std::string_view sas) {
  const size_t at = ("&" + std::string(sas)).find("&sig=");
  if (at == std::string::npos) return "";
  const std::string_view value = sas.substr(at + 4);
  return std::string(value.substr(0, value.find('&')));
}

void Hide(std::string* text, const std::string& secret) {
  if (secret.empty()) return;
  for (size_t at = 0; (at = text->find(secret, at)) != std::string::npos; at += kHidden.size()) {
    text->replace(at, secret.size(), kHidden);
  }
}

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

void HideValuesOfSig(std::string* text) {
  std::string lower = *text;
  std::transform(lower.begin(), lower.end(), lower.begin(), Lower);
  for (size_t at = 0; (at = lower.find("sig", at)) != std::string::npos;) {
    at += 3;
    for (const std::string_view equals : kEquals) {
      if (std::string_view(lower).substr(at, equals.size()) != equals) continue;
      at += equals.size();
      const size_t end = std::min({lower.find_first_of(kValueEnds, at), lower.find("%26", at), lower.size()});
      text->replace(at, end - at, kHidden);
      lower.replace(at, end - at, kHidden);
      at += kHidden.size();
      break;
    }
  }
}

}  // namespace

std::string ServerText(std::string_view said, std::string_view sas) {
  std::string text(said.substr(0, kLookedAtMax));
  const std::string signature = SignatureOf(sas);
  Hide(&text, std::string(sas));
  Hide(&text, signature);
  Hide(&text, Decoded(signature));
  HideValuesOfSig(&text);
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const auto character = DecodeUtf8(text, at);
    const size_t size = character ? character->size : 1;
    std::string_view shown = character ? std::string_view(text).substr(at, size) : kReplacementCharacter;
    // The controls of ASCII, and those of Latin-1, which terminals obey too.
    if (character &&
        (character->character < 0x20 || (character->character >= 0x7F && character->character < 0xA0))) {
      shown = " ";
    }
    if (out.size() + shown.size() > kBytesMax) break;
    out += shown;
    at += size;
  }
  return out;
}

}  // namespace partita::lab
