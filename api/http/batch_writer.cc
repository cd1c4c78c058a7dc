#include "api/http/batch_writer.h"

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
  body_->append(std::to_string(status)).append(" ").append(ReasonPhrase(status)).append("\r\n");
  body_->append(headers).append("\r\n").append(json).append("\r\n");
}

void BatchWriter::End() {
  if (in_changeset_) body_->append("--").append(changeset_boundary_).append("--\r\n");
  body_->append("--").append(batch_boundary_).append("--\r\n");
}

std::string BatchWriter::content_type() const { return "multipart/mixed; boundary=" + batch_boundary_; }

std::string_view ReasonPhrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 409:
      return "Conflict";
    case 411:
      return "Length Required";
    case 412:
      return "Precondition Failed";
    case 413:
      return "Request Entity Too Large";
    case 415:
      return "Unsupported Media Type";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    default:
      return "";
  }
}

}  // namespace partita::http
