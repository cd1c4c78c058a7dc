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
  // A part: the request in `heads` with a body of its own, which is the JSON of the part, without white space
  // around it; behind it more of the batch can be read, or the 64 bytes that follow its body.
  struct Part {
    size_t head = 0;
    std::string_view body;
  };
  std::vector<Part> parts;  // Never none.
  // Request line and headers, views into the batch; `target` is as sent, which may be absolute and of another
  // host. Parts that follow each other with the same ones, letter by letter, share them, as clients write
  // them that insert many entities. In the order of their first parts, none without.
  std::vector<HttpRequest> heads;

  bool IsFirstOfHead(size_t part) const { return part == 0 || parts[part].head != parts[part - 1].head; }
  // The head of a part with that part's body. REQUIRES: part < parts.size(). Until the next call of it.
  HttpRequest& RequestOf(size_t part) {
    HttpRequest& request = heads[parts[part].head];
    request.body = parts[part].body;
    request.has_body = !request.body.empty();
    return request;
  }
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
