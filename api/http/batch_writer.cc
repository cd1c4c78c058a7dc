#include "api/http/batch_writer.h"

#include "api/http/response_writer.h"
#include "engine/base/assert.h"

namespace partita::http {

BatchWriter::BatchWriter(std::string* body, std::string_view batch_guid, std::string_view changeset_guid)
    : body_(body) {
  batch_boundary_.append("batchresponse_").append(batch_guid);
  changeset_boundary_.append("changesetresponse_").append(changeset_guid);
}

void BatchWriter::BeginChangeset() {
  PARTITA_ASSERT(!in_changeset_);
  in_changeset_ = true;
  body_->append("--").append(batch_boundary_);
  body_->append("\r\nContent-Type: multipart/mixed; boundary=").append(changeset_boundary_);
  body_->append("\r\n\r\n");
}

// A part without body ends with two empty lines: one closes the headers, one precedes the boundary.
void BatchWriter::AddPart(int status, std::string_view headers, std::string_view json) {
  body_->append("--").append(in_changeset_ ? changeset_boundary_ : batch_boundary_);
  body_->append("\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nHTTP/1.1 ");
  body_->append(std::to_string(status)).append(" ").append(StatusReason(status)).append("\r\n");
  body_->append(headers).append("\r\n").append(json).append("\r\n");
}

void BatchWriter::End() {
  if (in_changeset_) body_->append("--").append(changeset_boundary_).append("--\r\n");
  body_->append("--").append(batch_boundary_).append("--\r\n");
}

std::string BatchWriter::content_type() const { return "multipart/mixed; boundary=" + batch_boundary_; }

}  // namespace partita::http
