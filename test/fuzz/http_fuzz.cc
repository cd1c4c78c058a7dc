#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "api/http/http_parser.h"

// Bytes of a client, fed whole and in pieces (sizes drawn from the bytes themselves): the parser neither
// crashes nor reads past what it was given, and makes of the pieces what it makes of the whole.

namespace {

using partita::http::HttpLimits;
using partita::http::HttpParser;

void Require(bool condition) {
  if (!condition) std::abort();
}

struct Seen {
  std::string text;
  bool refused = false;
};

void Note(HttpParser& parser, std::string_view in, Seen* seen) {
  const partita::http::HttpRequest& request = parser.request();
  Require(parser.consumed() <= in.size() && parser.consumed() > 0);
  seen->text.append(request.method_text).append(" ").append(request.target);
  for (const auto& field : request.headers) seen->text.append(field.name).append("=").append(field.value);
  seen->text.append(request.body).append(parser.keep_alive() ? "\nkeep\n" : "\nclose\n");
}

// Each look is at a copy of just those bytes, so that a sanitizer sees any step beyond them.
Seen Feed(std::string_view stream, const HttpLimits& limits, size_t seed) {
  HttpParser parser(limits);
  Seen seen;
  std::string rest;
  for (size_t end = 0; end < stream.size();) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    const size_t piece = std::min(stream.size() - end, 1 + (seed >> 33) % 97);
    rest.append(stream.substr(end, piece));
    end += piece;
    while (!rest.empty()) {
      const std::vector<char> copy(rest.begin(), rest.end());
      const std::string_view in(copy.data(), copy.size());
      const HttpParser::Step step = parser.Parse(in);
      if (step == HttpParser::Step::kRefused) {
        Require(parser.refusal().status >= 400 && !parser.refusal().reason.empty());
        seen.refused = true;
        return seen;
      }
      if (step != HttpParser::Step::kRequest) {
        if ((seed >> 20) % 2 == 0) parser.DropJoined(&rest);
        break;
      }
      Note(parser, in, &seen);
      // The connection ends after it; what follows may look different in pieces.
      if (parser.request().body_too_large || seen.text.size() > 100'000) return seen;
      rest.erase(0, parser.consumed());
      parser.Reset();
    }
  }
  return seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view stream(reinterpret_cast<const char*>(data), size);
  HttpLimits limits;
  limits.head_bytes = 600;
  limits.target_bytes = 200;
  limits.fields = 8;
  limits.body_bytes = 1'000;
  HttpParser parser(limits);
  Seen whole;
  // Whole: one look a request.
  for (size_t begin = 0; begin < stream.size();) {
    const std::vector<char> copy(stream.begin() + begin, stream.end());
    const HttpParser::Step step = parser.Parse({copy.data(), copy.size()});
    whole.refused = step == HttpParser::Step::kRefused;
    if (step != HttpParser::Step::kRequest) break;
    Note(parser, {copy.data(), copy.size()}, &whole);
    if (parser.request().body_too_large || whole.text.size() > 100'000) break;
    begin += parser.consumed();
    parser.Reset();
  }
  const Seen pieces = Feed(stream, limits, 2 + size + (size > 0 ? data[size / 2] : 0));
  Require(whole.text == pieces.text);
  Require(whole.refused == pieces.refused);
  return 0;
}
