#pragma once
#include <memory>
#include <mutex>
#include <string>

#include "engine/base/result.h"

struct ssl_ctx_st;

namespace partita::http {

// The certificate and the rules by which the server speaks TLS: 1.2 and newer, OpenSSL's default ciphers,
// no renegotiation, no client certificates. Thread-safe.
class TlsContext {
 public:
  struct Files {
    std::string certificate;  // PEM: the server's certificate first, then the chain.
    std::string key;          // PEM, without a password.
  };

  // Reads both files. kInvalidArgument: a file that cannot be read, is no PEM, or a key that does not
  // belong to the certificate; the message names the file and what is wrong with it.
  static Result<std::unique_ptr<TlsContext>> Open(const Files& files);

  // Reads files (SIGHUP), for Use. Errors as Open.
  static Result<std::shared_ptr<ssl_ctx_st>> Load(const Files& files);
  // Connections that come from here on get what was loaded, those that exist keep theirs.
  void Use(std::shared_ptr<ssl_ctx_st> loaded);

  // That the certificate has expired, will within two weeks, or is of the future; empty: it is good.
  std::string ValidityNote() const;

  // What a new connection uses.
  std::shared_ptr<ssl_ctx_st> Current() const;

 private:
  explicit TlsContext(std::shared_ptr<ssl_ctx_st> loaded) : current_(std::move(loaded)) {}

  mutable std::mutex mutex_;
  std::shared_ptr<ssl_ctx_st> current_;
};

}  // namespace partita::http
