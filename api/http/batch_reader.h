#pragma once
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "api/http/http_message.h"
#include "api/http/service_error.h"

namespace partita::http {

// A batch, not yet understood: what the operations are is for who runs them.
struct Batch {
  // One query stands directly in the batch; else `parts` are those of the one changeset.
  bool query = false;
  // The changeset holds more than kTransactionOperationsMax parts; `parts` are then the first so many.
  bool too_many_parts = false;
  // The requests inside the parts, never none: views into the batch. `target` is as sent, which may be
  // absolute and of another host. `body` is the JSON of the part, without white space around it; behind it
  // more of the batch can be read, or the 64 bytes that follow its body.
  std::vector<HttpRequest> parts;
  // Of the same index: request line and headers are, letter by letter, those of the part before, as clients
  // write them that insert many entities. So what was read from them there holds here.
  std::vector<bool> repeats;
};

// Reads the body of a $batch (spec 12.2), whose Content-Type names the boundary, as tolerantly as clients
// need it: bare LF, no line end between JSON and boundary, no empty line after the last header, several
// of them, no closing dashes, lower-case MIME headers, preambles. Strict where a guess could apply what
// nobody asked for: a changeset that just breaks off is refused.
//
// InvalidInput for what is no batch: it is then refused as a whole. Time is linear in the body, memory is
// bounded: at most kTransactionOperationsMax parts with kBatchPartHeadersMax headers each.
std::optional<ServiceError> ReadBatch(std::string_view content_type, std::string_view body, Batch* batch);

inline constexpr size_t kBatchPartHeadersMax = 64;

// The boundary parameter of a `multipart/mixed` media type, without quotes; nothing when it is another type
// or names none of 1 to 70 characters without control characters (RFC 2046 allows no more).
std::optional<std::string_view> BoundaryOf(std::string_view content_type);

}  // namespace partita::http
