#pragma once
#include <string>
#include <string_view>

namespace partita::http {

// Writes the body of a batch's answer (spec 12.3), whose exact bytes clients depend on: some split it at
// "--changesetresponse_", match "ETag: " by its case, and take any text in braces for an error document.
//
//   BatchWriter writer(&response->body, batch_guid, changeset_guid);
//   writer.BeginChangeset();
//   writer.AddPart(204, "ETag: ...\r\n", "");
//   writer.End();
//   response->AddHeader("Content-Type", writer.content_type());
class BatchWriter {
 public:
  // `body` must outlive the writer. The GUIDs name the boundaries.
  BatchWriter(std::string* body, std::string_view batch_guid, std::string_view changeset_guid);

  // Before the parts of a changeset; left out before the one part of a query.
  void BeginChangeset();
  // `headers` are finished lines, each ending with CRLF; `json` is one line, or empty.
  void AddPart(int status, std::string_view headers, std::string_view json);
  void End();

  // Of the whole answer.
  std::string content_type() const;

 private:
  std::string* body_;
  std::string batch_boundary_;
  std::string changeset_boundary_;
  bool in_changeset_ = false;
};

}  // namespace partita::http
