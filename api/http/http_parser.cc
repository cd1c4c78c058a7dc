// Beast 1.81 asserts, when the last chunk comes byte by byte, that there are five bytes of it where four
// are enough for what it does then (basic_parser.ipp, parse_chunk_header). Without assertions it is right.
#define BOOST_DISABLE_ASSERTS

#include "api/http/http_parser.h"

#include <algorithm>
#include <boost/beast/http/basic_parser.hpp>
#include <cstring>
#include <optional>

#include "engine/base/assert.h"

namespace partita::http {

namespace beast = boost::beast;

namespace {

// Empty lines before a request that are overlooked, for clients that end a body with one too many.
constexpr size_t kEmptyLinesMax = 4;
// What the request line has besides its target: method, version and spaces.
constexpr size_t kRequestLineRest = 64;
constexpr size_t kJoinedPadding = 64;
// A joined body beyond it gives its memory back once the request is done.
constexpr size_t kKeptBodyBytes = 16 << 10;

std::string_view View(beast::string_view text) { return {text.data(), text.size()}; }

bool IsTokenByte(unsigned char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
         (c > ' ' && std::strchr("!#$%&'*+-.^_`|~", c) != nullptr);
}

bool AllDigits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// A body that comes in chunks.
class JoinedBody {
 public:
  explicit JoinedBody(size_t bytes_max) : memory_max_(bytes_max + kJoinedPadding) { Clear(); }

  std::string_view text() const { return text_; }
  size_t memory() const { return text_.capacity(); }

  // kJoinedPadding readable bytes follow it always. Its memory doubles, but not beyond what the largest
  // needs: the string by itself would double whatever it is asked for.
  void Append(std::string_view bytes) {
    const size_t wanted = text_.size() + bytes.size() + kJoinedPadding;
    if (wanted > text_.capacity()) {
      std::string larger;
      larger.reserve(std::max(wanted, std::min(2 * text_.capacity(), memory_max_)));
      larger.append(text_);
      text_.swap(larger);
    }
    text_.append(bytes);
  }

  void Clear() {
    if (text_.capacity() > kKeptBodyBytes) std::string().swap(text_);
    text_.clear();
    text_.reserve(kJoinedPadding);
  }

 private:
  const size_t memory_max_;
  std::string text_;
};

// What Beast reports of one request.
class MessageParser final : public beast::http::basic_parser<true> {
 public:
  std::string_view method;
  std::string_view target;
  int version = 11;
  std::vector<HeaderField>* fields = nullptr;
  JoinedBody* joined_body = nullptr;
  size_t fields_max = 0;
  size_t framing_max = 0;
  const char* framing = nullptr;  // Where the data of the last chunk ends, in what is being put.
  bool head_is_done = false;
  bool too_many_fields = false;
  bool bad_length = false;
  bool unknown_coding = false;
  bool long_framing = false;
  bool expects_continue = false;
  bool unknown_expectation = false;
  int host_fields = 0;
  int length_fields = 0;

 private:
  using Error = beast::error_code;
  using Text = beast::string_view;

  void on_request_impl(beast::http::verb, Text method_text, Text target_text, int version_number,
                       Error&) override {
    method = View(method_text);
    target = View(target_text);
    version = version_number;
  }

  void on_response_impl(int, Text, int, Error&) override {}

  void on_field_impl(beast::http::field field, Text name_text, Text value_text, Error& error) override {
    if (head_is_done) return;  // Trailers say nothing to us.
    if (fields->size() >= fields_max) {
      too_many_fields = true;
      error = beast::http::error::header_limit;
      return;
    }
    const std::string_view value = View(value_text);
    fields->push_back({View(name_text), value});
    Note(field, value);
  }

  void Note(beast::http::field field, std::string_view value) {
    using beast::http::field;
    switch (field) {
      case field::host:
        ++host_fields;
        break;
      case field::content_length:
        ++length_fields;
        bad_length = bad_length || !AllDigits(value);
        break;
      case field::transfer_encoding:
        unknown_coding = unknown_coding || !SameHeaderName(value, "chunked");
        break;
      case field::expect:
        if (SameHeaderName(value, "100-continue")) {
          expects_continue = true;
        } else {
          unknown_expectation = true;
        }
        break;
      default:
        break;
    }
  }

