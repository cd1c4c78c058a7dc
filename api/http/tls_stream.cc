#include "api/http/tls_stream.h"

#include <openssl/buffer.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>

#include "engine/base/assert.h"
#include "engine/io/offload.h"

namespace partita::http {

namespace {

constexpr size_t kRecordBytes = 16 << 10;
// Encrypted at once; the buffer that holds them is not kept for idle connections.
constexpr size_t kSendBytes = 4 * kRecordBytes;

}  // namespace

TlsStream::TlsStream(Connection& connection, const std::shared_ptr<SSL_CTX>& context)
    : connection_(connection), ssl_(SSL_new(context.get()), SSL_free) {
  PARTITA_ASSERT(ssl_ != nullptr);  // Fails for want of memory only.
  SSL_set_bio(ssl_.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
  SSL_set_accept_state(ssl_.get());
}

TlsStream::~TlsStream() { connection_.Recycle(&cipher_); }

Status TlsStream::Failure(std::string_view what) const {
  std::string message(what);
  message.append(" with ").append(connection_.peer_host()).append(": ").append(reason_);
  return Status::InvalidArgument(std::move(message));
}

Task<Status> TlsStream::Handshake() {
  // Who has said nothing yet is idle, and a stop does not wait for him.
  PARTITA_CO_TRY(co_await connection_.Readable());
  while (true) {
    PARTITA_CO_ASSIGN(const size_t size, co_await ReceiveCipher());
    if (size == 0) {
      reason_ = "the peer went";
      co_return Failure("handshake");
    }
    auto step = [this] { return TryHandshake(); };
    Offload offload(step);
    const Progress progress = co_await offload;
    // Also after a failure: the peer should learn what was wrong.
    Status sent = co_await SendCipher();
    if (progress == Progress::kFailed) co_return Failure("handshake");
    if (!sent.ok() || progress == Progress::kDone) co_return sent;
  }
}

// On an I/O thread. OpenSSL's reasons are kept per thread, so they are taken here.
TlsStream::Progress TlsStream::TryHandshake() {
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_.get());
  if (result == 1) return Progress::kDone;
  if (SSL_get_error(ssl_.get(), result) == SSL_ERROR_WANT_READ) return Progress::kWantsInput;
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  reason_ = reason == nullptr ? "the peer broke off" : reason;
  ERR_clear_error();
  return Progress::kFailed;
}

Task<Result<size_t>> TlsStream::ReceiveCipher() {
  PARTITA_CO_ASSIGN(const size_t size, co_await connection_.Receive(&cipher_));
  if (size > 0) BIO_write(SSL_get_rbio(ssl_.get()), cipher_.data(), static_cast<int>(cipher_.size()));
  cipher_.clear();
  connection_.Recycle(&cipher_);
  co_return size;
}

Task<Status> TlsStream::SendCipher() {
  BIO* out = SSL_get_wbio(ssl_.get());
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(out, &bytes);
  if (size <= 0) co_return Status();
  Status sent = co_await connection_.Send(std::string_view(bytes, static_cast<size_t>(size)));
  if (static_cast<size_t>(size) > 2 * kRecordBytes) {
    SSL_set0_wbio(ssl_.get(), BIO_new(BIO_s_mem()));
  } else {
    (void)BIO_reset(out);
  }
  co_return sent;
}

Task<Status> TlsStream::Readable() {
  if (ended_ || SSL_pending(ssl_.get()) > 0 || BIO_ctrl_pending(SSL_get_rbio(ssl_.get())) > 0)
    co_return Status();
  co_return co_await connection_.Readable();
}

// OpenSSL's buffer keeps the size of the largest piece that ever came, a MiB of a fast sender: nobody counts
// it, and each connection would hold it until its end.
void TlsStream::ShrinkInput() {
  BIO* in = SSL_get_rbio(ssl_.get());
  BUF_MEM* memory = nullptr;
  BIO_get_mem_ptr(in, &memory);
  if (memory->max <= 2 * kRecordBytes) return;
  char* rest = nullptr;
  const long size = BIO_get_mem_data(in, &rest);
  BIO* smaller = BIO_new(BIO_s_mem());
  if (size > 0) BIO_write(smaller, rest, static_cast<int>(size));
  SSL_set0_rbio(ssl_.get(), smaller);
}

// Takes all that is there.
TlsStream::Progress TlsStream::Decrypt(std::string* in, size_t* size) {
  static thread_local char plain[kRecordBytes];
  ERR_clear_error();
  while (true) {
    const int result = SSL_read(ssl_.get(), plain, sizeof plain);
    if (result > 0) {
      in->append(plain, static_cast<size_t>(result));
      *size += static_cast<size_t>(result);
      continue;
    }
    const int error = SSL_get_error(ssl_.get(), result);
    if (error == SSL_ERROR_WANT_READ) {
      ShrinkInput();
      return Progress::kWantsInput;
    }
    if (error == SSL_ERROR_ZERO_RETURN) return Progress::kDone;
    const char* reason = ERR_reason_error_string(ERR_peek_last_error());
    reason_ = reason == nullptr ? "the stream is broken" : reason;
    ERR_clear_error();
    return Progress::kFailed;
  }
}

Task<Result<size_t>> TlsStream::Receive(std::string* in) {
  size_t size = 0;
  while (!ended_) {
    const Progress progress = Decrypt(in, &size);
    if (progress != Progress::kWantsInput) ended_ = true;
    PARTITA_CO_TRY(co_await SendCipher());  // Alerts, or new keys agreed.
    if (size > 0) co_return size;
    if (progress == Progress::kFailed) co_return Failure("TLS");
    if (progress == Progress::kDone) co_return size_t{0};
    PARTITA_CO_ASSIGN(const size_t received, co_await ReceiveCipher());
    ended_ = received == 0;
  }
  co_return size_t{0};
}

Task<Status> TlsStream::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    // Written pieces end up in memory, so they are whole.
    for (size_t queued = 0; !bytes.empty() && queued < kSendBytes;) {
      ERR_clear_error();
      const int piece = static_cast<int>(std::min(bytes.size(), kRecordBytes));
      const int result = SSL_write(ssl_.get(), bytes.data(), piece);
      if (result <= 0) {
        reason_ = "the stream is broken";
        co_return Failure("TLS");
      }
      queued += static_cast<size_t>(result);
      bytes.remove_prefix(static_cast<size_t>(result));
    }
    PARTITA_CO_TRY(co_await SendCipher());
  }
  co_return Status();
}

Task<void> TlsStream::EndSending() {
  ERR_clear_error();
  if (SSL_shutdown(ssl_.get()) < 0) ERR_clear_error();
  Status farewell = co_await SendCipher();
  (void)farewell;  // Nothing is left to be done with it.
  ended_ = true;
  connection_.EndSending();
}

}  // namespace partita::http
