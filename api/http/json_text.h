#pragma once
#include <string>
#include <string_view>

#include "api/http/text_sink.h"

namespace partita::http {

// Text as it stands in answers. The input may be UTF-8 or ordered text (user_key.h); UTF-8 comes out.

// A JSON string with its quotes.
void WriteJsonString(TextSink* sink, std::string_view text);
void AppendJsonString(std::string* out, std::string_view text);

// A key in a URL: quotes doubled, unreserved characters (RFC 3986) as they are, the rest as %XX.
void WriteUrlKey(TextSink* sink, std::string_view key);
void AppendUrlKey(std::string* out, std::string_view key);

// Character data of XML: `<`, `>`, `&` and `"` as references, characters that XML cannot hold as U+FFFD.
void AppendXmlText(std::string* out, std::string_view text);

}  // namespace partita::http