  void on_header_impl(Error&) override { head_is_done = true; }
  void on_body_init_impl(boost::optional<std::uint64_t> const&, Error&) override {}
  std::size_t on_body_impl(Text body, Error&) override { return body.size(); }
  void on_chunk_header_impl(std::uint64_t, Text extensions, Error& error) override {
    // A quoted value may hold any byte, and others on the way may end the line at a line feed.
    const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 && c != '\t'; };
    if (std::any_of(extensions.begin(), extensions.end(), is_control)) {
      error = beast::http::error::bad_chunk_extension;
    }
    if (static_cast<size_t>(extensions.data() + extensions.size() - framing) > framing_max) {
      long_framing = true;
      error = beast::http::error::bad_chunk_extension;
    }
  }
  std::size_t on_chunk_body_impl(std::uint64_t, Text body, Error&) override {
    joined_body->Append(View(body));
    framing = body.data() + body.size();
    return body.size();
  }
  void on_finish_impl(Error&) override {}
};

}  // namespace

class HttpParser::Impl {
 public:
  enum class Body : uint8_t { kUnknown, kNone, kCounted, kChunked, kTooLarge };

  explicit Impl(size_t body_bytes_max) : joined_body(body_bytes_max) {}

  std::optional<MessageParser> parser;
  size_t start = 0;       // Of the request line.
  size_t line_start = 0;  // Of the line that is being scanned.
  size_t scanned = 0;
  size_t lines = 0;
  size_t head_end = 0;  // 0: not found yet.
  size_t consumed = 0;
  const char* base = nullptr;  // Where `in` lay when the head was parsed.
  Body body = Body::kUnknown;
  size_t body_size = 0;  // kCounted.
  size_t dropped = 0;    // Taken out of `in` behind the head.
  JoinedBody joined_body;
  bool continue_due = false;

  void Reset() {
    parser.reset();
    start = line_start = scanned = lines = head_end = consumed = dropped = 0;
    body = Body::kUnknown;
    body_size = 0;
    continue_due = false;
    joined_body.Clear();
  }
};

HttpParser::HttpParser(const HttpLimits& limits)
    : limits_(limits), impl_(std::make_unique<Impl>(limits.body_bytes)) {}

HttpParser::~HttpParser() = default;

void HttpParser::Reset() {
  impl_->Reset();
  refusal_ = {};
  request_.headers.clear();
  request_.method = Method::kOther;
  request_.method_text = request_.target = request_.body = {};
  request_.has_body = request_.has_length = request_.body_too_large = false;
}

HttpParser::Step HttpParser::Refuse(int status, std::string_view reason) {
  refusal_.status = status;
  refusal_.reason = reason;
  return Step::kRefused;
}

HttpParser::Step HttpParser::Parse(std::string_view in) {
  if (impl_->head_end == 0) {
    const Step scanned = ScanHead(in);
    if (impl_->head_end == 0) return scanned;
    const Step parsed = ParseHead(in);
    if (parsed == Step::kRefused) return parsed;
  }
  return ParseBody(in);
}

// Finds the end of the head, line by line, and refuses what no later byte can make right.
HttpParser::Step HttpParser::ScanHead(std::string_view in) {
  Impl& s = *impl_;
  while (s.lines == 0 && s.start == s.line_start && in.size() > s.start && in[s.start] == '\r') {
    if (in.size() < s.start + 2) return Step::kNeedMore;
    if (in[s.start + 1] != '\n') return Refuse(400, "A carriage return stands alone.");
    s.start += 2;
    s.line_start = s.scanned = s.start;
    if (s.start > 2 * kEmptyLinesMax) return Refuse(400, "Empty lines precede the request.");
  }
  if (in.size() <= s.start) return Step::kNeedMore;
  if (!IsTokenByte(static_cast<unsigned char>(in[s.start]))) return Refuse(400, "This is not HTTP.");
  while (true) {
    const void* found = std::memchr(in.data() + s.scanned, '\n', in.size() - s.scanned);
    const size_t end = found == nullptr ? in.size() : static_cast<const char*>(found) - in.data() + 1;
    s.scanned = end;
    if (s.lines == 0 && end - s.start > limits_.target_bytes + kRequestLineRest) {
      return Refuse(414, "The request line is too long.");
    }
    if (end - s.start > limits_.head_bytes) return Refuse(431, "The headers are too large.");
    if (found == nullptr) return Step::kNeedMore;
    if (end < s.line_start + 2 || in[end - 2] != '\r') return Refuse(400, "A line feed stands alone.");
    if (end == s.line_start + 2) break;
    if (s.lines > 0 && (in[s.line_start] == ' ' || in[s.line_start] == '\t')) {
      return Refuse(400, "A header is folded.");
    }
    ++s.lines;
    s.line_start = end;
  }
  s.head_end = s.scanned;
  return Step::kNeedMore;
}

