#pragma once
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "api/http/http_message.h"
#include "api/http/service_error.h"

namespace partita::http {

// The request inside one part of a batch. Views into the body of the batch.
struct BatchPart {
  Method method = Method::kOther;
  std::string_view method_text;
  // Path, and maybe '?' and query, as sent; scheme and host of an absolute URL are cut off, which may leave
  // nothing. Begins with '/' otherwise.
  std::string_view target;
  std::vector<HeaderField> headers;  // Of the inner request.
  // From the MIME headers or the inner ones; empty when there is none.
  std::string_view content_id;
  // The JSON of the part, without white space around it; more of the batch, or the 64 bytes that follow
  // its body, can be read behind it.
  std::string_view body;

  // The first field of this name, ignoring case; nothing when there is none.
  std::optional<std::string_view> Header(std::string_view name) const;
  size_t HeaderCount(std::string_view name) const;
};

// A batch, not yet understood: what the operations are is for who runs them.
struct Batch {
  // One query stands directly in the batch; else `parts` are those of the one changeset.
  bool query = false;
  // The changeset holds more than kTransactionOperationsMax parts; `parts` are then the first so many.
  bool too_many_parts = false;
  std::vector<BatchPart> parts;  // Never empty.
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
