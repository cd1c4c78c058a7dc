#include "api/http/json_text.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include <array>
#include <bit>
#include <cstdint>

#include "engine/base/coding.h"

namespace partita::http {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";
constexpr size_t kEscapeSizeMax = 6;  // \u001f

// What a byte of a JSON string becomes: itself (F5 and F6 go back to EE and EF), or an escape, in which case
// the entry is the letter after the backslash, `u` for \u00XX.
struct ByteForm {
  uint8_t byte = 0;
  bool escaped = false;
};

constexpr std::array<ByteForm, 256> MakeByteForms() {
  std::array<ByteForm, 256> forms{};
  for (size_t i = 0; i < 256; ++i) forms[i] = {static_cast<uint8_t>(i), false};
  forms[0xF5].byte = 0xEE;
  forms[0xF6].byte = 0xEF;
  for (size_t i = 0; i < 0x20; ++i) forms[i] = {'u', true};
  forms['\b'] = {'b', true};
  forms['\f'] = {'f', true};
  forms['\n'] = {'n', true};
  forms['\r'] = {'r', true};
  forms['\t'] = {'t', true};
  forms['"'] = {'"', true};
  forms['\\'] = {'\\', true};
  return forms;
}
constexpr std::array<ByteForm, 256> kByteForms = MakeByteForms();

// At most kEscapeSizeMax bytes.
inline char* WriteByte(char* to, char from) {
  const auto byte = static_cast<uint8_t>(from);
  const ByteForm form = kByteForms[byte];
  if (form.escaped) *to++ = '\\';
  *to++ = static_cast<char>(form.byte);
  if (form.escaped && form.byte == 'u') {
    *to++ = '0';
    *to++ = '0';
    *to++ = kHexDigits[byte >> 4];
    *to++ = kHexDigits[byte & 0xF];
  }
  return to;
}

// True when none of the eight bytes is a control, a quote, a backslash or beyond ASCII.
inline bool IsPlainAscii(uint64_t bytes) {
  constexpr uint64_t kOnes = 0x0101'0101'0101'0101;
  constexpr uint64_t kHighBits = kOnes * 0x80;
  const uint64_t quotes = bytes ^ (kOnes * '"');
  const uint64_t backslashes = bytes ^ (kOnes * '\\');
  const uint64_t found = (bytes - kOnes * 0x20) | (quotes - kOnes) | (backslashes - kOnes) | bytes;
  return (found & kHighBits) == 0;
}

// Converts blocks from the front of [from, end), as many as are whole; what is left is shorter than a block.
#if defined(__AVX2__)
constexpr std::ptrdiff_t kBlockSize = 32;

const char* WriteBlocks(TextSink* sink, const char* from, const char* end) {
  const __m256i control_max = _mm256_set1_epi8(0x1F);
  const __m256i quote = _mm256_set1_epi8('"');
  const __m256i backslash = _mm256_set1_epi8('\\');
  const __m256i ordered_ee = _mm256_set1_epi8(static_cast<char>(0xF5));
  const __m256i ordered_ef = _mm256_set1_epi8(static_cast<char>(0xF6));
  const __m256i seven = _mm256_set1_epi8(7);
  while (end - from >= kBlockSize) {
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    const __m256i ordered =
        _mm256_or_si256(_mm256_cmpeq_epi8(bytes, ordered_ee), _mm256_cmpeq_epi8(bytes, ordered_ef));
    const __m256i control = _mm256_cmpeq_epi8(_mm256_max_epu8(bytes, control_max), control_max);
    const __m256i escaped = _mm256_or_si256(
        control, _mm256_or_si256(_mm256_cmpeq_epi8(bytes, quote), _mm256_cmpeq_epi8(bytes, backslash)));
    sink->Reserve(kBlockSize + kEscapeSizeMax);
    char* to = sink->at();
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                        _mm256_sub_epi8(bytes, _mm256_and_si256(ordered, seven)));
    const auto mask = static_cast<uint32_t>(_mm256_movemask_epi8(escaped));
    if (mask == 0) {
      sink->AdvanceTo(to + kBlockSize);
      from += kBlockSize;
      continue;
    }
    const int plain = std::countr_zero(mask);
    sink->AdvanceTo(WriteByte(to + plain, from[plain]));
    from += plain + 1;
  }
  return from;
}
#else
const char* WriteBlocks(TextSink*, const char* from, const char*) { return from; }
#endif

// Escapes by eight and by one; the tail of what WriteBlocks did.
void WriteRest(TextSink* sink, const char* from, const char* end) {
  while (from != end) {
    sink->Reserve(8 * kEscapeSizeMax);
    char* to = sink->at();
    if (end - from >= 8 && IsPlainAscii(LoadLe64(from))) {
      std::memcpy(to, from, 8);
      sink->AdvanceTo(to + 8);
      from += 8;
      continue;
    }
    const char* stop = from + std::min<std::ptrdiff_t>(8, end - from);
    while (from != stop) to = WriteByte(to, *from++);
    sink->AdvanceTo(to);
  }
}

bool IsUnreserved(uint8_t byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
         byte == '-' || byte == '.' || byte == '_' || byte == '~';
}

}  // namespace

void WriteJsonString(TextSink* sink, std::string_view text) {
  sink->Push('"');
  const char* end = text.data() + text.size();
  WriteRest(sink, WriteBlocks(sink, text.data(), end), end);
  sink->Push('"');
}

void AppendJsonString(std::string* out, std::string_view text) {
  TextSink sink(out, text.size() + 16);
  WriteJsonString(&sink, text);
}

void WriteUrlKey(TextSink* sink, std::string_view key) {
  sink->Reserve(3 * key.size());
  char* to = sink->at();
  for (const char c : key) {
    auto byte = static_cast<uint8_t>(c);
    if (IsUnreserved(byte)) {
      *to++ = c;
    } else if (c == '\'') {
      *to++ = '\'';
      *to++ = '\'';
    } else {
      if (byte == 0xF5 || byte == 0xF6) byte = static_cast<uint8_t>(byte - 7);
      *to++ = '%';
      *to++ = "0123456789ABCDEF"[byte >> 4];
      *to++ = "0123456789ABCDEF"[byte & 0xF];
    }
  }
  sink->AdvanceTo(to);
}

void AppendUrlKey(std::string* out, std::string_view key) {
  TextSink sink(out, 3 * key.size());
  WriteUrlKey(&sink, key);
}

void AppendXmlText(std::string* out, std::string_view text) {
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    if (c == '<') {
      out->append("&lt;");
    } else if (c == '>') {
      out->append("&gt;");
    } else if (c == '&') {
      out->append("&amp;");
    } else if (c == '"') {
      out->append("&quot;");
    } else if (c == '\r') {
      out->append("&#xD;");  // As it is, who reads it makes it a line feed.
    } else if (byte < 0x20 && c != '\n' && c != '\t') {
      out->append("\xEF\xBF\xBD");
    } else if ((byte == 0xBE || byte == 0xBF) && out->ends_with("\xEF\xBF")) {
      out->push_back('\xBD');  // U+FFFE and U+FFFF differ from U+FFFD in their last byte alone.
    } else {
      out->push_back(static_cast<char>(kByteForms[byte].escaped ? byte : kByteForms[byte].byte));
    }
  }
}

}  // namespace partita::http
