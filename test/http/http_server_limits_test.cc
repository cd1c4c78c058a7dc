#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include "test/http/http_server_fixture.h"
#include "test/support/resident_memory.h"

namespace partita::http {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// What a server bounds: time, memory and connections, of clients that are slow, gone or too many.
class HttpServerLimitsTest : public HttpServerTest {
 protected:
  // One that has been answered. The time for its first head began when it was let in: where that ran out
  // before this thread had sent it, it is tried again.
  SocketClient ConnectIdle() {
    for (int tries = 0; tries < 20; ++tries) {
      SocketClient client = Connect();
      if (client.Send(Get("/in")) && ReadAnswer(client).ends_with("/in")) return client;
    }
    ADD_FAILURE() << "no request was answered";
    return Connect();
  }
};
INSTANTIATE_TEST_SUITE_P(Backends, HttpServerLimitsTest,
                         testing::Values(IoBackend::kUring, IoBackend::kThreads), BackendName);

TEST_P(HttpServerLimitsTest, HalfRequestsAndVanishingPeersAreHarmless) {
  Open();
  for (size_t cut : {1, 10, 30, 60}) {
    SocketClient client = Connect();
    ASSERT_TRUE(client.Send(Post("/echo", std::string(100, 'x')).substr(0, cut)));
    if (cut % 20 == 0) client.Reset();
  }
  {
    SocketClient client = Connect();
    ASSERT_TRUE(client.Send(Get("/large") + Get("/large")));
    client.Reset();
  }
  SocketClient leaving = Connect();
  ASSERT_TRUE(leaving.Send(Get("/gone")));
  handler_.waiting.wait();
  leaving.Reset();
  handler_.seen_gone.wait();
  EXPECT_THAT(Ask(Get("/healthy")), EndsWith("/healthy"));
}

TEST_P(HttpServerLimitsTest, SlowClientsRunOutOfTime) {
  options_.timeouts.header_ms = 150;
  options_.timeouts.transfer_ms = 150;
  Open();
  SocketClient slow_head = ConnectIdle();
  SocketClient slow_body = ConnectIdle();
  const uint64_t before = server_->counters().timeouts;
  ASSERT_TRUE(slow_head.Send("GET / HT"));
  ASSERT_TRUE(slow_body.Send(Post("/echo", "body").substr(0, 50)));
  SocketClient silent = Connect();
  EXPECT_THAT(ReadAnswer(slow_head), StartsWith("HTTP/1.1 408 "));
  EXPECT_THAT(ReadAnswer(slow_body), StartsWith("HTTP/1.1 408 "));
  EXPECT_EQ(silent.ReceiveAll(), "");
  EXPECT_EQ(server_->counters().timeouts, before + 3);
}

TEST_P(HttpServerLimitsTest, WhoIsIdleForLongIsCutOffAndWasSlowWithNothing) {
  options_.timeouts.idle_ms = 300;
  Open();
  SocketClient idle = ConnectIdle();
  EXPECT_EQ(idle.ReceiveAll(), "");
  EXPECT_EQ(server_->counters().timeouts, 0u);
}

// Some clients send one behind a body.
TEST_P(HttpServerLimitsTest, EmptyLinesBehindARequestLeaveTheConnectionIdle) {
  options_.timeouts.header_ms = 100;
  Open();
  SocketClient client = ConnectIdle();
  const uint64_t before = server_->counters().timeouts;
  for (std::string_view empty : {"\r\n", "\r\n\r\n"}) {
    ASSERT_TRUE(client.Send(Post("/echo", "behind the body") + std::string(empty)));
    EXPECT_THAT(ReadAnswer(client), EndsWith("behind the body"));
    EXPECT_TRUE(client.WaitQuietly(400)) << "nobody asked for an answer";
    ASSERT_TRUE(client.Send(empty));
    EXPECT_TRUE(client.WaitQuietly(400)) << "nobody asked for an answer";
  }
  ASSERT_TRUE(client.Send("\r\n" + Get("/after")));
  EXPECT_THAT(ReadAnswer(client), EndsWith("/after"));
  EXPECT_EQ(server_->counters().timeouts, before);
  ASSERT_TRUE(client.Send("\r\nG"));
  EXPECT_THAT(ReadAnswer(client), StartsWith("HTTP/1.1 408 ")) << "that began a request";
}

TEST_P(HttpServerLimitsTest, ABodyThatDripsRunsOutOfTimeToo) {
  options_.timeouts.body_ms = 300;  // transfer_ms is 30 s.
  Open();
  SocketClient client = Connect();
  ASSERT_TRUE(client.Send(Post("/echo", std::string(1000, 'b')).substr(0, 60)));
  int drops = 0;
  for (; drops < 100 && client.WaitQuietly(20); ++drops) ASSERT_TRUE(client.Send("b"));
  EXPECT_LT(drops, 100);
  EXPECT_THAT(ReadAnswer(client), StartsWith("HTTP/1.1 408 "));
}

TEST_P(HttpServerLimitsTest, AnAnswerThatIsTakenInDripsRunsOutOfTime) {
  options_.timeouts.transfer_ms = 400;
  options_.timeouts.answer_bytes_per_second = 240 << 20;  // 200 ms for it.
  Open();
  SocketClient client = Connect();
  ASSERT_TRUE(client.Send(Get("/huge")));
  size_t taken = 0;
  for (size_t piece = 1; piece > 0; taken += piece) {
    piece = client.Receive(512 << 10).size();
    std::this_thread::sleep_for(std::chrono::milliseconds(30));  // All would take three seconds.
  }
  ASSERT_LT(taken, kHugeBytes);
  while (server_->counters().timeouts == 0) std::this_thread::yield();
}

TEST_P(HttpServerLimitsTest, AHandlerThatIsLateIsAnsweredForAndGoesOn) {
  Open();
  SocketClient client = Connect();
  ASSERT_TRUE(client.Send(Get("/x") + Post("/late", "body") + Get("/never")));
  EXPECT_THAT(ReadAnswer(client), EndsWith("/x"));
  EXPECT_THAT(ReadAnswer(client),
              AllOf(StartsWith("HTTP/1.1 500 "), HasSubstr("Connection: close\r\n"),
                    HasSubstr("X-Refused: /late\r\n"), EndsWith("within the permitted time.\n")));
  EXPECT_EQ(server_->counters().connections_open, 1u);
  EXPECT_THAT(Ask(Get("/y")), EndsWith("/y"));
  handler_.go_on.Set();
  EXPECT_EQ(client.ReceiveAll(), "");
  EXPECT_TRUE(handler_.was_answered);
}

TEST_P(HttpServerLimitsTest, WhatIsAnsweredDoesNotWaitForTheNextOfAPipeline) {
  Open();
  SocketClient client = Connect();
  ASSERT_TRUE(client.Send(Get("/x") + Get("/wait") + Get("/y")));
  EXPECT_THAT(ReadAnswer(client), EndsWith("/x"));
  handler_.go_on.Set();
  EXPECT_THAT(ReadAnswer(client), EndsWith("waited"));
  EXPECT_THAT(ReadAnswer(client), EndsWith("/y"));
}

TEST_P(HttpServerLimitsTest, AStopWaitsForAHandlerThatWasAnsweredFor) {
  Open();
  SocketClient client = Connect();
  ASSERT_TRUE(client.Send(Post("/late", "body")));
  EXPECT_THAT(ReadAnswer(client), StartsWith("HTTP/1.1 500 "));
  client.Reset();
  std::thread stopper([this] { server_->Stop(); });
  while (Connect().connected()) std::this_thread::yield();
  EXPECT_FALSE(handler_.was_answered);
  handler_.go_on.Set();
  stopper.join();
  EXPECT_TRUE(handler_.was_answered);
  EXPECT_EQ(server_->counters().connections_open, 0u);
}

TEST_P(HttpServerLimitsTest, AHandlerThatIsInTimeAnswersItself) {
  Open();
  SocketClient client = Connect();
  ASSERT_TRUE(client.Send(Post("/in-time", "body")));
  handler_.waiting.wait();
  handler_.go_on.Set();
  EXPECT_THAT(ReadAnswer(client), AllOf(StartsWith("HTTP/1.1 200 "), EndsWith("body")));
  EXPECT_FALSE(handler_.was_answered);
  ASSERT_TRUE(client.Send(Get("/x")));
  EXPECT_THAT(ReadAnswer(client), EndsWith("/x"));
}

TEST_P(HttpServerLimitsTest, StopAnswersWhatIsInFlightAndClosesWhatIsIdle) {
  Open();
  SocketClient idle = Connect();
  ASSERT_TRUE(idle.Send(Get("/x")));
  EXPECT_THAT(ReadAnswer(idle), EndsWith("/x"));
  SocketClient busy = Connect();
  ASSERT_TRUE(busy.Send(Get("/wait")));
  handler_.waiting.wait();
  std::thread stopper([this] { server_->Stop(); });
  EXPECT_EQ(idle.ReceiveAll(), "");  // At once, while the other request still runs.
  EXPECT_FALSE(Connect().connected());
  handler_.go_on.Set();
  const std::string answer = busy.ReceiveAll();
  stopper.join();
  EXPECT_THAT(answer, HasSubstr("Connection: close\r\n"));
  EXPECT_THAT(answer, EndsWith("waited"));
  EXPECT_EQ(server_->counters().connections_open, 0u);
}

TEST_P(HttpServerLimitsTest, StopDoesNotWaitForWhoSentAnEmptyLine) {
  options_.timeouts.header_ms = options_.timeouts.stop_ms = 60'000;
  Open();
  SocketClient idle = Connect();
  ASSERT_TRUE(idle.Send(Get("/x") + "\r\n"));
  EXPECT_THAT(ReadAnswer(idle), EndsWith("/x"));
  std::thread stopper([this] { server_->Stop(); });
  EXPECT_EQ(idle.ReceiveAll(), "");  // It waits ten seconds at most.
  stopper.join();
}

TEST_P(HttpServerLimitsTest, StopDoesNotWaitForWhoWasRefusedAndStays) {
  constexpr auto kLinger = std::chrono::milliseconds(2'000);  // So long the server waits for its end.
  auto shortest = std::chrono::steady_clock::duration::max();
  // A machine that loses a second and a half now and then is not the server that waits.
  for (int tries = 0; tries < 3 && shortest >= kLinger * 3 / 4; ++tries) {
    Open();
    SocketClient refused = Connect();
    ASSERT_TRUE(refused.Send("bad\n"));
    EXPECT_THAT(refused.ReceiveAll(), StartsWith("HTTP/1.1 400 "));
    const auto start = std::chrono::steady_clock::now();
    server_->Stop();
    shortest = std::min(shortest, std::chrono::steady_clock::now() - start);
  }
  EXPECT_LT(shortest, kLinger * 3 / 4);
}

TEST_P(HttpServerLimitsTest, StopCutsWhatOutlastsTheGrace) {
  options_.timeouts.stop_ms = 100;
  Open();
  SocketClient client = Connect();
  ASSERT_TRUE(client.Send(Get("/gone")));
  handler_.waiting.wait();
  server_->Stop();  // The handler ends once it sees that nobody reads its answer.
  handler_.seen_gone.wait();
  EXPECT_EQ(server_->counters().connections_open, 0u);
}

TEST_P(HttpServerLimitsTest, ConnectionsOverTheLimitAreToldSo) {
  options_.connections_max = 2;
  Open();
  SocketClient first = Connect(), second = Connect();
  for (SocketClient* client : {&first, &second}) {
    ASSERT_TRUE(client->Send(Get("/in")));
    EXPECT_THAT(ReadAnswer(*client), EndsWith("/in"));
  }
  SocketClient third = Connect();
  EXPECT_THAT(ReadAnswer(third),
              AllOf(StartsWith("HTTP/1.1 503 Service Unavailable\r\n"), HasSubstr("X-Refused: nothing")));
  EXPECT_EQ(server_->counters().connections_refused, 1u);
  ASSERT_TRUE(first.Send(Get("/still")));
  EXPECT_THAT(ReadAnswer(first), EndsWith("/still"));
}

TEST_P(HttpServerLimitsTest, LargeRequestsAndAnswersShareABoundedMemory) {
  options_.buffer_bytes_max = 1 << 20;
  Open();
  // Whether and how long to wait is for the handler to say.
  EXPECT_THAT(Ask(Get("/large")), AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("X-Refused: /large\r\n"),
                                        Not(HasSubstr("Retry-After"))));
  SocketClient client = Connect();
  ASSERT_TRUE(client.Send(Post("/echo", std::string(3 << 20, 'x'))));
  EXPECT_THAT(ReadAnswer(client), AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("X-Refused: /echo\r\n")));
  while (server_->counters().buffer_bytes > 0) std::this_thread::yield();  // Before it has closed.
  EXPECT_THAT(Ask(Post("/echo", std::string(100'000, 'y'))), StartsWith("HTTP/1.1 200 "));
}

TEST_P(HttpServerLimitsTest, AChunkedBodyFitsWhereOneOfKnownLengthDoes) {
  options_.buffer_bytes_max = (64 << 20) / 6;  // Of a server with --memory 64M.
  Open();
  const std::string body(4 << 20, 'c');
  EXPECT_THAT(Ask(Post("/echo", body)), EndsWith("\r\n\r\n" + body));
  for (size_t chunk : {body.size(), size_t{1} << 20, size_t{5'000}, size_t{100}}) {
    std::string request = "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (size_t at = 0; at < body.size(); at += chunk) {
      char size[32];
      std::snprintf(size, sizeof size, "%zx\r\n", std::min(chunk, body.size() - at));
      request.append(size).append(body, at, chunk).append("\r\n");
    }
    const std::string answer = Ask(request + "0\r\n\r\n");
    EXPECT_TRUE(answer.ends_with("\r\n\r\n" + body)) << chunk << ": " << answer.substr(0, 300);
  }
  while (server_->counters().buffer_bytes > 0) std::this_thread::yield();
}

TEST_P(HttpServerLimitsTest, ASmallChunkedBodyIsTakenWhateverOthersHold) {
  options_.buffer_bytes_max = 1;
  Open();
  const std::string half(8'000, 'c');
  EXPECT_THAT(Ask(Post("/echo", half + half)), EndsWith(half + half));
  const std::string head = "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n";
  const std::string chunk = "1f40\r\n" + half + "\r\n";
  SocketClient small = Connect();
  // Chunks come when the head has been looked at.
  ASSERT_TRUE(small.Send(head + "Expect: 100-continue\r\n\r\n"));
  ASSERT_THAT(small.ReceiveUntil("\r\n\r\n"), StartsWith("HTTP/1.1 100 "));
  ASSERT_TRUE(small.Send(chunk));
  EXPECT_TRUE(small.WaitQuietly(50));
  ASSERT_TRUE(small.Send(chunk + "0\r\n\r\n"));
  EXPECT_THAT(ReadAnswer(small), EndsWith(half + half));
  SocketClient large = Connect();
  ASSERT_TRUE(large.Send(head + "\r\n"));
  for (int i = 0; i < 100 && large.WaitQuietly(5); ++i) ASSERT_TRUE(large.Send(chunk));
  EXPECT_THAT(ReadAnswer(large), StartsWith("HTTP/1.1 503 "));
}

// Nobody has said who sends them, and none of it takes the room of who has.
TEST_P(HttpServerLimitsTest, UnfinishedRequestsOfAnybodyAreBoundedApart) {
  options_.buffer_bytes_max = 512 << 10;  // And 128 KiB for these.
  Open();
  std::vector<SocketClient> held;
  for (size_t head : {31'000, 20'000, 17'000}) {
    const std::string half = "GET /never HTTP/1.1\r\nHost: h\r\nX-Long: " + std::string(head, 'x');
    do {
      held.push_back(Connect());
      ASSERT_TRUE(held.back().Send(half));
    } while (held.size() < 100 && held.back().WaitQuietly(50));
    EXPECT_THAT(ReadAnswer(held.back()),
                AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("Connection: close\r\n")));
  }
  EXPECT_GT(held.size(), 2u);
  EXPECT_LT(held.size(), 40u);
  EXPECT_EQ(server_->counters().buffer_bytes, 0u);

  const std::string large(100'000, 'l'), small(16'000, 's');
  EXPECT_THAT(Ask(Post("/echo", large)), EndsWith(large));
  EXPECT_THAT(Ask(Get("/small")), EndsWith("/small"));
  const std::string long_head = "X-Long: " + std::string(8'000, 'x') + "\r\n";
  const std::string good = Post("/echo", small, long_head), bad = Post("/forbidden", small, long_head);
  SocketClient forbidden = Connect();
  ASSERT_TRUE(forbidden.Send(bad.substr(0, bad.size() - 10)));
  EXPECT_THAT(ReadAnswer(forbidden), StartsWith("HTTP/1.1 403 "));
  SocketClient may = Connect();
  ASSERT_TRUE(may.Send(good.substr(0, 9'000)));
  EXPECT_TRUE(may.WaitQuietly(50));  // So little is held without asking.
  ASSERT_TRUE(may.Send(good.substr(9'000, good.size() - 9'010)));
  EXPECT_TRUE(may.WaitQuietly(50));
  ASSERT_TRUE(may.Send(good.substr(good.size() - 10)));
  EXPECT_THAT(ReadAnswer(may), EndsWith(small));

  std::string pipeline;
  for (int i = 0; i < 20; ++i) pipeline += Get("/" + std::string(15'000, 'p'));
  SocketClient pipelining = Connect();
  ASSERT_TRUE(pipelining.Send(pipeline));
  const std::string answers = pipelining.ReceiveAll();
  EXPECT_THAT(answers, StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(answers, HasSubstr("ppHTTP/1.1 503 ")) << "behind the answers";
  pipelining.Close();
  forbidden.Close();
  may.Close();
  for (SocketClient& client : held) client.Reset();
  while (server_->counters().connections_open > 0) std::this_thread::yield();
  EXPECT_GT(Ask(Get("/" + std::string(15'000, 'p')) + Get("/last")).size(), 15'000u);
}

TEST_P(HttpServerLimitsTest, ServersThatShareBuffersShareAllOfThem) {
  ServerBudgets& budgets = LimitBudgets(512 << 10);
  Open();
  auto other = HttpServer::Open(*runtime_, options_, handler_);
  ASSERT_TRUE(other.ok()) << other.status().ToString();
  const std::string half_a_head = "GET / HTTP/1.1\r\nHost: h\r\nX-Long: " + std::string(31'000, 'x');
  std::vector<SocketClient> held;
  do {
    held.push_back(Connect());
    ASSERT_TRUE(held.back().Send(half_a_head));
  } while (held.size() < 50 && held.back().WaitQuietly(50));
  SocketClient refused(SocketAddress::Parse((*other)->address()).value());
  ASSERT_TRUE(refused.Send(half_a_head));
  EXPECT_THAT(ReadAnswer(refused), StartsWith("HTTP/1.1 503 "));
  EXPECT_LE(budgets.early.held(), budgets.early.bytes_max());
  held.clear();
}

TEST_P(HttpServerLimitsTest, WhatMayHaveBeenWrittenIsNeverAnsweredByARefusal) {
  options_.buffer_bytes_max = 1 << 20;
  Open();
  EXPECT_THAT(Ask(Post("/large", "write this")),
              AllOf(StartsWith("HTTP/1.1 200 "), EndsWith(std::string(3 << 20, 'L'))));
}

// Its handler has counted it, has been told that it does not fit, and has made of it what it can.
TEST_P(HttpServerLimitsTest, AnAnswerThatItsHandlerCountedIsSent) {
  options_.buffer_bytes_max = 1 << 20;
  Open();
  {
    SocketClient client = Connect();
    ASSERT_TRUE(client.Send(Get("/counted", "X-Long: " + std::string(20'000, 'x') + "\r\n")));
    EXPECT_THAT(ReadAnswer(client), EndsWith("CCC"));
    EXPECT_FALSE(handler_.counted_fits);
  }
  while (server_->counters().buffer_bytes > 0) std::this_thread::yield();
}

TEST_P(HttpServerLimitsTest, AnAnswerHoldsNoMemoryOnceItIsSentOrRefused) {
  Open();
  for (std::string_view target : {"/large", "/counted", "/refused-page"}) {
    SocketClient client = Connect();
    ASSERT_TRUE(client.Send(Get(target) + "GET /nex"));  // Half a request: the connection is not idle.
    ReadAnswer(client);
    while (server_->counters().buffer_bytes > 0) std::this_thread::yield();
    EXPECT_LE(handler_.cleared_bytes, HttpResponse::kLargeBody);
    ASSERT_TRUE(client.Send("t HTTP/1.1\r\nHost: h\r\n\r\n"));
    EXPECT_THAT(ReadAnswer(client), EndsWith("/next"));
  }
}

TEST_P(HttpServerLimitsTest, ALongPipelineHoldsUpNobodyElse) {
  Open();
  // The first and the third share a worker.
  SocketClient first = Connect();
  ASSERT_TRUE(first.Send(Get("/first")));
  EXPECT_THAT(ReadAnswer(first), EndsWith("/first"));
  SocketClient second = Connect();
  ASSERT_TRUE(second.Send(Get("/second")));
  EXPECT_THAT(ReadAnswer(second), EndsWith("/second"));
  SocketClient third = Connect();
  ASSERT_TRUE(third.Send(Get("/third")));
  EXPECT_THAT(ReadAnswer(third), EndsWith("/third"));

  constexpr int kRequests = 80;  // They come in one piece of less than 4 KiB.
  std::string pipeline;
  for (int i = 0; i < kRequests; ++i) pipeline += Get("/slow");
  ASSERT_TRUE(first.Send(pipeline));
  while (handler_.slow_requests == 0) std::this_thread::yield();
  EXPECT_TRUE(third.Send(Get("/slow-so-far")));
  handler_.slow_go_on.count_down();  // What the third asks is there before the second slow one begins.
  const std::string answer = ReadAnswer(third);
  EXPECT_LT(std::stoi(answer.substr(answer.rfind('\n') + 1)), kRequests / 2);
  for (int i = 0; i < kRequests; ++i) ASSERT_THAT(ReadAnswer(first), StartsWith("HTTP/1.1 200 "));
}

TEST_P(HttpServerLimitsTest, TenThousandIdleConnectionsCostLittle) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  // Both ends of each connection are here.
  const int kConnections = static_cast<int>(std::min<uint64_t>(10'000, (limit.rlim_cur - 200) / 2));
  Open();
  std::vector<SocketClient> clients;
  clients.reserve(kConnections);
  const std::string request = Get("/idle");
  EXPECT_THAT(Ask(request), EndsWith("/idle"));
  const uint64_t before = ResidentBytes();
  for (int i = 0; i < kConnections; ++i) {
    clients.push_back(Connect());
    ASSERT_TRUE(clients.back().Send(request));
    ASSERT_THAT(ReadAnswer(clients.back()), EndsWith("/idle"));
  }
  const uint64_t each = (ResidentBytes() - before) / kConnections;
  std::printf("%d idle connections, %lu bytes each (with the client's object)\n", kConnections, each);
  EXPECT_EQ(server_->counters().connections_open, static_cast<uint64_t>(kConnections));
#if !defined(__SANITIZE_ADDRESS__) && !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)
  EXPECT_LT(each, 4'096u);
#endif
  ASSERT_TRUE(clients[kConnections / 2].Send(Get("/awake")));
  EXPECT_THAT(ReadAnswer(clients[kConnections / 2]), EndsWith("/awake"));
}

}  // namespace
}  // namespace partita::http
