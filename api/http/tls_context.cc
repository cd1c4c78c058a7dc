#include "api/http/tls_context.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace partita::http {

namespace {

// The newest reason that OpenSSL has on this thread; forgets them all.
std::string OpensslReason() {
  const unsigned long error = ERR_peek_last_error();
  const char* reason = error == 0 ? nullptr : ERR_reason_error_string(error);
  std::string text = reason == nullptr ? "unknown reason" : reason;
  ERR_clear_error();
  return text;
}

Status Readable(const char* what, const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "r");
  if (file != nullptr) {
    std::fclose(file);
    return Status();
  }
  return Status::InvalidArgument(std::string(what) + " file " + path +
                                 " cannot be read: " + std::strerror(errno));
}

Status Bad(const char* what, const std::string& path) {
  return Status::InvalidArgument(std::string(what) + " file " + path + ": " + OpensslReason());
}

// A key with a password would be asked for at the terminal: refuse it instead.
int NoPassword(char*, int, int, void*) { return -1; }

// HTTP/1.1 is all that is spoken; a client that offers other protocols only is told so.
int ChooseProtocol(SSL*, const unsigned char** out, unsigned char* out_size, const unsigned char* offered,
                   unsigned int offered_size, void*) {
  static constexpr unsigned char kHttp11[] = "\x08http/1.1";
  unsigned char* chosen = nullptr;
  if (SSL_select_next_proto(&chosen, out_size, kHttp11, sizeof kHttp11 - 1, offered, offered_size) !=
      OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

Result<std::shared_ptr<SSL_CTX>> Load(const TlsContext::Files& files) {
  PARTITA_TRY(Readable("certificate", files.certificate));
  PARTITA_TRY(Readable("key", files.key));
  ERR_clear_error();
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  if (context == nullptr) return Status::ResourceExhausted("TLS cannot be set up: " + OpensslReason());
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                         SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
  // Idle connections hold no record buffers; sessions resume by tickets, without a cache here.
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_alpn_select_cb(context.get(), &ChooseProtocol, nullptr);
  SSL_CTX_set_default_passwd_cb(context.get(), &NoPassword);
  if (SSL_CTX_use_certificate_chain_file(context.get(), files.certificate.c_str()) != 1) {
    return Bad("certificate", files.certificate);
  }
  if (SSL_CTX_use_PrivateKey_file(context.get(), files.key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return Bad("key", files.key);
  }
  if (SSL_CTX_check_private_key(context.get()) != 1) return Bad("key", files.key);
  return context;
}

}  // namespace

Result<std::unique_ptr<TlsContext>> TlsContext::Open(const Files& files) {
  std::unique_ptr<TlsContext> context(new TlsContext(files));
  PARTITA_ASSIGN(context->current_, context->LoadAnew());
  return context;
}

Result<std::shared_ptr<SSL_CTX>> TlsContext::LoadAnew() const { return Load(files_); }

void TlsContext::Use(std::shared_ptr<SSL_CTX> loaded) {
  std::lock_guard lock(mutex_);
  current_ = std::move(loaded);
}

std::shared_ptr<SSL_CTX> TlsContext::Current() const {
  std::lock_guard lock(mutex_);
  return current_;
}

}  // namespace partita::http
