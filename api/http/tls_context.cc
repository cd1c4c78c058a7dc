#include "api/http/tls_context.h"

#include <openssl/err.h>
#include <openssl/pemerr.h>
#include <openssl/ssl.h>
#include <openssl/sslerr.h>
#include <openssl/x509err.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

namespace partita::http {

namespace {

struct KnownReason {
  unsigned long error;
  const char* text;
};
constexpr const char* kHasPassword =
    "it has a password, which nobody is there to type; without one: openssl pkey -in FILE -out NEW";
constexpr const char* kOfAnother = "it does not belong to the certificate";
constexpr const char* kNoPem = "it is no PEM, or not of what is wanted: no line -----BEGIN ...-----";
// The most telling first.
constexpr KnownReason kKnownReasons[] = {
    {ERR_PACK(ERR_LIB_PEM, 0, PEM_R_PROBLEMS_GETTING_PASSWORD), kHasPassword},
    {ERR_PACK(ERR_LIB_PEM, 0, PEM_R_BAD_PASSWORD_READ), kHasPassword},
    {ERR_PACK(ERR_LIB_CRYPTO, 0, ERR_R_INTERRUPTED_OR_CANCELLED), kHasPassword},  // So does NoPassword.
    {ERR_PACK(ERR_LIB_X509, 0, X509_R_KEY_VALUES_MISMATCH), kOfAnother},
    {ERR_PACK(ERR_LIB_X509, 0, X509_R_KEY_TYPE_MISMATCH), kOfAnother},
    {ERR_PACK(ERR_LIB_SSL, 0, SSL_R_NO_CERTIFICATE_ASSIGNED), kOfAnother},
    {ERR_PACK(ERR_LIB_PEM, 0, PEM_R_NO_START_LINE), kNoPem},
    {ERR_PACK(ERR_LIB_OSSL_DECODER, 0, ERR_R_UNSUPPORTED), kNoPem},  // Of a key.
};

// What OpenSSL has on this thread, in words where they are known; else what went wrong first, as what follows
// says no more than where. Which of several it has also depends on what it was used for before. Forgets all
// of it.
std::string OpensslReason() {
  std::vector<unsigned long> errors;
  while (const unsigned long error = ERR_get_error()) errors.push_back(error);
  for (const KnownReason& known : kKnownReasons) {
    for (const unsigned long error : errors) {
      if (ERR_PACK(ERR_GET_LIB(error), 0, ERR_GET_REASON(error)) == known.error) return known.text;
    }
  }
  const char* reason = errors.empty() ? nullptr : ERR_reason_error_string(errors.front());
  return reason == nullptr ? "unknown reason" : reason;
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

std::string TextOf(const ASN1_TIME* time) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> out(BIO_new(BIO_s_mem()), BIO_free);
  if (out == nullptr || ASN1_TIME_print(out.get(), time) != 1) return "an unknown time";
  char* text = nullptr;
  const long size = BIO_get_mem_data(out.get(), &text);
  return std::string(text, static_cast<size_t>(size));
}

}  // namespace

Result<std::shared_ptr<SSL_CTX>> TlsContext::Load(const Files& files) {
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

Result<std::unique_ptr<TlsContext>> TlsContext::Open(const Files& files) {
  PARTITA_ASSIGN(std::shared_ptr<SSL_CTX> loaded, Load(files));
  return std::unique_ptr<TlsContext>(new TlsContext(std::move(loaded)));
}

std::string TlsContext::ValidityNote() const {
  constexpr int kSoonDays = 14;
  const std::shared_ptr<SSL_CTX> context = Current();
  const X509* certificate = SSL_CTX_get0_certificate(context.get());
  const ASN1_TIME* begin = X509_get0_notBefore(certificate);
  const ASN1_TIME* end = X509_get0_notAfter(certificate);
  if (X509_cmp_current_time(begin) > 0) {
    return "the certificate is valid from " + TextOf(begin) + " on: until then clients refuse it";
  }
  if (X509_cmp_current_time(end) < 0) {
    return "the certificate expired on " + TextOf(end) + ": clients refuse it";
  }
  int days = 0, seconds = 0;
  if (ASN1_TIME_diff(&days, &seconds, nullptr, end) == 1 && days < kSoonDays) {
    return "the certificate expires on " + TextOf(end);
  }
  return "";
}

void TlsContext::Use(std::shared_ptr<SSL_CTX> loaded) {
  std::lock_guard lock(mutex_);
  current_ = std::move(loaded);
}

std::shared_ptr<SSL_CTX> TlsContext::Current() const {
  std::lock_guard lock(mutex_);
  return current_;
}

}  // namespace partita::http
