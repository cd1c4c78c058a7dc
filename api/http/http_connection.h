#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "api/http/server_core.h"
#include "api/http/tls_stream.h"
#include "engine/base/task.h"
#include "engine/io/connection.h"

namespace partita::http {

// Serves one connection from its opening to its end, on its worker:
//
//   1. Idle: waits, holding next to nothing, until bytes come (or idle_ms passed: it ends silently).
//   2. Borrows RequestBuffers and answers requests as long as whole ones are there; the answers of a pipeline
//      are gathered and sent at once, but for those behind which a handler has to wait. Bytes of an
//      incomplete one: sends what is gathered, waits for more. Before a large body is received, the handler
//      may refuse it by its headers, and all of its memory is counted: it waits until there is room (a server
//      that holds too much slows its clients), and is refused when none comes in time. What comes before
//      anybody was asked is counted apart (ServerBudgets::early), and refused where all hold too much of it.
//   3. Everything answered and nothing left over but empty lines: gives them back, goes to 1.
//
// A handler that takes longer than it may is answered for, and the connection lasts until it has ended.
//
// Ends after a request that says so, a refusal, a time-out, or when the server drains. Where unread bytes of
// the peer may be on their way, it stops sending and reads on for a while: closing at once would send a
// reset, which can overtake the answer and destroy it.
class HttpConnection {
 public:
  HttpConnection(HttpServerCore& core, ConnectionHandle connection);
  ~HttpConnection();

  Task<void> Run();

 private:
  enum class After : uint8_t {
    kGoOn,
    kClose,   // Everything the peer sent has been read.
    kLinger,  // The peer may still be sending.
    kDrop,    // Nothing more can be sent.
  };

  // Not inlined: the compiler would put their frames into the caller's, up to Run's, which every idle
  // connection holds (11 KiB instead of half a KiB).
  [[gnu::noinline]] Task<bool> Open();
  [[gnu::noinline]] Task<After> ServeBurst();
  [[gnu::noinline]] Task<After> Answer();
  [[gnu::noinline]] Task<After> AnswerLate(Task<void> handling);
  [[gnu::noinline]] Task<After> AdmitBody(bool asks_first);
  [[gnu::noinline]] Task<bool> WaitForRoom();
  [[gnu::noinline]] Task<After> WaitForMore();
  [[gnu::noinline]] Task<After> RefuseRequest(int status, std::string_view reason,
                                              const HttpRequest* request = nullptr);
  [[gnu::noinline]] Task<After> RefuseEarly();
  [[gnu::noinline]] Task<After> RefuseUnreadable();
  [[gnu::noinline]] Task<After> RefuseSlow();
  [[gnu::noinline]] Task<After> SendLargeAnswer();
  [[gnu::noinline]] Task<After> Flush();
  [[gnu::noinline]] Task<After> FlushLast();
  [[gnu::noinline]] Task<void> End(After after);

  void GatherAnswer(bool keep_alive);
  void AppendHead(const HttpResponse& response, bool keep_alive);
  bool IsLargeAnswer() const;

  [[gnu::noinline]] Task<Status> ReadableTls();
  [[gnu::noinline]] Task<Result<size_t>> ReceiveTls();
  [[gnu::noinline]] Task<Status> SendTls(std::string_view bytes);

  void FillInRequest(HttpRequest* request);
  bool SetBodyDeadline();
  void SetSendDeadline(size_t bytes);
  uint64_t LargeBytesHeld() const;
  uint64_t EarlyBytesHeld() const;
  bool ChargeBuffers();
  bool MayHoldEarly();
  void DropAnswered();
  void CountBytes();

  HttpServerCore& core_;
  ServerLane& lane_;
  ConnectionHandle connection_;
  std::optional<TlsStream> tls_;
  std::unique_ptr<RequestBuffers> buffers_;
  size_t begin_ = 0;               // Of the current request in buffers_->in.
  bool head_deadline_ = false;     // Set for the request whose head is coming.
  uint64_t body_deadline_ns_ = 0;  // Of the body that is coming; 0: none is yet.
  uint64_t arrived_ticks_ = 0;     // When the head was complete; 0: not looked at yet.
  bool admitted_ = false;          // The current request: its body was let in, or its handler works.
  BufferShare share_;              // Of core_.buffers, besides the answer's own.
  BufferShare early_;              // Of core_.budgets.early.
  uint64_t received_ = 0;          // Counted so far.
  uint64_t sent_ = 0;
};

}  // namespace partita::http
