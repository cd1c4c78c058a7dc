#pragma once
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

#include "engine/base/assert.h"

namespace partita::http {

// Appends to a string through a plain pointer: an append is a compare and a copy. The string's size is right
// again only after the sink is gone; until then nobody else may touch the string. Not thread-safe.
class TextSink {
 public:
  // `estimate`: bytes about to be appended; more is fine.
  TextSink(std::string* out, size_t estimate) : out_(out) {
    const size_t size = out->size();
    out->resize(size + estimate);
    at_ = out->data() + size;
    end_ = out->data() + out->size();
  }
  ~TextSink() { out_->resize(static_cast<size_t>(at_ - out_->data())); }
  TextSink(const TextSink&) = delete;
  TextSink& operator=(const TextSink&) = delete;

  // Room for `size` bytes at at(); write them and Advance.
  void Reserve(size_t size) {
    if (static_cast<size_t>(end_ - at_) < size) [[unlikely]]
      Grow(size);
  }
  char* at() { return at_; }
  // REQUIRES: end is within the room reserved.
  void AdvanceTo(char* end) { at_ = end; }

  void Append(std::string_view text) {
    Reserve(text.size());
    std::memcpy(at_, text.data(), text.size());
    at_ += text.size();
  }
  void Push(char c) {
    Reserve(1);
    *at_++ = c;
  }

 private:
  // Apart, or each append would be a call.
  [[gnu::noinline]] void Grow(size_t size) {
    const auto used = static_cast<size_t>(at_ - out_->data());
    out_->resize(used + size + used / 2);
    at_ = out_->data() + used;
    end_ = out_->data() + out_->size();
  }

  std::string* out_;
  char* at_;
  char* end_;
};

}  // namespace partita::http
