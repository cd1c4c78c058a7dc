#include "api/http/batch_reader.h"

#include <emmintrin.h>

#include <algorithm>
#include <utility>

#include "api/http/media_type.h"
#include "api/limits.h"
#include "engine/base/coding.h"

// One pass from front to back, never back:
//
//   1. skip to the first delimiter of the batch;
//   2. read that part's MIME headers: a multipart type opens the changeset, anything else is the query;
//   3. read part after part: MIME headers, request line, headers, body, to the next delimiter;
//   4. after the changeset only an end of the batch may follow.
//
// The hard case is where a body ends. Some clients put the next delimiter right behind the JSON, without a
// line end, and a property may hold the text of a delimiter. So JSON is not searched but scanned to its
// closing brace, knowing strings. Text that is no JSON object ends at the next line that begins with a
// delimiter; what it is worth is for the JSON reader to say.

namespace partita::http {

namespace {

constexpr size_t kBoundarySizeMax = 70;
constexpr size_t kUsualHeaders = 8;

bool IsSpace(char c) { return c == ' ' || c == '\t'; }
bool IsSpaceOrLineEnd(char c) { return IsSpace(c) || c == '\r' || c == '\n'; }

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && IsSpaceOrLineEnd(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsSpaceOrLineEnd(text.back())) text.remove_suffix(1);
  return text;
}

// Without a branch for each byte, which the compiler then takes many at a time.
bool HasControlCharacter(std::string_view text) {
  unsigned hits = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    hits |= static_cast<unsigned>(byte < 0x20) & static_cast<unsigned>(byte != '\t');
    hits |= static_cast<unsigned>(byte == 0x7F);
  }
  return hits != 0;
}

ServiceError NoBatch() { return ServiceError(ErrorCode::kInvalidInput); }

bool EndsWithEmptyLine(std::string_view lines) {
  return lines == "\n" || lines == "\r\n" || lines.ends_with("\n\n") || lines.ends_with("\n\r\n");
}

// What a place in the text can be with respect to one boundary.
enum class Mark { kNone, kDelimiter, kClose };

class Reader {
 public:
  Reader(std::string_view text, std::string_view outer) : text_(text), outer_(outer) {}

  bool Read(Batch* batch);

 private:
  bool AtEnd() const { return at_ >= text_.size(); }
  std::string_view Rest() const { return text_.substr(at_); }

  Mark MarkHere(std::string_view boundary) const;
  bool AtAnyMark() const;
  void SkipMark(std::string_view boundary);
  bool SkipToMark();
  void SkipBlanks();
  std::string_view TakeLine();

  template <typename Visit>
  bool ReadHeaders(Visit&& visit);
  bool ReadMimeHeaders(std::string_view* content_type);
  bool ReadChangeset(Batch* batch);
  bool SkipRepeatedMimeHeaders();
  bool ReadHead(HttpRequest* head);
  bool ReadPart(Batch* batch);
  bool RepeatsHead();
  bool ReadRequestLine(HttpRequest* part);
  bool SkipJsonObject();
  std::string_view ReadBody();
  bool EndsHere();

  std::string_view text_;
  std::string_view outer_;  // Boundary of the batch.
  std::string_view inner_;  // Boundary of the changeset; empty outside of it.
  size_t at_ = 0;
  // Of the last part: its MIME headers, and its request line with its headers, each up to the empty line
  // that closes them, that line included; empty when none did.
  std::string_view mime_headers_;
  std::string_view head_;
};

// How many bytes have nothing to look at inside of a JSON string: no quote, backslash or control character.
// Less than 16 at the end of the text are not counted.
size_t PlainBytes(std::string_view text) {
  const __m128i quote = _mm_set1_epi8('"');
  const __m128i backslash = _mm_set1_epi8('\\');
  const __m128i control_max = _mm_set1_epi8(0x1F);
  size_t at = 0;
  for (; text.size() - at >= 16; at += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text.data() + at));
    const __m128i controls = _mm_cmpeq_epi8(_mm_min_epu8(bytes, control_max), bytes);
    const __m128i hits =
        _mm_or_si128(controls, _mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, backslash)));
    const int mask = _mm_movemask_epi8(hits);
    if (mask != 0) return at + static_cast<size_t>(__builtin_ctz(static_cast<unsigned>(mask)));
  }
  return at;
}

