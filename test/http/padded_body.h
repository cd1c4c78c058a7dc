#pragma once
#include <string>
#include <string_view>

namespace partita::http {

// A body as a connection gives it: 64 readable bytes follow, and what they hold must not matter.
class PaddedBody {
 public:
  explicit PaddedBody(std::string_view text) : bytes_(text), size_(text.size()) {
    while (bytes_.size() < size_ + 64) bytes_ += "\"}1 ";
  }
  operator std::string_view() const { return std::string_view(bytes_).substr(0, size_); }  // NOLINT

 private:
  std::string bytes_;
  size_t size_;
};

}  // namespace partita::http