HttpParser::Step HttpParser::ParseHead(std::string_view in) {
  Impl& s = *impl_;
  s.base = in.data();
  MessageParser& parser = s.parser.emplace();
  parser.fields = &request_.headers;
  parser.fields_max = limits_.fields;
  parser.joined_body = &s.joined_body;
  parser.framing_max = limits_.head_bytes;
  parser.header_limit(UINT32_MAX);  // Ours has been checked, on the whole head.
  parser.body_limit(limits_.body_bytes);
  parser.eager(true);
  beast::error_code error;
  const boost::asio::const_buffer head(in.data() + s.start, s.head_end - s.start);
  parser.put(head, error);
  using HttpError = beast::http::error;
  if (parser.too_many_fields) return Refuse(431, "There are too many headers.");
  if (error == HttpError::body_limit) {
    s.body = Impl::Body::kTooLarge;
  } else if (error == HttpError::bad_version) {
    const std::string_view line = in.substr(s.start, in.find("\r\n", s.start) - s.start);
    const bool has_version = line.ends_with(" HTTP/1.1") || line.ends_with(" HTTP/1.0");
    if (has_version) return Refuse(400, "There is a space in the URL: write it as %20.");
    return Refuse(505, "The version is not HTTP/1.1 or HTTP/1.0.");
  } else if (error == HttpError::bad_method || error == HttpError::bad_target) {
    return Refuse(400, "The request line is malformed.");
  } else if (error == HttpError::bad_content_length || error == HttpError::multiple_content_length ||
             error == HttpError::bad_transfer_encoding) {
    return Refuse(400, "The length of the body is not clear.");
  } else if (error) {
    return Refuse(400, "A header is malformed.");
  }
  return CheckHead(in);
}

HttpParser::Step HttpParser::CheckHead(std::string_view in) {
  Impl& s = *impl_;
  const MessageParser& parser = *s.parser;
  const bool http_1_0 = parser.version == 10;
  const bool chunked = parser.chunked();
  request_.method_text = parser.method;
  request_.method = MethodFromName(parser.method);
  request_.target = parser.target;
  refusal_.knows_head = true;
  if (parser.target.size() > limits_.target_bytes) return Refuse(414, "The request line is too long.");
  if (parser.host_fields > 1) return Refuse(400, "There are two Host headers.");
  if (parser.bad_length || parser.length_fields > 1) {
    return Refuse(400, "The length of the body is not clear.");
  }
  if (parser.unknown_coding) return Refuse(501, "The transfer coding is not known.");
  if (chunked && http_1_0) return Refuse(400, "HTTP/1.0 has no transfer codings.");
  if (parser.unknown_expectation && !http_1_0) return Refuse(417, "The expectation is not known.");
  request_.has_length = chunked || parser.length_fields > 0;
  if (s.body == Impl::Body::kTooLarge) {
    request_.has_body = request_.body_too_large = true;
    return Step::kNeedMore;
  }
  s.body_size = chunked || parser.length_fields == 0 ? 0 : parser.content_length().value_or(0);
  s.body = chunked ? Impl::Body::kChunked : s.body_size > 0 ? Impl::Body::kCounted : Impl::Body::kNone;
  request_.has_body = s.body != Impl::Body::kNone;
  s.continue_due = parser.expects_continue && !http_1_0 && in.size() == s.head_end;
  s.consumed = s.head_end;
  return Step::kNeedMore;
}

HttpParser::Step HttpParser::ParseBody(std::string_view in) {
  Impl& s = *impl_;
  Follow(in);
  switch (s.body) {
    case Impl::Body::kUnknown:
    case Impl::Body::kNone:
    case Impl::Body::kTooLarge:
      s.consumed = s.head_end;
      return Finish({});
    case Impl::Body::kCounted:
      if (in.size() - s.head_end < s.body_size) break;
      s.consumed = s.head_end + s.body_size;
      return Finish(in.substr(s.head_end, s.body_size));
    case Impl::Body::kChunked:
      return ParseChunks(in);
  }
  return std::exchange(s.continue_due, false) ? Step::kContinue : Step::kNeedMore;
}