// A delimiter ends with its line or the text, so that `--batch_1` is no delimiter of boundary `batch`.
Mark Reader::MarkHere(std::string_view boundary) const {
  std::string_view rest = Rest();
  if (boundary.empty() || !rest.starts_with("--") || !rest.substr(2).starts_with(boundary))
    return Mark::kNone;
  rest.remove_prefix(2 + boundary.size());
  Mark mark = Mark::kDelimiter;
  if (rest.starts_with("--")) {
    mark = Mark::kClose;
    rest.remove_prefix(2);
  }
  while (!rest.empty() && IsSpace(rest.front())) rest.remove_prefix(1);
  return rest.empty() || rest.front() == '\n' || rest.starts_with("\r\n") ? mark : Mark::kNone;
}

bool Reader::AtAnyMark() const { return MarkHere(inner_) != Mark::kNone || MarkHere(outer_) != Mark::kNone; }

// REQUIRES: MarkHere(boundary) is a mark.
void Reader::SkipMark(std::string_view boundary) {
  at_ += 2 + boundary.size();
  TakeLine();
}

// To the next mark at the begin of a line, here included; false when there is none.
bool Reader::SkipToMark() {
  if (at_ > 0 && text_[at_ - 1] != '\n') TakeLine();
  while (!AtEnd()) {
    if (AtAnyMark()) return true;
    TakeLine();
  }
  return false;
}

void Reader::SkipBlanks() {
  while (!AtEnd() && IsSpaceOrLineEnd(text_[at_])) ++at_;
}

// The rest of this line without its end, which is CRLF or LF.
std::string_view Reader::TakeLine() {
  std::string_view rest = Rest();
  const size_t end = rest.find('\n');
  at_ = end == std::string_view::npos ? text_.size() : at_ + end + 1;
  std::string_view line = rest.substr(0, end);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// Header lines up to an empty line, which is taken, or to a mark or the end, which are not.
template <typename Visit>
bool Reader::ReadHeaders(Visit&& visit) {
  while (!AtEnd() && !AtAnyMark()) {
    std::string_view line = TakeLine();
    if (line.empty()) return true;
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || HasControlCharacter(line)) return false;
    const HeaderField field{Trimmed(line.substr(0, colon)), Trimmed(line.substr(colon + 1))};
    if (field.name.empty() || !visit(field)) return false;
  }
  return true;
}

// A Content-ID among them is of no use: it is not given back (recorded), and nothing refers to it.
bool Reader::ReadMimeHeaders(std::string_view* content_type) {
  return ReadHeaders([content_type](const HeaderField& field) {
    if (SameHeaderName(field.name, "Content-Type")) *content_type = field.value;
    return true;
  });
}

bool Reader::ReadRequestLine(HttpRequest* part) {
  std::string_view line = TakeLine();
  if (HasControlCharacter(line)) return false;
  const size_t method_end = line.find(' ');
  const size_t version = line.rfind(" HTTP/1.");
  if (method_end == std::string_view::npos || version == std::string_view::npos || version <= method_end) {
    return false;
  }
  part->method_text = line.substr(0, method_end);
  part->method = MethodFromName(part->method_text);
  part->target = Trimmed(line.substr(method_end, version - method_end));
  return true;
}

// Over the JSON object that begins here; false at the place where it can be none. Outside of strings no
// JSON has two dashes, inside none has a line end: the scan can not run over a delimiter.
bool Reader::SkipJsonObject() {
  size_t depth = 0;
  bool in_string = false;
  for (; at_ < text_.size(); ++at_) {
    const char c = text_[at_];
    if (in_string) {
      if (const size_t plain = PlainBytes(Rest()); plain > 0) {
        at_ += plain - 1;
        continue;
      }
      if (c == '\\') {
        if (++at_ >= text_.size() || static_cast<unsigned char>(text_[at_]) < 0x20) return false;
      } else if (c == '"') {
        in_string = false;
      } else if (static_cast<unsigned char>(c) < 0x20) {
        return false;
      }
      continue;
    }
    if (c == '"') in_string = true;
    if (c == '-' && text_.substr(at_).starts_with("--")) return false;
    if (c == '{') ++depth;
    if (c == '}' && --depth == 0) {
      ++at_;
      return true;
    }
  }
  return false;
}

std::string_view Reader::ReadBody() {
  SkipBlanks();
  const size_t begin = at_;
  if (AtEnd()) return {};
  if (text_[at_] == '{' && SkipJsonObject()) {
    const size_t end = at_;
    SkipBlanks();
    if (AtEnd() || AtAnyMark()) return text_.substr(begin, end - begin);
  }
  SkipToMark();
  return Trimmed(text_.substr(begin, at_ - begin));
}

