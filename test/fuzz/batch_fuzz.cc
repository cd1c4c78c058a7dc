// The body of a $batch under the reader: no text harms it, what it gives lies within the text and its
// bounds, and a part's body is never read twice.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "api/http/batch_reader.h"
#include "api/limits.h"
#include "engine/base/assert.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using partita::http::Batch;
  using partita::http::HttpRequest;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // The first line is the Content-Type; without one the boundary is `b`, as in the corpus's bodies.
  std::string_view type = text.substr(0, text.find('\n'));
  std::string_view body = text.substr(type.size());
  if (!partita::http::BoundaryOf(type)) {
    type = "multipart/mixed; boundary=b";
    body = text;
  }
  Batch batch;
  if (partita::http::ReadBatch(type, body, &batch)) return 0;
  PARTITA_ASSERT(!batch.parts.empty());
  PARTITA_ASSERT(batch.parts.size() <= partita::kTransactionOperationsMax);
  PARTITA_ASSERT(!batch.query || batch.parts.size() == 1);
  const char* read_to = body.data();
  for (size_t i = 0; i < batch.parts.size(); ++i) {
    PARTITA_ASSERT(batch.parts[i].head < batch.heads.size());
    const HttpRequest& part = batch.RequestOf(i);
    PARTITA_ASSERT(part.headers.size() <= partita::http::kBatchPartHeadersMax);
    PARTITA_ASSERT(part.has_body == !part.body.empty());
    for (const auto& field : part.headers) {
      PARTITA_ASSERT(field.value.find_first_of("\r\n") == std::string_view::npos);
      PARTITA_ASSERT(!field.name.empty());
    }
    if (part.body.empty()) continue;
    PARTITA_ASSERT(part.body.data() >= read_to);
    read_to = part.body.data() + part.body.size();
    PARTITA_ASSERT(read_to <= body.data() + body.size());
  }
  return 0;
}
