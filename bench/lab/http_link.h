#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/lab/connection_string.h"
#include "engine/base/result.h"

namespace partita::lab {

// What a server answered.
struct HttpAnswer {
  int status = 0;
  std::string body;
  std::string retry_after, retry_after_ms, continuation_partition, continuation_row, continuation_table,
      cost;  // Headers; empty: not there.
  bool keeps_alive = false;
};

// A finer reason of kIoError (Status::detail).
enum class LinkTrouble : uint16_t {
  kNone,
  kNotConnected,  // So nothing was asked of the server.
};

// One connection to a server, kept open between requests; TLS where the endpoint says https, with the
// machine's certificates. Used by one thread at a time.
class HttpLink {
 public:
  explicit HttpLink(const Connection& connection);
  ~HttpLink();
  HttpLink(const HttpLink&) = delete;
  HttpLink& operator=(const HttpLink&) = delete;

  // Sends the whole request and reads the whole answer; connects first where it is not. A kept connection
  // that the server has closed meanwhile, without a byte of answer, is opened anew and the request sent once
  // more. kIoError: nobody answers.
  Result<HttpAnswer> Ask(const std::string& request);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace partita::lab
