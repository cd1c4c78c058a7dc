#include "api/http/http_parser.h"

#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

namespace partita::http {
namespace {

using ::testing::HasSubstr;
using Step = HttpParser::Step;

// What a parser made of a stream, request by request, in words.
std::string Describe(HttpParser& parser) {
  const HttpRequest& request = parser.request();
  std::string text(request.method_text);
  text.append(" ").append(request.target);
  for (const HeaderField& field : request.headers)
    text.append("|").append(field.name).append("=").append(field.value);
  text.append("|").append(request.body);
  text += request.has_body ? " body" : "";
  text += request.has_length ? " length" : "";
  text += request.body_too_large ? " too-large" : "";
  text += parser.keep_alive() ? " keep" : " close";
  return text;
}

enum class Joined : uint8_t { kKept, kDropped };

// Feeds `stream` so many bytes at a time, from memory that moves whenever it grows.
std::vector<std::string> ParseInPieces(std::string_view stream, size_t piece, const HttpLimits& limits = {},
                                       Joined joined = Joined::kKept) {
  HttpParser parser(limits);
  std::vector<std::string> seen;
  std::string in;
  size_t end = 0;
  while (end < stream.size()) {
    in.append(stream.substr(end, piece));
    end = std::min(end + piece, stream.size());
    while (!in.empty()) {
      std::string moved(in);
      moved.reserve(moved.size() + 64);
      in.swap(moved);
      moved.assign(moved.size(), '?');
      const Step step = parser.Parse(in);
      if (joined == Joined::kDropped && (step == Step::kNeedMore || step == Step::kContinue)) {
        parser.DropJoined(&in);
      }
      if (step == Step::kNeedMore) break;
      if (step == Step::kContinue) {
        seen.push_back("continue");
        break;
      }
      if (step == Step::kRefused) {
        seen.push_back("refused " + std::to_string(parser.refusal().status));
        return seen;
      }
      seen.push_back(Describe(parser));
      in.erase(0, parser.consumed());
      parser.Reset();
    }
  }
  return seen;
}

std::vector<std::string> StepsOf(std::string_view stream, const HttpLimits& limits = {}) {
  std::vector<std::string> whole = ParseInPieces(stream, stream.size(), limits);
  for (size_t piece : {1, 2, 3, 7}) {
    for (const Joined joined : {Joined::kKept, Joined::kDropped}) {
      std::vector<std::string> pieces = ParseInPieces(stream, piece, limits, joined);
      std::erase(pieces, "continue");  // Said only when the body lets itself be waited for.
      std::vector<std::string> expected = whole;
      std::erase(expected, "continue");
      EXPECT_EQ(pieces, expected) << "in pieces of " << piece << ": " << stream.substr(0, 200);
    }
  }
  return whole;
}

std::string ParseOne(std::string_view stream, const HttpLimits& limits = {}) {
  const std::vector<std::string> seen = StepsOf(stream, limits);
  return seen.size() == 1 ? seen[0] : std::to_string(seen.size()) + " answers";
}

std::string WithHeaders(std::string_view headers, std::string_view body = "") {
  return "POST /t HTTP/1.1\r\nHost: h\r\n" + std::string(headers) + "\r\n" + std::string(body);
}

TEST(HttpParserTest, TakesARequestApart) {
  EXPECT_EQ(ParseOne("GET /a/t()?$top=1 HTTP/1.1\r\nHost: h:1\r\nAccept:  x/y \t\r\nEmpty:\r\n\r\n"),
            "GET /a/t()?$top=1|Host=h:1|Accept=x/y|Empty=| keep");
  EXPECT_EQ(ParseOne(WithHeaders("Content-Length: 5\r\n", "hello")),
            "POST /t|Host=h|Content-Length=5|hello body length keep");
  EXPECT_EQ(ParseOne(WithHeaders("Content-Length: 0\r\n")), "POST /t|Host=h|Content-Length=0| length keep");
  EXPECT_EQ(ParseOne("MERGE * HTTP/1.1\r\nHost: h\r\n\r\n"), "MERGE *|Host=h| keep");
  EXPECT_EQ(ParseOne("\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n"), "GET /|Host=h| keep");
}

TEST(HttpParserTest, JoinsChunks) {
  EXPECT_EQ(ParseOne(WithHeaders("Transfer-Encoding: chunked\r\n",
                                 "5\r\nhello\r\n1;a=b;c=\"d\"\r\n,\r\nA\r\n 0123456 8\r\n0\r\nT: v\r\n\r\n")),
            "POST /t|Host=h|Transfer-Encoding=chunked|hello, 0123456 8 body length keep");
  EXPECT_EQ(ParseOne(WithHeaders("Transfer-Encoding: Chunked\r\n", "0\r\n\r\n")),
            "POST /t|Host=h|Transfer-Encoding=Chunked| body length keep");
}

TEST(HttpParserTest, CutsAPipelineIntoItsRequests) {
  const std::string stream = "GET /1 HTTP/1.1\r\nHost: h\r\n\r\n" +
                             WithHeaders("Content-Length: 2\r\n", "ab") +
                             WithHeaders("Transfer-Encoding: chunked\r\n", "1\r\nc\r\n0\r\n\r\n") +
                             "GET /4 HTTP/1.1\r\nHost: h\r\n\r\n";
  const std::vector<std::string> seen = StepsOf(stream);
  ASSERT_EQ(seen.size(), 4u);
  EXPECT_THAT(seen[0], HasSubstr("GET /1"));
  EXPECT_THAT(seen[1], HasSubstr("|ab "));
  EXPECT_THAT(seen[2], HasSubstr("|c "));
  EXPECT_THAT(seen[3], HasSubstr("GET /4"));
}

TEST(HttpParserTest, KnowsWhoKeepsTheConnection) {
  auto last_word = [](std::string_view stream) {
    const std::string seen = ParseOne(stream);
    return seen.substr(seen.rfind(' ') + 1);
  };
  EXPECT_EQ(last_word("GET / HTTP/1.1\r\nHost: h\r\n\r\n"), "keep");
  EXPECT_EQ(last_word("GET / HTTP/1.1\r\nHost: h\r\nConnection: Close\r\n\r\n"), "close");
  EXPECT_EQ(last_word("GET / HTTP/1.1\r\nHost: h\r\nConnection: foo, close\r\n\r\n"), "close");
  EXPECT_EQ(last_word("GET / HTTP/1.0\r\n\r\n"), "close");
  EXPECT_EQ(last_word("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"), "keep");
}

TEST(HttpParserTest, AsksForTheBodyOfAClientThatWaits) {
  const std::string head = WithHeaders("Content-Length: 2\r\nExpect: 100-Continue\r\n");
  HttpParser parser;
  EXPECT_EQ(parser.Parse(head), Step::kContinue);
  EXPECT_EQ(parser.Parse(head), Step::kNeedMore);
  EXPECT_EQ(parser.Parse(head + "ab"), Step::kRequest);
  parser.Reset();
  EXPECT_EQ(parser.Parse(head + "a"), Step::kNeedMore) << "it did not wait";
  parser.Reset();
  const std::string chunked = WithHeaders("Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n");
  EXPECT_EQ(parser.Parse(chunked), Step::kContinue);
  EXPECT_EQ(ParseOne(WithHeaders("Expect: 200-ok\r\n")), "refused 417");
  EXPECT_EQ(ParseOne(WithHeaders("Content-Length: 0\r\nExpect: 100-continue\r\n")),
            "POST /t|Host=h|Content-Length=0|Expect=100-continue| length keep");
}

TEST(HttpParserTest, RefusesWhateverLeavesTheFramingInDoubt) {
  for (std::string_view headers : {
           "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
           "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
           "Content-Length: 5\r\nContent-Length: 5\r\n",
           "Content-Length: 5\r\nContent-Length: 6\r\n",
           "Content-Length: 5, 5\r\n",
           "Content-Length: +5\r\n",
           "Content-Length: -5\r\n",
           "Content-Length: 0x5\r\n",
           "Content-Length: 5 5\r\n",
           "Content-Length:\r\n",
           "Content-Length: 99999999999999999999\r\n",
           "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
           "Content-Length : 5\r\n",
           " Content-Length: 5\r\n",
           "X: a\r\n b\r\n",
           "X:\r\n\tb\r\n",
           "X: a\rb\r\n",
           "X: a\nY: b\r\n",
           "X: a\x01"
           "b\r\n",
           "X: a\x7f"
           "b\r\n",
           "X\r\n",
           ": x\r\n",
           "X Y: z\r\n",
           "Host: other\r\n",
       }) {
    EXPECT_EQ(ParseOne(WithHeaders(headers, "hello")), "refused 400") << headers;
  }
  EXPECT_EQ(ParseOne(WithHeaders(std::string_view("X: a\0b\r\n", 8))), "refused 400");
  EXPECT_EQ(ParseOne(WithHeaders("Transfer-Encoding: gzip, chunked\r\n")), "refused 501");
  EXPECT_EQ(ParseOne(WithHeaders("Transfer-Encoding: identity\r\n")), "refused 501");
  EXPECT_EQ(ParseOne("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), "refused 400");
}

// The service says so in its own words (ServiceErrors.HostInformationNotPresent).
TEST(HttpParserTest, AMissingHostIsForTheHandlerToRefuse) {
  EXPECT_EQ(ParseOne("GET / HTTP/1.1\r\nAccept: x\r\n\r\n"), "GET /|Accept=x| keep");
}

TEST(HttpParserTest, RefusesMalformedRequestLines) {
  for (std::string_view line :
       {"GET  / HTTP/1.1", "GET / HTTP/1.1 ", "GET /", "GET", "G(T / HTTP/1.1", "GET / a HTTP/1.1",
        "GET /\x01 HTTP/1.1", " GET / HTTP/1.1", "GET\t/ HTTP/1.1"}) {
    const std::string seen = ParseOne(std::string(line) + "\r\nHost: h\r\n\r\n");
    EXPECT_TRUE(seen == "refused 400" || seen == "refused 505") << line << ": " << seen;
  }
  EXPECT_EQ(ParseOne("GET / HTTP/2.0\r\nHost: h\r\n\r\n"), "refused 505");
  EXPECT_EQ(ParseOne("GET /t(PartitionKey='a', RowKey='b') HTTP/1.1\r\nHost: h\r\n\r\n"), "refused 400");
  EXPECT_EQ(ParseOne("GET / HTTP/1.1\nHost: h\n\n"), "refused 400");
  EXPECT_EQ(ParseOne("\x16\x03\x01\x02\x01\xfc\x03"), "refused 400") << "TLS, without waiting for a line";
  EXPECT_EQ(ParseOne("\r\n\r\n\r\n\r\n\r\n\r\n\r\n"), "refused 400");
  EXPECT_EQ(ParseOne("\rG"), "refused 400");
}

TEST(HttpParserTest, ARefusalBehindTheHeadKnowsWhatWasAsked) {
  HttpParser parser;
  ASSERT_EQ(parser.Parse("HEAD /t HTTP/1.1\r\nHost: h\r\nExpect: x\r\nA: b\r\n\r\n"),
            HttpParser::Step::kRefused);
  EXPECT_TRUE(parser.refusal().knows_head);
  EXPECT_EQ(parser.request().method, Method::kHead);
  EXPECT_EQ(parser.request().target, "/t");
  EXPECT_EQ(parser.request().Header("A"), "b");
  parser.Reset();
  ASSERT_EQ(parser.Parse("HEAD /t HTTP/1.1\r\n folded\r\n\r\n"), HttpParser::Step::kRefused);
  EXPECT_FALSE(parser.refusal().knows_head);
}

// What is received may lie elsewhere each time.
TEST(HttpParserTest, ARefusalAmidTheBodyKnowsItFromWhatIsThereNow) {
  HttpParser parser;
  const std::string head = WithHeaders("A: bbbb\r\nTransfer-Encoding: chunked\r\n", "1\r\nc\r\n");
  auto first = std::make_unique<std::string>(head);
  ASSERT_EQ(parser.Parse(*first), HttpParser::Step::kNeedMore);
  const std::string second = head + "5\n";
  std::fill(first->begin(), first->end(), 'x');
  first.reset();
  ASSERT_EQ(parser.Parse(second), HttpParser::Step::kRefused);
  ASSERT_TRUE(parser.refusal().knows_head);
  EXPECT_EQ(parser.request().Header("A"), "bbbb");
  EXPECT_EQ(parser.request().method_text, "POST");
}

TEST(HttpParserTest, RefusesMalformedChunks) {
  for (std::string_view body :
       {"x\r\n", "5\nhello\r\n0\r\n\r\n", "5\r\nhelloo\r\n0\r\n\r\n", "-1\r\na\r\n", " 5\r\nhello\r\n",
        "5 \r\nhello\r\n0\r\n\r\n", "5;\r\nhello\r\n", "fffffffffffffffff\r\n", "0x5\r\nhello\r\n\r\n",
        "0\r\nContent-Length: 5\r\n\r\n", "0\r\nbad trailer\r\n\r\n", "\r\n0\r\n\r\n",
        "5;a=\"x\ny\"\r\nhello\r\n0\r\n\r\n", "5;a=\"\x01\"\r\nhello\r\n0\r\n\r\n", "5\n",
        "5\r\nhello\r\n0\n", "0\r\nA: b\n"}) {
    EXPECT_EQ(ParseOne(WithHeaders("Transfer-Encoding: chunked\r\n", body)), "refused 400") << body;
  }
}

TEST(HttpParserTest, HoldsTheLimits) {
  HttpLimits limits;
  limits.head_bytes = 400;
  limits.target_bytes = 100;
  limits.fields = 5;
  limits.body_bytes = 1'000;
  auto get = [](size_t target, std::string_view headers) {
    return "GET /" + std::string(target - 1, 'a') + " HTTP/1.1\r\nHost: h\r\n" + std::string(headers) +
           "\r\n";
  };
  EXPECT_THAT(ParseOne(get(100, ""), limits), HasSubstr("keep"));
  EXPECT_EQ(ParseOne(get(101, ""), limits), "refused 414");
  EXPECT_EQ(ParseOne(get(1'000, ""), limits), "refused 414");
  EXPECT_THAT(ParseOne(get(1, "A: 1\r\nB: 1\r\nC: 1\r\nD: 1\r\n"), limits), HasSubstr("keep"));
  EXPECT_EQ(ParseOne(get(1, "A: 1\r\nB: 1\r\nC: 1\r\nD: 1\r\nE: 1\r\n"), limits), "refused 431");
  EXPECT_EQ(ParseOne(get(1, "A: " + std::string(400, 'x') + "\r\n"), limits), "refused 431");
  EXPECT_EQ(ParseOne("GET / HTTP/1.1\r\nA: " + std::string(400, 'x'), limits), "refused 431") << "unfinished";

  const std::string largest(1'000, 'b');
  EXPECT_THAT(ParseOne(WithHeaders("Content-Length: 1000\r\n", largest), limits),
              HasSubstr("bbb body length keep"));
  EXPECT_THAT(ParseInPieces(WithHeaders("Content-Length: 1001\r\n"), 1, limits)[0],
              HasSubstr("| body length too-large close"));
  EXPECT_THAT(
      ParseOne(WithHeaders("Transfer-Encoding: chunked\r\n", "3e8\r\n" + largest + "\r\n0\r\n\r\n"), limits),
      HasSubstr("bbb body length keep"));
  const std::string more = WithHeaders("Transfer-Encoding: chunked\r\n", "3e8\r\n" + largest + "\r\n1\r\n");
  EXPECT_THAT(ParseInPieces(more, more.size(), limits)[0], HasSubstr("| body length too-large close"));
  EXPECT_EQ(ParseOne(WithHeaders("Transfer-Encoding: chunked\r\n", "1;" + std::string(2'000, 'e')), limits),
            "refused 400");
}

TEST(HttpParserTest, HoldsTheLimitOfWhatStandsBetweenChunks) {
  HttpLimits limits;
  limits.head_bytes = 200;
  const auto chunked = [&](std::string_view body) {
    const std::string stream = WithHeaders("Transfer-Encoding: chunked\r\n", body);
    for (size_t piece = 1; piece < 20; ++piece) {
      for (const Joined joined : {Joined::kKept, Joined::kDropped}) {
        EXPECT_EQ(ParseInPieces(stream, piece, limits, joined),
                  ParseInPieces(stream, stream.size(), limits, joined))
            << body;
      }
    }
    return ParseOne(stream, limits);
  };
  const std::string_view end = "0\r\n\r\n";
  for (const size_t over : {0, 1, 2, 3, 100}) {
    const std::string lines[] = {
        "1;" + std::string(198 + over, 'e') + "\r\nx\r\n" + std::string(end),
        "1\r\nx\r\n1;" + std::string(196 + over, 'e') + "\r\ny\r\n" + std::string(end),
        std::string(200 + over - 1, '0') + "1\r\nx\r\n" + std::string(end),
        "1\r\nx\r\n0\r\nA: " + std::string(200 - 12 + over, 't') + "\r\n\r\n"};
    for (const std::string& body : lines) {
      if (over > 0) EXPECT_EQ(chunked(body), "refused 400") << over << ": " << body;
      if (over == 0) EXPECT_THAT(chunked(body), HasSubstr(" body length")) << body;
    }
  }
  EXPECT_EQ(chunked("1;" + std::string(201, 'e')), "refused 400") << "unfinished";
  const std::string too_large = "9999999999;" + std::string(189, 'e');
  for (size_t piece : {1, 7, 1'000}) {
    const std::string stream = WithHeaders("Transfer-Encoding: chunked\r\n", too_large + "\r\n");
    EXPECT_THAT(ParseInPieces(stream, piece, limits)[0], HasSubstr("too-large close"));
  }
  EXPECT_EQ(chunked(too_large + "e\r\n"), "refused 400");
  EXPECT_EQ(chunked("0\r\nA: " + std::string(201, 't')), "refused 400") << "unfinished";
  // Many short ones are none.
  std::string many;
  for (int i = 0; i < 200; ++i) many += "1;a=b\r\nx\r\n";
  EXPECT_THAT(chunked(many + std::string(end)), HasSubstr("xxx body length keep"));
}

// Found by fuzzing: what follows a chunk that is too large was taken for framing, if it came along.
TEST(HttpParserTest, AChunkTooLargeIsThatWhateverFollowsIt) {
  HttpLimits limits;
  limits.body_bytes = 300;
  const std::string head = WithHeaders("Transfer-Encoding: chunked\r\n");
  for (size_t follows : {0, 10, 1'000}) {
    const std::string stream = head + "abc\r\n" + std::string(follows, 'x');
    EXPECT_THAT(ParseInPieces(stream, stream.size(), limits)[0], HasSubstr("too-large close"));
    EXPECT_THAT(ParseInPieces(stream, 1, limits)[0], HasSubstr("too-large close"));
  }
}

TEST(HttpParserTest, HoldsAChunkedBodyOnceAndNoMoreThanTheLargest) {
  HttpLimits limits;
  limits.body_bytes = 300'000;
  HttpParser parser(limits);
  std::string in = WithHeaders("Transfer-Encoding: chunked\r\n");
  const size_t head = in.size();
  for (int i = 0; i < 3'000; ++i) {
    in.append("64;a=b\r\n").append(std::string(100, 'c')).append("\r\n");
    if (i % 7 != 0) continue;
    ASSERT_EQ(parser.Parse(in), Step::kNeedMore);
    parser.DropJoined(&in);
    ASSERT_LE(in.size(), head + 2) << "the last line's end may be left";
    ASSERT_EQ(parser.joined_bytes(), 100u * (i + 1));
    ASSERT_LE(parser.memory(), limits.body_bytes + 100);
    ASSERT_LE(parser.memory(), 2 * parser.joined_bytes() + 200);
  }
  in.append("0\r\n\r\n");
  ASSERT_EQ(parser.Parse(in), Step::kRequest);
  EXPECT_EQ(parser.consumed(), in.size());
  EXPECT_EQ(parser.request().body, std::string(300'000, 'c'));
  EXPECT_EQ(parser.request().target, "/t");
}

// What was dropped counts.
TEST(HttpParserTest, ChunksThatAreTooSmallAreRefusedAlsoWhenTheyAreDropped) {
  HttpLimits limits;
  limits.body_bytes = 1'000;
  std::string stream = WithHeaders("Transfer-Encoding: chunked\r\n");
  for (int i = 0; i < 300; ++i) stream.append("1\r\nc\r\n");
  for (const Joined joined : {Joined::kKept, Joined::kDropped}) {
    EXPECT_EQ(ParseInPieces(stream, 10, limits, joined), std::vector<std::string>{"refused 400"});
  }
}

TEST(HttpParserTest, IsAsGoodAsNewAfterReset) {
  HttpParser parser;
  EXPECT_EQ(parser.Parse("bad\n"), Step::kRefused);
  parser.Reset();
  const std::string good = WithHeaders("Content-Length: 1\r\n", "x");
  EXPECT_EQ(parser.Parse(good), Step::kRequest);
  EXPECT_EQ(parser.consumed(), good.size());
  EXPECT_EQ(parser.request().headers.size(), 2u);
}

}  // namespace
}  // namespace partita::http
