#pragma once
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <cstdio>
#include <string>
#include <string_view>

#include "test/support/socket_client.h"

namespace partita::http {

// A key and a certificate signed by it, as two files of a directory: server.crt, server.key.
class TestCertificate {
 public:
  // Valid from `from` to `until` seconds from now.
  TestCertificate(const std::string& directory, const std::string& name, long from = -60,
                  long until = 30 * 24 * 3600)
      : certificate_path_(directory + "/server.crt"), key_path_(directory + "/server.key") {
    EVP_PKEY* key = EVP_EC_gen("P-256");
    X509* certificate = X509_new();
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), from);
    X509_gmtime_adj(X509_getm_notAfter(certificate), until);
    X509_set_pubkey(certificate, key);
    X509_NAME* subject = X509_get_subject_name(certificate);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
    X509_set_issuer_name(certificate, subject);
    X509_sign(certificate, key, EVP_sha256());
    if (FILE* file = std::fopen(key_path_.c_str(), "w")) {
      PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr);
      std::fclose(file);
    }
    if (FILE* file = std::fopen(certificate_path_.c_str(), "w")) {
      PEM_write_X509(file, certificate);
      std::fclose(file);
    }
    X509_free(certificate);
    EVP_PKEY_free(key);
  }
  const std::string& certificate_path() const { return certificate_path_; }
  const std::string& key_path() const { return key_path_; }

 private:
  std::string certificate_path_;
  std::string key_path_;
};

// A client that speaks one version of TLS and trusts anybody.
class TlsClient {
 public:
  TlsClient(SocketClient socket, int version) : socket_(std::move(socket)) {
    context_ = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_min_proto_version(context_, version);
    SSL_CTX_set_max_proto_version(context_, version);
    SSL_CTX_set_security_level(context_, 0);
    ssl_ = SSL_new(context_);
    SSL_set_fd(ssl_, socket_.descriptor());
    shaken_ = Repeat([this] { return SSL_connect(ssl_); }) == 1;
    if (!shaken_) error_ = std::to_string(ERR_peek_last_error());
    ERR_clear_error();
  }
  ~TlsClient() {
    SSL_free(ssl_);
    SSL_CTX_free(context_);
  }
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;

  bool shaken() const { return shaken_; }
  const std::string& error() const { return error_; }
  std::string peer_name() const {
    X509* certificate = SSL_get1_peer_certificate(ssl_);
    char name[64] = "";
    if (certificate != nullptr) {
      X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name, sizeof name);
      X509_free(certificate);
    }
    return name;
  }
  bool Send(std::string_view bytes) {
    const int size = static_cast<int>(bytes.size());
    return Repeat([&] { return SSL_write(ssl_, bytes.data(), size); }) == size;
  }
  // Until what came ends with an empty line and `end`, or nothing comes any more.
  std::string ReceiveUntilEnd(std::string_view end) {
    std::string bytes;
    char piece[16384];
    while (bytes.size() < end.size() + 4 || !bytes.ends_with(end) ||
           bytes.find("\r\n\r\n") != bytes.size() - end.size() - 4) {
      const int size = Repeat([&] { return SSL_read(ssl_, piece, sizeof piece); });
      if (size <= 0) return bytes + "(broken)";
      bytes.append(piece, static_cast<size_t>(size));
    }
    return bytes;
  }

 private:
  // See SocketClient: a call can be interrupted without a signal.
  template <typename Call>
  int Repeat(Call call) {
    while (true) {
      errno = 0;
      const int result = call();
      if (result > 0 || errno != EINTR) return result;
    }
  }

  SocketClient socket_;
  SSL_CTX* context_ = nullptr;
  SSL* ssl_ = nullptr;
  bool shaken_ = false;
  std::string error_;
};

}  // namespace partita::http
