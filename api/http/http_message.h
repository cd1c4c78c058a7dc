#pragma once
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/http/buffer_budget.h"
#include "engine/base/task.h"

namespace partita::http {

enum class Method : uint8_t { kGet, kHead, kPost, kPut, kDelete, kMerge, kPatch, kOptions, kOther };

// "GET" and so on; "" for kOther.
std::string_view MethodName(Method method);
// Exact spelling, as HTTP wants it; kOther for any other token.
Method MethodFromName(std::string_view name);

struct HeaderField {
  std::string_view name;
  std::string_view value;  // Without white space around it.
};

// Header names are equal ignoring ASCII case.
bool SameHeaderName(std::string_view a, std::string_view b);

// One request, read whole. All views are valid until the answer is complete.
struct HttpRequest {
  Method method = Method::kOther;
  std::string_view method_text;      // As sent: what is signed.
  std::string_view target;           // The request line's, as sent: path, then maybe '?' and query.
  std::vector<HeaderField> headers;  // In the order sent.
  std::string_view body;             // Chunked bodies are joined. 64 readable bytes follow it (simdjson).
  bool has_body = false;             // A Content-Length above 0, or a chunked body.
  bool has_length = false;           // The sender told where the body ends: a Content-Length, or chunks.
                                     // Without, `body` is empty, and a method that needs one is a 411.
  bool body_too_large = false;       // Over the limit: `body` is empty and was not read. The handler words
                                     // the 413; the connection closes after whatever it answers.
  bool secure = false;               // Came over TLS.
  std::string_view remote_address;   // Numeric, without port: "127.0.0.1", "::1".
  bool remote_is_local = false;      // A process of this machine sent it (Connection::peer_is_local).
  uint64_t arrived_ticks = 0;        // When its head was complete: wall clock, 100 ns since 1601-01-01
                                     // UTC. What is judged by time is, at first and at the end, by this.

  // Set as soon as it shows that nobody will read the answer (reset, or cut at a stop), or the peer ends
  // its half while it is answered, as a client does that drops the connection. Null when the request did not
  // come over a connection. A peer that had finished sending before still wants its answer.
  const std::atomic<bool>* peer_gone = nullptr;
  bool PeerIsGone() const { return peer_gone != nullptr && peer_gone->load(std::memory_order_relaxed); }

  // The handler took longer than it may (HttpResponse::due_ms), and its client was told so: what it still
  // fills in is not sent.
  bool answered = false;

  // Where a handler counts an answer that may grow large while it grows (HttpResponse::body_share); null:
  // nobody counts.
  BufferBudget* buffers = nullptr;

  // The first field of this name, ignoring case; nothing when there is none.
  std::optional<std::string_view> Header(std::string_view name) const;
  size_t HeaderCount(std::string_view name) const;
  // Of one that is a list, which may stand in several lines (RFC 9110, 5.3): all of them, joined by commas in
  // *joined where there are more than one.
  std::optional<std::string_view> HeaderList(std::string_view name, std::string* joined) const;
};

// The answer, filled in by a handler. The connection adds the status line, Content-Length, Date, Server
// and what keep-alive needs.
struct HttpResponse {
  // A longer body is sent from where it lies, and counted among the server's buffers: by its handler, or by
  // the connection, which makes a 503 of the answer to a read that finds no room.
  static constexpr size_t kLargeBody = 64 << 10;

  int status = 500;
  std::string headers;  // Finished lines, each "Name: value\r\n".
  std::string body;
  bool omit_body = false;  // For HEAD: Content-Length tells of the body, which is not sent.
  bool close = false;      // Closes the connection after this answer.
  uint32_t due_ms = 0;     // How long the handler may take from its first wait on, when it says so before
                           // that. Then the connection has it word a refusal, which is sent in the place of
                           // this; the handler goes on to its end. 0: as long as it takes.
  BufferShare body_share;  // What its handler has counted of the body's memory. Goes with the body.

  // REQUIRES: neither holds CR or LF.
  void AddHeader(std::string_view name, std::string_view value);
  void Clear();  // Keeps memory, but not that of a large body.
};

// Answers requests. Handle runs on a worker's thread and never blocks it; it may suspend. Thread-safe:
// requests of many connections are handled at once.
class RequestHandler {
 public:
  virtual ~RequestHandler() = default;
  // `response` is empty, with status 500. Both outlive the task.
  virtual Task<void> Handle(const HttpRequest& request, HttpResponse* response) = 0;

  // Asked before a body is received that is large, or that its sender first asks for by `Expect`: whether to
  // refuse `request`, of which all but the body is there, or else answer it without, whatever the body may
  // be. True: `response` is filled in as by Handle, the body is not read, and the connection closes. Nobody
  // has to: by default false.
  virtual bool RefuseBeforeBody(const HttpRequest& request, HttpResponse* response);

  // Words the answer to bytes that are no request, or to one that cannot be taken, or that took too long:
  // `status` is 400, 408, 414, 417, 431, 500 (too long), 501, 503 or 505, `reason` a sentence for a person.
  // `request` has no target where none was understood, or its bytes have moved: then it only tells who sent
  // it, and when. Of any other the body may be missing. `response` is empty. The connection closes after it,
  // but for an answer that was too large. By default the sentence as plain text.
  virtual void Refuse(int status, std::string_view reason, const HttpRequest& request,
                      HttpResponse* response);
};

}  // namespace partita::http
