#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "engine/base/result.h"
#include "engine/base/task.h"
#include "engine/io/connection.h"

struct ssl_st;
struct ssl_ctx_st;

namespace partita::http {

// TLS over a connection: OpenSSL between two memory buffers, the connection's bytes on one side.
//
// On the connection's worker; the handshake's arithmetic, which takes a large part of a millisecond, on
// an I/O thread of it. Deadlines are the connection's. Outlived by `connection`.
class TlsStream {
 public:
  // What Send holds at most while it goes on.
  static constexpr size_t kSendMemory = 96 << 10;

  TlsStream(Connection& connection, const std::shared_ptr<ssl_ctx_st>& context);
  ~TlsStream();
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  // To be awaited first. kInvalidArgument: the peer does not speak TLS, or none that both know; what the
  // protocol has to say about it has been sent. Else as Connection: a peer that says nothing is idle
  // (EndWhenIdle).
  Task<Status> Handshake();

  // As Connection::Readable. May return early, with only a part of a record there.
  Task<Status> Readable();
  // As Connection's. An end without TLS's own farewell is an end: HTTP knows itself whether it has all.
  Task<Result<size_t>> Receive(std::string* in);
  Task<Status> Send(std::string_view bytes);
  // Says farewell. The connection can receive no more.
  Task<void> EndSending();

 private:
  enum class Progress : uint8_t { kDone, kWantsInput, kFailed };
  Progress TryHandshake();
  Progress Decrypt(std::string* in, size_t* size);
  void ShrinkInput();
  Task<Result<size_t>> ReceiveCipher();
  Task<Status> SendCipher();
  Status Failure(std::string_view what) const;

  Connection& connection_;
  std::unique_ptr<ssl_st, void (*)(ssl_st*)> ssl_;
  std::string cipher_;  // Just received; empty while idle.
  std::string reason_;
  bool ended_ = false;
};

}  // namespace partita::http
