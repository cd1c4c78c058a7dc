#include "api/http/http_server.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "test/http/http_server_fixture.h"

namespace partita::http {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

INSTANTIATE_TEST_SUITE_P(Backends, HttpServerTest, testing::Values(IoBackend::kUring, IoBackend::kThreads),
                         BackendName);

TEST_P(HttpServerTest, AnswersWithTheHeadersThatBelongToIt) {
  Open();
  SocketClient client = Connect();
  ASSERT_TRUE(client.Send(Post("/echo", "hello")));
  const std::string answer = ReadAnswer(client);
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\nDate: "));
  EXPECT_THAT(answer, HasSubstr(" GMT\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\nServer: Partita/"));
  EXPECT_THAT(answer, HasSubstr("\r\nX-From: 127.0.0.1\r\n"));
  EXPECT_THAT(answer, Not(HasSubstr("Connection:")));
  EXPECT_THAT(answer, EndsWith("\r\n\r\nhello"));
  ASSERT_TRUE(client.Send(Get("/none")));
  EXPECT_THAT(ReadAnswer(client), HasSubstr("204 No Content\r\n"));
  ASSERT_TRUE(client.Send("HEAD /echo-not HTTP/1.1\r\nHost: h\r\n\r\n"));
  EXPECT_THAT(client.ReceiveUntil("\r\n\r\n"), HasSubstr("Content-Length: 9\r\n"));
  ASSERT_TRUE(client.Send(Get("/after")));
  EXPECT_THAT(ReadAnswer(client), EndsWith("/after")) << "no body followed the HEAD";
}

TEST_P(HttpServerTest, PipelinedRequestsAreAnsweredInOrderWhateverPiecesTheyComeIn) {
  Open();
  std::string stream;
  for (int i = 0; i < 50; ++i) {
    stream += i % 3 == 0 ? Post("/echo", "/" + std::to_string(i)) : Get("/" + std::to_string(i));
  }
  for (size_t piece : {stream.size(), size_t{1'000}, size_t{61}}) {
    SocketClient client = Connect();
    for (size_t at = 0; at < stream.size(); at += piece) ASSERT_TRUE(client.Send(stream.substr(at, piece)));
    for (int i = 0; i < 50; ++i) EXPECT_THAT(ReadAnswer(client), EndsWith("\r\n/" + std::to_string(i)));
  }
  EXPECT_EQ(server_->counters().requests, 150u);
  EXPECT_EQ(server_->counters().framing_errors, 0u);
}

TEST_P(HttpServerTest, AsksAWaitingClientForItsBody) {
  Open();
  SocketClient client = Connect();
  const std::string request = Post("/echo", "body", "Expect: 100-continue\r\n");
  ASSERT_TRUE(client.Send(request.substr(0, request.size() - 4)));
  EXPECT_EQ(client.Receive(kContinue.size()), kContinue);
  ASSERT_TRUE(client.Send("body"));
  EXPECT_THAT(ReadAnswer(client), EndsWith("body"));
}

TEST_P(HttpServerTest, ABodyThatIsRefusedByItsHeadersIsNotReceived) {
  Open();
  const std::string large = Post("/forbidden", std::string(3 << 20, 'x'));
  for (const std::string& head :
       {large.substr(0, large.find("\r\n\r\n") + 4),
        std::string(
            "POST /forbidden HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n"),
        std::string("POST /forbidden HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")}) {
    SocketClient client = Connect();
    ASSERT_TRUE(client.Send(Get("/before") + head));  // Gathered answers come before it.
    EXPECT_THAT(ReadAnswer(client), EndsWith("/before"));
    const std::string answer = ReadAnswer(client);
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 403 "));
    EXPECT_THAT(answer, HasSubstr("Connection: close"));
    EXPECT_THAT(answer, EndsWith("no"));
  }
  // A small body that is there with its headers costs nothing: it is the handler's as ever.
  EXPECT_THAT(Ask(Post("/forbidden", "small")), EndsWith("/forbidden"));
}

// A token may expire while the body comes: who was let in is not turned away then.
TEST_P(HttpServerTest, ARequestArrivesWithItsHeadAndOnlyOnce) {
  Open();
  Clock& clock = runtime_->clock();
  SocketClient client = Connect();
  const std::string large = Post("/arrived", std::string(100'000, 'x'));
  const std::string asking = Post("/arrived", "y", "Expect: 100-continue\r\n");
  const std::string chunked =
      "POST /arrived HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nz\r\n0\r\n\r\n";
  for (const std::string& request : {large, asking, chunked}) {
    const size_t head = request.find("\r\n\r\n") + 4;
    const uint64_t before = clock.WallTicks();
    handler_.admitted_ticks = 0;
    ASSERT_TRUE(client.Send(request.substr(0, head)));
    if (request == asking) EXPECT_THAT(client.ReceiveUntil("\r\n\r\n"), StartsWith("HTTP/1.1 100 "));
    while (handler_.admitted_ticks == 0) std::this_thread::yield();
    const uint64_t admitted = handler_.admitted_ticks;
    EXPECT_GE(admitted, before) << "each request has its own time";
    while (clock.WallTicks() <= admitted) std::this_thread::yield();
    ASSERT_TRUE(client.Send(request.substr(head)));
    EXPECT_THAT(ReadAnswer(client), EndsWith("\r\n\r\n" + std::to_string(admitted)));
  }
}

TEST_P(HttpServerTest, ALargeBodyWaitsUntilThereIsRoomForIt) {
  ServerBudgets& budgets = LimitBudgets(4 << 20);
  BufferBudget& budget = budgets.large;
  Open();
  BufferShare others(&budget);
  ASSERT_TRUE(others.Set((4 << 20) - (200 << 10)));
  SocketClient client = Connect();
  // Well below what may wait: on a busy machine all of it is here before anybody asks for room.
  const std::string body(256 << 10, 'w');
  const std::string request = Post("/echo", body);
  const size_t head = request.find("\r\n\r\n") + 4;
  ASSERT_TRUE(client.Send(request.substr(0, head)));
  ASSERT_TRUE(client.Send(request.substr(head)));
  EXPECT_EQ(budget.held(), others.bytes()) << "what does not fit is not counted";
  EXPECT_THAT(Ask(Post("/echo", "small")), EndsWith("small"));  // Others are served meanwhile.
  others.Set(0);
  EXPECT_THAT(ReadAnswer(client), EndsWith("\r\n\r\n" + body));
  while (budget.held() > 0) std::this_thread::yield();
}

TEST_P(HttpServerTest, ALargeBodyIsNotOvertakenBySmallerOnes) {
  ServerBudgets& budgets = LimitBudgets(4 << 20);
  BufferBudget& budget = budgets.large;
  Open();
  BufferShare others(&budget);
  ASSERT_TRUE(others.Set((4 << 20) - (200 << 10)));
  // Asks before it sends the body: one that comes with its head needs no room.
  const auto begin = [&](SocketClient* client, const std::string& body) {
    const uint64_t waited = budgets.waiting.held();
    const std::string request = Post("/echo", body, "Expect: 100-continue\r\n");
    ASSERT_TRUE(client->Send(request.substr(0, request.size() - body.size())));
    for (int i = 0; i < 10'000 && budgets.waiting.held() == waited; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_GT(budgets.waiting.held(), waited) << "there may be room for it, but another came first";
  };
  SocketClient large = Connect();
  const std::string large_body(256 << 10, 'w'), smaller_body(64 << 10, 's');
  begin(&large, large_body);
  SocketClient smaller = Connect();
  begin(&smaller, smaller_body);
  EXPECT_EQ(budget.held(), others.bytes());
  others.Set(0);
  for (const auto& [client, body] : {std::pair{&large, &large_body}, {&smaller, &smaller_body}}) {
    EXPECT_EQ(client->Receive(kContinue.size()), kContinue);
    ASSERT_TRUE(client->Send(*body));
    EXPECT_THAT(ReadAnswer(*client), EndsWith("\r\n\r\n" + *body));
  }
}

TEST_P(HttpServerTest, ChunksWaitForRoomToo) {
  ServerBudgets& budgets = LimitBudgets(4 << 20);
  BufferBudget& budget = budgets.large;
  Open();
  BufferShare others(&budget);
  ASSERT_TRUE(others.Set((4 << 20) - (100 << 10)));
  SocketClient client = Connect();
  const std::string half(0x30000, 'w');
  ASSERT_TRUE(client.Send("POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"));
  EXPECT_TRUE(client.WaitQuietly(50));
  ASSERT_TRUE(client.Send("30000\r\n" + half + "\r\n"));
  EXPECT_TRUE(client.WaitQuietly(50));
  ASSERT_TRUE(client.Send("30000\r\n" + half + "\r\n"));
  EXPECT_TRUE(client.WaitQuietly(200));
  EXPECT_EQ(budget.held(), others.bytes()) << "what waits is not counted";
  EXPECT_THAT(Ask(Post("/echo", "small")), EndsWith("small"));
  others.Set(0);
  ASSERT_TRUE(client.Send("0\r\n\r\n"));
  EXPECT_THAT(ReadAnswer(client), EndsWith("\r\n\r\n" + half + half));
  while (budget.held() > 0) std::this_thread::yield();
}

TEST_P(HttpServerTest, TakesChunkedAndLargeBodies) {
  Open();
  EXPECT_THAT(Ask("POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: "
                  "chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"),
              EndsWith("\r\n\r\nabcde"));
  const std::string large(4 << 20, 'b');
  EXPECT_THAT(Ask(Post("/echo", large)), EndsWith("\r\n\r\n" + large));
  EXPECT_THAT(Ask("POST /echo HTTP/1.1\r\nHost: h\r\n\r\n"), StartsWith("HTTP/1.1 411 Length Required\r\n"));
}

TEST_P(HttpServerTest, ABodyOverTheLimitIsAnsweredByTheHandlerAndEndsTheConnection) {
  Open();
  SocketClient client = Connect();
  const std::string head = "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 10000000\r\n\r\n";
  ASSERT_TRUE(client.Send(head));
  ASSERT_TRUE(client.Send(std::string(6'000'000, 'x')));  // The answer survives what is still on its way.
  const std::string answer = ReadAnswer(client);
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(answer, HasSubstr("Connection: close\r\n"));
  EXPECT_THAT(answer, EndsWith("too large"));
  client.EndSending();
  EXPECT_EQ(client.ReceiveAll(), "");
  SocketClient waiting = Connect();
  ASSERT_TRUE(
      waiting.Send("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 10000000\r\n\r\n"));
  EXPECT_THAT(ReadAnswer(waiting), StartsWith("HTTP/1.1 413 ")) << "without asking for the body";
}

TEST_P(HttpServerTest, RefusesWhatIsNoRequestAndHarmsNobodyElse) {
  Open();
  SocketClient other = Connect();
  ASSERT_TRUE(other.Send(Get("/first")));
  EXPECT_THAT(ReadAnswer(other), EndsWith("/first"));
  for (const std::string& bad : {std::string("\x16\x03\x01\x02\x03"), Get("/", "Host: other\r\n"),
                                 Get("/", "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n")}) {
    SocketClient client = Connect();
    ASSERT_TRUE(client.Send(bad));
    const std::string answer = ReadAnswer(client);
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 400 Bad Request\r\n"));
    EXPECT_THAT(answer, HasSubstr("Connection: close\r\n"));
    client.EndSending();
    EXPECT_EQ(client.ReceiveAll(), "");
  }
  EXPECT_THAT(Ask(Get("/" + std::string(20'000, 'a'))), StartsWith("HTTP/1.1 414 "));
  EXPECT_THAT(Ask(Get("/", "A: " + std::string(40'000, 'a') + "\r\n")), StartsWith("HTTP/1.1 431 "));
  EXPECT_EQ(server_->counters().framing_errors, 5u);
  ASSERT_TRUE(other.Send(Get("/second")));
  EXPECT_THAT(ReadAnswer(other), EndsWith("/second"));
}

TEST_P(HttpServerTest, KeepsOrClosesAsTheClientSays) {
  Open();
  SocketClient closing = Connect();
  ASSERT_TRUE(closing.Send(Get("/x", "Connection: close\r\n")));
  const std::string answer = closing.ReceiveAll();
  EXPECT_THAT(answer, HasSubstr("Connection: close\r\n"));
  EXPECT_THAT(answer, EndsWith("/x"));
  SocketClient old = Connect();
  ASSERT_TRUE(old.Send("GET /old HTTP/1.0\r\n\r\n"));
  EXPECT_THAT(old.ReceiveAll(), EndsWith("/old"));
  SocketClient kept = Connect();
  ASSERT_TRUE(kept.Send("GET /kept HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
  EXPECT_THAT(ReadAnswer(kept), HasSubstr("Connection: keep-alive\r\n"));
  ASSERT_TRUE(kept.Send(Get("/again")));
  EXPECT_THAT(ReadAnswer(kept), EndsWith("/again"));
}

TEST_P(HttpServerTest, LargeAnswersArriveWholeInAPipeline) {
  Open();
  SocketClient client = Connect();
  ASSERT_TRUE(client.Send(Get("/large") + Get("/small") + Get("/large")));
  EXPECT_THAT(ReadAnswer(client), EndsWith(std::string(3 << 20, 'L')));
  EXPECT_THAT(ReadAnswer(client), EndsWith("/small"));
  EXPECT_THAT(ReadAnswer(client), EndsWith(std::string(3 << 20, 'L')));
}

}  // namespace
}  // namespace partita::http
