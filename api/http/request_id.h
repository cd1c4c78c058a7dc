#pragma once
#include <array>
#include <string_view>

namespace partita::http {

// A fresh GUID as text, for request ids and boundaries: 36 characters, lower case, version 4.
// Unique in practice (122 random bits), and no secret: it must not be hard to guess.
class RequestId {
 public:
  // From a generator of the calling thread, seeded from the kernel once a thread: a few nanoseconds, no
  // lock.
  RequestId();

  std::string_view text() const { return {text_.data(), text_.size()}; }

 private:
  std::array<char, 36> text_;
};

}  // namespace partita::http
