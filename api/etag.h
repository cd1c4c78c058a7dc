#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/ids.h"

namespace partita {

// An ETag is the entity's version as text:
//
//   W/"datetime'2025-01-15T10%3A20%3A30.1234567Z'"
//
// `:` stands as %3A; trailing zeros of the fraction are left out, as in Timestamp. Clients treat it as
// opaque; two tags are equal when their bytes are.

// Of versions above kDateTimeTicksMax, which only damaged bytes say, the tag is that of the highest.
std::string FormatEtag(Version version);
// The same to memory of at least kEtagTextMax bytes; returns the end of what was written.
inline constexpr size_t kEtagTextMax = 48;
char* WriteEtag(char* to, Version version);

// What the text of an If-Match can be.
enum class EtagForm : uint8_t {
  kMalformed,  // Neither of the others: refused as such (400), whatever the entity's state.
  kAny,        // `*`
  kVersion,    // A tag that this store writes: `version` says which state it means.
  kForeign,    // A well-formed weak tag that this store never wrote: equals no entity's (412).
};

struct ParsedEtag {
  EtagForm form = EtagForm::kMalformed;
  Version version;  // Set when form is kVersion.
};

// White space around the text is ignored. Well-formed is `*` or one `W/"..."` whose text between the
// quotes holds no quote and no control character; a strong tag, bare text, a list are malformed. A tag
// that decodes but is not spelled exactly as FormatEtag spells it (`:` unescaped, a trailing zero) is
// kForeign, because tags compare as bytes.
ParsedEtag ParseEtag(std::string_view text);

}  // namespace partita