HttpParser::Step HttpParser::ParseChunks(std::string_view in) {
  Impl& s = *impl_;
  if (s.consumed == in.size()) {
    return std::exchange(s.continue_due, false) ? Step::kContinue : Step::kNeedMore;
  }
  s.continue_due = false;
  beast::error_code error;
  s.parser->framing = in.data() + s.consumed;
  s.consumed += s.parser->put({in.data() + s.consumed, in.size() - s.consumed}, error);
  // An unfinished line is part of the framing too, and so is one that announced too large a chunk.
  size_t looked_at = s.consumed;
  if (error == beast::http::error::need_more) {
    looked_at = in.size();
  } else if (error == beast::http::error::body_limit) {
    looked_at = std::min(in.find("\r\n", s.consumed + 2), in.size());
  }
  if (s.dropped + looked_at - s.head_end - joined_bytes() > limits_.body_bytes) {
    return Refuse(400, "The chunks are too small.");
  }
  // A line that goes on in a later piece may have its CR LF here: nothing is refused in pieces that is not as
  // a whole. That of a chunk which is not too large was looked at when it was whole.
  const bool is_whole = s.parser->is_done() || error == beast::http::error::body_limit;
  const size_t framing_max = limits_.head_bytes + (is_whole ? 0 : 2);
  const auto framing = static_cast<size_t>(in.data() + looked_at - s.parser->framing);
  if (s.parser->long_framing || framing > framing_max) {
    return Refuse(400, "The framing of a chunk, or behind the last, is too long.");
  }
  if (error == beast::http::error::body_limit) {
    s.body = Impl::Body::kTooLarge;
    request_.body_too_large = true;
    s.joined_body.Clear();
    return Finish({});
  }
  if (error && error != beast::http::error::need_more) return Refuse(400, "A chunk is malformed.");
  if (s.parser->is_done()) return Finish(s.joined_body.text());
  // What is not taken is an unfinished line, or lines: framing. It begins with a line; what stands before it
  // may have been dropped.
  s.scanned = std::max(s.scanned, s.consumed);
  for (size_t feed = s.scanned; (feed = in.find('\n', feed)) != in.npos; ++feed) {
    if (feed == s.consumed || in[feed - 1] != '\r') return Refuse(400, "A line feed stands alone.");
  }
  s.scanned = in.size();
  return Step::kNeedMore;
}

void HttpParser::DropJoined(std::string* in) {
  Impl& s = *impl_;
  if (s.body != Impl::Body::kChunked) return;
  PARTITA_ASSERT(s.scanned >= s.consumed);  // All of it was looked at.
  const size_t taken = s.consumed - s.head_end;
  in->erase(s.head_end, taken);
  s.consumed -= taken;
  s.scanned -= taken;
  s.dropped += taken;
  // A burst may have been large, and the next may be long in coming.
  if (in->capacity() > kKeptBodyBytes && in->size() < in->capacity() / 2) in->shrink_to_fit();
}

HttpParser::Step HttpParser::Finish(std::string_view body) {
  request_.body = body;
  return Step::kRequest;
}

// `in` may have moved since the head was parsed: the views follow it.
void HttpParser::Follow(std::string_view in) {
  if (in.data() == impl_->base) return;
  const auto moved = [this, in](std::string_view view) {
    // Without a value, a field's view may be empty and point anywhere.
    if (view.empty()) return std::string_view();
    const auto offset = reinterpret_cast<uintptr_t>(view.data()) - reinterpret_cast<uintptr_t>(impl_->base);
    return in.substr(offset, view.size());
  };
  request_.method_text = moved(request_.method_text);
  request_.target = moved(request_.target);
  for (HeaderField& field : request_.headers) field = {moved(field.name), moved(field.value)};
  impl_->base = in.data();
}

size_t HttpParser::consumed() const { return impl_->consumed; }

bool HttpParser::keep_alive() const {
  return impl_->body != Impl::Body::kTooLarge && impl_->parser->keep_alive();
}

bool HttpParser::is_http_1_0() const { return impl_->parser->version == 10; }

size_t HttpParser::empty_line_bytes() const { return impl_->start; }

bool HttpParser::awaits_body() const { return impl_->head_end != 0; }

size_t HttpParser::told_body_bytes() const { return impl_->body_size; }

size_t HttpParser::head_bytes() const { return impl_->head_end; }

bool HttpParser::comes_in_chunks() const { return impl_->body == Impl::Body::kChunked; }

size_t HttpParser::joined_bytes() const { return impl_->joined_body.text().size(); }

size_t HttpParser::memory() const { return impl_->joined_body.memory(); }

}  // namespace partita::http
