#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "api/http/http_message.h"

namespace partita::http {

// What a request may be large. The numbers are the service's own (spec 1) or, for lines and headers, what
// its front end (HTTP.sys) takes by default, rounded up.
struct HttpLimits {
  // Request line and headers: 431. Also what stands between the data of two chunks, or behind the last: a
  // chunk's line, trailers: 400. All of a line is held until its end has come, and no client sends long ones.
  size_t head_bytes = 32 << 10;
  size_t target_bytes = 16 << 10;  // 414.
  size_t fields = 100;             // 431.
  // 4 MiB, and a little for what a client may add around a payload that is just within the limit; the
  // handler judges the exact limits. Above: HttpRequest::body_too_large.
  size_t body_bytes = (4 << 20) + (64 << 10);
};

// Cuts requests out of a byte stream: Boost.Beast's parser, and the rules of strict framing that it
// leaves to its user. Two parties that disagree on where a request ends can be played off against each
// other, so whatever is doubtful is refused, and the connection with it: a Content-Length twice or with
// anything but digits, together with a Transfer-Encoding, a coding other than chunked, folded lines, bare CR
// or LF, white space before a colon, two Hosts. A missing one is for the handler to refuse, in its own words.
//
// One object serves a connection's requests one after the other. Not thread-safe.
class HttpParser {
 public:
  enum class Step : uint8_t {
    kNeedMore,
    kContinue,  // As kNeedMore, and the client waits for a 100 Continue first. Said once.
    kRequest,   // request() is whole.
    kRefused,   // refusal() says why. Nothing more can be understood on this connection.
  };
  struct Refusal {
    int status = 400;
    std::string_view reason;
    bool knows_head = false;  // request() has method, target and headers.
  };

  explicit HttpParser(const HttpLimits& limits = {});
  ~HttpParser();
  HttpParser(const HttpParser&) = delete;
  HttpParser& operator=(const HttpParser&) = delete;

  // Looks at a request. `in` begins with its first byte and holds what has come so far (but for what
  // DropJoined took out), at least as much as at the last call; it may lie elsewhere now.
  // REQUIRES: the last answer was kNeedMore or kContinue, or Reset was called.
  Step Parse(std::string_view in);

  // Takes the chunks out of *in that are in the joined body already: else the body is held twice. *in is what
  // the last Parse looked at; the views of request() are good again after the next.
  // REQUIRES: the last answer was kNeedMore or kContinue, or Reset was called.
  void DropJoined(std::string* in);

  // Bytes of `in` that the request took. REQUIRES: kRequest.
  size_t consumed() const;

  // Of the last Parse, with views into its `in` or into this object, valid until Reset. The fields that the
  // connection knows (secure, remote_address, ...) are left alone. REQUIRES: kRequest.
  // Right after the Parse that found the end of the headers (awaits_body) also without a body.
  HttpRequest& request() { return request_; }
  // Whether the client wants to send more requests on this connection. REQUIRES: kRequest.
  bool keep_alive() const;
  bool is_http_1_0() const;

  const Refusal& refusal() const { return refusal_; }  // REQUIRES: kRefused.

  // Bytes of empty lines before the request, which are overlooked. Until Reset.
  size_t empty_line_bytes() const;
  // The headers are complete, and the body is not.
  bool awaits_body() const;
  // Bytes of the body as the headers tell them, which are within the limit; 0: there is none, it is too
  // large, or it comes in chunks and only its end will tell. Until Reset.
  size_t told_body_bytes() const;
  // Of the head; 0 before it is complete. Until Reset.
  size_t head_bytes() const;
  bool comes_in_chunks() const;
  // Of a body that comes in chunks, so far.
  size_t joined_bytes() const;
  // Bytes held besides `in`: a body that is being joined.
  size_t memory() const;

  // Gets ready for the next request; frees large memory.
  void Reset();

 private:
  class Impl;
  Step Refuse(int status, std::string_view reason);
  Step ScanHead(std::string_view in);
  Step ParseHead(std::string_view in);
  Step CheckHead(std::string_view in);
  Step ParseBody(std::string_view in);
  Step ParseChunks(std::string_view in);
  Step Finish(std::string_view body);
  void Follow(std::string_view in);

  const HttpLimits limits_;
  std::unique_ptr<Impl> impl_;
  HttpRequest request_;
  Refusal refusal_;
};

}  // namespace partita::http