bool Reader::ReadHead(HttpRequest* head) {
  SkipBlanks();
  const size_t begin = at_;
  head_ = {};
  if (AtEnd() || AtAnyMark() || !ReadRequestLine(head)) return false;
  head->headers.reserve(kUsualHeaders);
  head->has_length = true;  // The body ends where the part does.
  const bool read = ReadHeaders([head](const HeaderField& field) {
    if (head->headers.size() == kBatchPartHeadersMax) return false;
    head->headers.push_back(field);
    return true;
  });
  if (!read) return false;
  if (EndsWithEmptyLine(text_.substr(begin, at_ - begin))) head_ = text_.substr(begin, at_ - begin);
  return true;
}

// The same text in the same place is read as it was before: a mark within it would have ended it there too.
bool Reader::SkipRepeatedMimeHeaders() {
  if (mime_headers_.empty() || !Rest().starts_with(mime_headers_)) return false;
  at_ += mime_headers_.size();
  return true;
}

// Over the head of a part when it is that of the part before; false when it is another one.
bool Reader::RepeatsHead() {
  if (head_.empty()) return false;
  SkipBlanks();
  if (!Rest().starts_with(head_)) return false;
  at_ += head_.size();
  return true;
}

// One part, behind its MIME headers.
bool Reader::ReadPart(Batch* batch) {
  if (!RepeatsHead() && !ReadHead(&batch->heads.emplace_back())) return false;
  batch->parts.push_back({batch->heads.size() - 1, ReadBody()});
  return true;
}

// The parts of the changeset; ends behind its closing mark or before a mark of the batch.
bool Reader::ReadChangeset(Batch* batch) {
  if (!SkipToMark()) return false;
  while (MarkHere(outer_) == Mark::kNone) {
    const bool closes = MarkHere(inner_) == Mark::kClose;
    if (MarkHere(inner_) == Mark::kNone) return false;
    SkipMark(inner_);
    if (closes) return true;
    SkipBlanks();
    if (AtAnyMark()) continue;  // A mark without dashes that means the end, or an empty part.
    if (batch->parts.size() == kTransactionOperationsMax) {
      batch->too_many_parts = true;
      return true;
    }
    if (!SkipRepeatedMimeHeaders()) {
      const size_t begin = at_;
      std::string_view type;
      if (!ReadMimeHeaders(&type)) return false;
      const std::string_view read = text_.substr(begin, at_ - begin);
      mime_headers_ = EndsWithEmptyLine(read) ? read : std::string_view();
    }
    if (!ReadPart(batch)) return false;
    if (!AtAnyMark()) return false;  // It breaks off.
  }
  return true;
}

// True when the batch ends here: at its closing mark, at a mark without dashes and nothing behind, or at
// the end of the text.
bool Reader::EndsHere() {
  if (!SkipToMark()) return true;
  if (MarkHere(outer_) == Mark::kClose) return true;
  if (MarkHere(outer_) == Mark::kNone) return false;
  SkipMark(outer_);
  SkipBlanks();
  return AtEnd() || MarkHere(outer_) == Mark::kClose;
}

bool Reader::Read(Batch* batch) {
  if (!SkipToMark() || MarkHere(outer_) != Mark::kDelimiter) return false;
  SkipMark(outer_);
  SkipBlanks();
  std::string_view type;
  if (!ReadMimeHeaders(&type)) return false;
  if (std::optional<std::string_view> boundary = BoundaryOf(type)) {
    if (*boundary == outer_) return false;
    inner_ = *boundary;
    if (!ReadChangeset(batch) || batch->parts.empty()) return false;
    if (batch->too_many_parts) return true;
    inner_ = {};
    return EndsHere();
  }
  batch->query = true;
  return ReadPart(batch) && EndsHere();
}

}  // namespace

std::optional<std::string_view> BoundaryOf(std::string_view content_type) {
  if (!SameHeaderName(MediaTypeName(content_type), "multipart/mixed")) return std::nullopt;
  std::optional<std::string_view> boundary = MediaTypeParameter(content_type, "boundary");
  if (!boundary || boundary->empty() || boundary->size() > kBoundarySizeMax) return std::nullopt;
  if (HasControlCharacter(*boundary)) return std::nullopt;
  return boundary;
}

std::optional<ServiceError> ReadBatch(std::string_view content_type, std::string_view body, Batch* batch) {
  std::optional<std::string_view> boundary = BoundaryOf(content_type);
  if (!boundary) return NoBatch();
  Reader reader(body, *boundary);
  if (!reader.Read(batch) || batch->parts.empty()) return NoBatch();
  return std::nullopt;
}

}  // namespace partita::http
