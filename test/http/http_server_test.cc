#include "api/http/http_server.h"

#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <fstream>
#include <latch>
#include <thread>

#include "test/http/tls_client.h"
#include "test/io/real_world.h"
#include "test/support/resident_memory.h"
#include "test/support/socket_client.h"

namespace partita::http {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

constexpr size_t kHugeBytes = 48 << 20;  // More than the kernel takes off the server's hands.

// Answers by the path: what a request needs to show of the server.
class TestHandler final : public RequestHandler {
 public:
  Task<void> Handle(const HttpRequest& request, HttpResponse* response) override {
    response->status = 200;
    if (request.body_too_large) {
      response->status = 413;
      response->body = "too large";
    } else if (request.method == Method::kPost && !request.has_length) {
      response->status = 411;
    } else if (request.target == "/echo") {
      response->body.assign(request.body);
      response->AddHeader("X-From", request.remote_address);
      if (request.secure) response->AddHeader("X-Secure", "yes");
    } else if (request.target == "/large") {
      response->body.assign(3 << 20, 'L');
    } else if (request.target == "/huge") {
      response->body.assign(kHugeBytes, 'H');
    } else if (request.target == "/counted") {
      response->body_share = BufferShare(request.buffers);
      response->body.assign(3 << 20, 'C');
      counted_fits = response->body_share.Set(response->body.capacity());
    } else if (request.target == "/slow") {
      slow_requests.fetch_add(1);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    } else if (request.target == "/slow-so-far") {
      response->body = std::to_string(slow_requests.load());
    } else if (request.target == "/none") {
      response->status = 204;
    } else if (request.target == "/wait") {
      waiting.count_down();
      co_await go_on.Wait();
      response->body = "waited";
    } else if (request.target == "/gone") {
      waiting.count_down();
      while (!request.PeerIsGone()) co_await SleepFor(1'000'000);
      seen_gone.count_down();
    } else {
      response->body.assign(request.target);
    }
  }

  bool RefuseBeforeBody(const HttpRequest& request, HttpResponse* response) override {
    if (request.target != "/forbidden") return false;
    EXPECT_TRUE(request.body.empty());
    EXPECT_EQ(request.remote_address, "127.0.0.1");
    response->status = 403;
    response->body = "no";
    return true;
  }

  void Refuse(int status, std::string_view reason, const HttpRequest& request,
              HttpResponse* response) override {
    EXPECT_EQ(request.remote_address, "127.0.0.1");
    RequestHandler::Refuse(status, reason, request, response);
    response->AddHeader("X-Refused", request.target.empty() ? "nothing" : request.target);
  }

  std::latch waiting{1};
  std::latch seen_gone{1};
  std::atomic<int> slow_requests{0};
  std::atomic<bool> counted_fits{true};
  Event go_on;
};

class HttpServerTest : public testing::TestWithParam<IoBackend> {
 protected:
  void SetUp() override {
    if (GetParam() == IoBackend::kUring && !UringAvailable()) {
      GTEST_SKIP() << "io_uring is forbidden on this machine";
    }
    RealRuntimeOptions options;
    options.directory = directory_.path();
    options.backend = GetParam();
    options.shards = 2;
    auto opened = RealRuntime::Open(options);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    runtime_ = std::move(opened).value();
  }
  void TearDown() override { server_.reset(); }

  void Open() {
    auto opened = HttpServer::Open(*runtime_, options_, handler_);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    server_ = std::move(opened).value();
  }
  SocketClient Connect() { return SocketClient(SocketAddress::Parse(server_->address()).value()); }

  // One answer that has a Content-Length.
  static std::string ReadAnswer(SocketClient& client) {
    std::string answer = client.ReceiveUntil("\r\n\r\n");
    const size_t at = answer.find("Content-Length: ");
    if (at == std::string::npos) return answer + "(no length)";
    return answer + client.Receive(std::stoul(answer.substr(at + 16)));
  }
  std::string Ask(std::string_view request) {
    SocketClient client = Connect();
    EXPECT_TRUE(client.Send(request));
    return ReadAnswer(client);
  }

