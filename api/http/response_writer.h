#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "api/http/http_message.h"

namespace partita::http {

// "OK" for 200 and so on; "" for a status without a name.
std::string_view StatusReason(int status);

// Puts answers into bytes. One per worker: keeps the Date and Server lines, which change once a second.
class ResponseWriter {
 public:
  explicit ResponseWriter(std::string server_name) : server_name_(std::move(server_name)) {}

  struct Framing {
    bool keep_alive = true;
    bool http_1_0 = false;    // Such a client is told that its connection stays open.
    uint64_t wall_ticks = 0;  // Now.
  };

  // Appends everything up to and with the empty line. Content-Length is the body's; 204 says 0, as the
  // service does (spec 4.2; RFC 9110 would leave it out, no client minds), 1xx and 304 say nothing.
  void AppendHead(const HttpResponse& response, const Framing& framing, std::string* out);

  // Whether a body goes with it: not with 1xx, 204, 304, nor with an answer to HEAD.
  static bool SendsBody(const HttpResponse& response);

 private:
  void RefreshLines(uint64_t second);

  const std::string server_name_;
  uint64_t second_ = 0;
  std::string lines_;
};

}  // namespace partita::http