  TempDirectory directory_;
  std::unique_ptr<RealRuntime> runtime_;
  TestHandler handler_;
  HttpServerOptions options_;
  std::unique_ptr<HttpServer> server_;
};
INSTANTIATE_TEST_SUITE_P(Backends, HttpServerTest, testing::Values(IoBackend::kUring, IoBackend::kThreads),
                         [](const auto& info) {
                           return info.param == IoBackend::kUring ? "Ring" : "Threads";
                         });

std::string Get(std::string_view target, std::string_view headers = "") {
  return "GET " + std::string(target) + " HTTP/1.1\r\nHost: h\r\n" + std::string(headers) + "\r\n";
}

std::string Post(std::string_view target, std::string_view body, std::string_view headers = "") {
  return "POST " + std::string(target) + " HTTP/1.1\r\nHost: h\r\n" + std::string(headers) +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

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

TEST_P(HttpServerTest, ALargeBodyWaitsUntilThereIsRoomForIt) {
  BufferBudget budget(4 << 20);
  options_.buffers = &budget;
  Open();
  BufferShare others(&budget);
  ASSERT_TRUE(others.Set(3 << 20));
  SocketClient client = Connect();
  const std::string body(1 << 20, 'w');
  const std::string request = Post("/echo", body);
  const size_t head = request.find("\r\n\r\n") + 4;
  ASSERT_TRUE(client.Send(request.substr(0, head)));
  ASSERT_TRUE(client.Send(request.substr(head)));
  EXPECT_EQ(budget.held(), 3u << 20) << "what does not fit is not counted";
  EXPECT_THAT(Ask(Post("/echo", "small")), EndsWith("small"));  // Others are served meanwhile.
  others.Set(0);
  EXPECT_THAT(ReadAnswer(client), EndsWith("\r\n\r\n" + body));
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

TEST_P(HttpServerTest, HalfRequestsAndVanishingPeersAreHarmless) {
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

TEST_P(HttpServerTest, SlowClientsRunOutOfTime) {
  options_.timeouts.header_ms = 150;
  options_.timeouts.transfer_ms = 150;
  options_.timeouts.idle_ms = 300;
  Open();
  SocketClient slow_head = Connect();
  ASSERT_TRUE(slow_head.Send("GET / HT"));
  SocketClient slow_body = Connect();
  ASSERT_TRUE(slow_body.Send(Post("/echo", "body").substr(0, 50)));
  SocketClient silent = Connect();
  SocketClient idle = Connect();
  ASSERT_TRUE(idle.Send(Get("/x")));
  EXPECT_THAT(ReadAnswer(idle), EndsWith("/x"));
  EXPECT_THAT(ReadAnswer(slow_head), StartsWith("HTTP/1.1 408 "));
  EXPECT_THAT(ReadAnswer(slow_body), StartsWith("HTTP/1.1 408 "));
  EXPECT_EQ(silent.ReceiveAll(), "");
  EXPECT_EQ(idle.ReceiveAll(), "");
  EXPECT_EQ(server_->counters().timeouts, 4u);
}

// Some clients send one behind a body.
TEST_P(HttpServerTest, EmptyLinesBehindARequestLeaveTheConnectionIdle) {
  options_.timeouts.header_ms = 100;
  Open();
  SocketClient client = Connect();
  for (std::string_view empty : {"\r\n", "\r\n\r\n"}) {
    ASSERT_TRUE(client.Send(Post("/echo", "behind the body") + std::string(empty)));
    EXPECT_THAT(ReadAnswer(client), EndsWith("behind the body"));
    EXPECT_TRUE(client.WaitQuietly(400)) << "nobody asked for an answer";
    ASSERT_TRUE(client.Send(empty));
    EXPECT_TRUE(client.WaitQuietly(400)) << "nobody asked for an answer";
  }
  ASSERT_TRUE(client.Send("\r\n" + Get("/after")));
  EXPECT_THAT(ReadAnswer(client), EndsWith("/after"));
  EXPECT_EQ(server_->counters().timeouts, 0u);
  ASSERT_TRUE(client.Send("\r\nG"));
  EXPECT_THAT(ReadAnswer(client), StartsWith("HTTP/1.1 408 ")) << "that began a request";
}

TEST_P(HttpServerTest, ABodyThatDripsRunsOutOfTimeToo) {
  options_.timeouts.body_ms = 300;  // transfer_ms is 30 s.
  Open();
  SocketClient client = Connect();
  ASSERT_TRUE(client.Send(Post("/echo", std::string(1000, 'b')).substr(0, 60)));
  int drops = 0;
  for (; drops < 100 && client.WaitQuietly(20); ++drops) ASSERT_TRUE(client.Send("b"));
  EXPECT_LT(drops, 100);
  EXPECT_THAT(ReadAnswer(client), StartsWith("HTTP/1.1 408 "));
}

TEST_P(HttpServerTest, AnAnswerThatIsTakenInDripsRunsOutOfTime) {
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

TEST_P(HttpServerTest, StopAnswersWhatIsInFlightAndClosesWhatIsIdle) {
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

TEST_P(HttpServerTest, StopDoesNotWaitForWhoSentAnEmptyLine) {
  options_.timeouts.header_ms = options_.timeouts.stop_ms = 60'000;
  Open();
  SocketClient idle = Connect();
  ASSERT_TRUE(idle.Send(Get("/x") + "\r\n"));
  EXPECT_THAT(ReadAnswer(idle), EndsWith("/x"));
  std::thread stopper([this] { server_->Stop(); });
  EXPECT_EQ(idle.ReceiveAll(), "");  // It waits ten seconds at most.
  stopper.join();
}

TEST_P(HttpServerTest, StopCutsWhatOutlastsTheGrace) {
  options_.timeouts.stop_ms = 100;
  Open();
  SocketClient client = Connect();
  ASSERT_TRUE(client.Send(Get("/gone")));
  handler_.waiting.wait();
  server_->Stop();  // The handler ends once it sees that nobody reads its answer.
  handler_.seen_gone.wait();
  EXPECT_EQ(server_->counters().connections_open, 0u);
}

TEST_P(HttpServerTest, ConnectionsOverTheLimitAreToldSo) {
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

TEST_P(HttpServerTest, LargeRequestsAndAnswersShareABoundedMemory) {
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

TEST_P(HttpServerTest, WhatMayHaveBeenWrittenIsNeverAnsweredByARefusal) {
  options_.buffer_bytes_max = 1 << 20;
  Open();
  EXPECT_THAT(Ask(Post("/large", "write this")),
              AllOf(StartsWith("HTTP/1.1 200 "), EndsWith(std::string(3 << 20, 'L'))));
}

// Its handler has counted it, has been told that it does not fit, and has made of it what it can.
TEST_P(HttpServerTest, AnAnswerThatItsHandlerCountedIsSent) {
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

TEST_P(HttpServerTest, ALongPipelineHoldsUpNobodyElse) {
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
  ASSERT_TRUE(third.Send(Get("/slow-so-far")));
  const std::string answer = ReadAnswer(third);
  EXPECT_LT(std::stoi(answer.substr(answer.rfind('\n') + 1)), kRequests / 2);
  for (int i = 0; i < kRequests; ++i) ASSERT_THAT(ReadAnswer(first), StartsWith("HTTP/1.1 200 "));
}

TEST_P(HttpServerTest, TenThousandIdleConnectionsCostLittle) {
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

class HttpsServerTest : public HttpServerTest {
 protected:
  void OpenTls() {
    certificate_ = std::make_unique<TestCertificate>(directory_.path(), "first");
    auto context = TlsContext::Open({certificate_->certificate_path(), certificate_->key_path()});
    ASSERT_TRUE(context.ok()) << context.status().ToString();
    context_ = std::move(context).value();
    options_.tls = context_.get();
    Open();
  }

  std::unique_ptr<TestCertificate> certificate_;
  std::unique_ptr<TlsContext> context_;
};
INSTANTIATE_TEST_SUITE_P(Backends, HttpsServerTest, testing::Values(IoBackend::kUring, IoBackend::kThreads),
                         [](const auto& info) {
                           return info.param == IoBackend::kUring ? "Ring" : "Threads";
                         });

TEST_P(HttpsServerTest, AnswersOverTls12And13) {
  OpenTls();
  for (int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    TlsClient client(Connect(), version);
    ASSERT_TRUE(client.shaken()) << client.error();
    for (size_t size : {size_t{5}, size_t{100'000}, size_t{3} << 20}) {
      const std::string body(size, 's');
      ASSERT_TRUE(client.Send(Post("/echo", body)));
      const std::string answer = client.ReceiveUntilEnd(body);
      EXPECT_THAT(answer.substr(0, 300), HasSubstr("X-Secure: yes\r\n"));
      EXPECT_EQ(answer.size() - answer.find("\r\n\r\n") - 4, size);
    }
  }
}

// Bodies come faster than they are decrypted, in pieces of hundreds of KiB: what they leave behind is little.
TEST_P(HttpsServerTest, IdleConnectionsKeepNothingOfTheirBodies) {
  OpenTls();
  constexpr int kConnections = 100;
  const std::string body(1 << 20, 's');
  std::vector<std::unique_ptr<TlsClient>> clients;
  const auto send = [&](TlsClient& client) {
    ASSERT_TRUE(client.shaken()) << client.error();
    ASSERT_TRUE(client.Send(Post("/none", body)));
    ASSERT_THAT(client.ReceiveUntilEnd(""), StartsWith("HTTP/1.1 204 "));
  };
  const auto connect = [&] {
    clients.push_back(std::make_unique<TlsClient>(Connect(), TLS1_3_VERSION));
    send(*clients.back());
  };
  for (int i = 0; i < 10; ++i) connect();
  const uint64_t before = ResidentBytes();
  for (int i = 0; i < kConnections; ++i) connect();
  const uint64_t after = ResidentBytes();
  const uint64_t each = (after - std::min(before, after)) / kConnections;
  std::printf("%lu bytes each (with the client's side)\n", each);
#if !defined(__SANITIZE_ADDRESS__) && !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)
  EXPECT_LT(each, 150'000u);
#endif
}

TEST_P(HttpsServerTest, OldVersionsAndPlainHttpAreCutOff) {
  OpenTls();
  TlsClient old(Connect(), TLS1_1_VERSION);
  EXPECT_FALSE(old.shaken());
  SocketClient plain = Connect();
  ASSERT_TRUE(plain.Send(Get("/x")));
  EXPECT_THAT(plain.ReceiveAll(), Not(HasSubstr("HTTP/1.1 200")));
  EXPECT_EQ(server_->counters().tls_failures, 2u);
  TlsClient healthy(Connect(), TLS1_3_VERSION);
  EXPECT_TRUE(healthy.shaken());
}

TEST_P(HttpsServerTest, ReloadGivesNewConnectionsTheNewCertificate) {
  OpenTls();
  TlsClient before(Connect(), TLS1_3_VERSION);
  EXPECT_EQ(before.peer_name(), "first");
  TestCertificate second(directory_.path(), "second");
  auto loaded = context_->LoadAnew();
  ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
  EXPECT_EQ(TlsClient(Connect(), TLS1_3_VERSION).peer_name(), "first") << "it is not in use yet";
  context_->Use(std::move(loaded).value());
  TlsClient after(Connect(), TLS1_3_VERSION);
  EXPECT_EQ(after.peer_name(), "second");
  ASSERT_TRUE(before.Send(Get("/still")));
  EXPECT_THAT(before.ReceiveUntilEnd("/still"), EndsWith("/still"));

  std::ofstream(second.key_path()) << "no key";
  const Status refused = context_->LoadAnew().status();
  EXPECT_EQ(refused.code(), Code::kInvalidArgument);
  EXPECT_THAT(refused.message(), HasSubstr(second.key_path()));
  TlsClient kept(Connect(), TLS1_3_VERSION);
  EXPECT_EQ(kept.peer_name(), "second");
}

TEST(TlsContextTest, RefusesFilesThatDoNotServe) {
  TempDirectory directory;
  TestCertificate one(directory.path(), "one");
  TempDirectory elsewhere;
  TestCertificate two(elsewhere.path(), "two");
  auto missing = TlsContext::Open({directory.path() + "/nowhere", one.key_path()});
  EXPECT_EQ(missing.code(), Code::kInvalidArgument);
  EXPECT_THAT(missing.status().message(), HasSubstr("nowhere"));
  EXPECT_EQ(TlsContext::Open({one.key_path(), one.key_path()}).code(), Code::kInvalidArgument);
  auto mixed = TlsContext::Open({one.certificate_path(), two.key_path()});
  EXPECT_EQ(mixed.code(), Code::kInvalidArgument);
  EXPECT_THAT(mixed.status().message(), HasSubstr("mismatch"));
}

}  // namespace
}  // namespace partita::http
